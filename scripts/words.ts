// Makes docs/words.md from the tables of src/pages/words: `npm run docs`. A test fails when the two differ.
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { en } from '../src/pages/words/en.ts'
import type { Key } from '../src/pages/words/sentences.ts'
import { zhCN } from '../src/pages/words/zh-CN.ts'

export const WORDS_PAGE = new URL('../docs/words.md', import.meta.url)

export function wordsPage(): string {
  const keys = Object.keys(zhCN).sort() as Key[]
  return `# Words

What people read is in Chinese, the language of the specification, or in English: \`PAGE_LANGUAGE\` is \`zh-CN\`, \`en\`, \`auto\` (the
browser’s, else zh-CN), or a language of your own. Every page has a small switch below it,
by which everybody chooses for themselves; the choice is kept in a cookie.

\`words\` in \`menshen.config.ts\` replaces sentences of the language that \`PAGE_LANGUAGE\` names (with \`auto\`: of zh-CN);
\`languages\` adds a language with all of its sentences, or replaces sentences of one that is there:

\`\`\`ts
import { defineConfig } from 'menshen'

export default defineConfig({
  words: { 'login.title': '员工登录', 'login.button': '用{name}登录' },
  languages: { en: { 'login.title': 'Staff sign-in' } },
})
\`\`\`

A name in braces stands for a value and has to be there; what is written is text, never markup. An unknown or missing name or
value stops the start with a sentence. Those that begin with \`phrase.\` are the doctor’s: a language of your own may leave them
out, and has them in English then. \`app.name\` counts while \`APP_NAME\` is not set. This page is made from \`src/pages/words\` by
\`npm run docs\`.

| name | zh-CN | en |
|---|---|---|
${keys.map(key => `| \`${key}\` | ${zhCN[key]} | ${en[key]} |`).join('\n')}
`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(WORDS_PAGE, wordsPage())
