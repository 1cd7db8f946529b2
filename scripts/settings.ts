// Makes docs/settings.md from the rows of src/config/settings.ts: `npm run docs`. A test fails when the two differ.
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Row, TOPIC_NAMES, TOPICS, type Topic } from '../src/config/settings.ts'
import { en } from '../src/pages/words/en.ts'

export const SETTINGS_PAGE = new URL('../docs/settings.md', import.meta.url)

export function settingsPage(): string {
  const topics = TOPIC_NAMES.map(topicPart)
  return `# Settings

From the environment, or from a file \`.env\` in the folder where Menshen is started; the environment wins where it
is not empty. A value in \`.env\` goes to the end of its line, or to a \`#\` behind a space: \`CLIENT_SECRET=ab#cd\` is whole. Quotes around a
value do not belong to it. A bad value stops the start with one sentence that names the setting; a name that is a slip away from one of
these gets a warning. Those marked ↻ may change in their file while Menshen runs ([reloading](reloading.md)). This page is made from \`src/config/settings.ts\` by \`npm run docs\`.

${topics.join('\n')}
## Rules

Which role may see which pages is written in \`menshen.config.ts\` (or \`.mts\`, \`.js\`, \`.mjs\`) in the folder where Menshen is
started, or in the file that \`CONFIG\` names:

\`\`\`ts
import { defineConfig } from 'menshen'

export default defineConfig({
  rules: [
    { path: '/reports', roles: ['developer', 'common'] },
    { path: '/reports/internal', roles: ['developer'] },
  ],
})
\`\`\`

A rule covers its path and everything below it (with \`exact: true\` only the path itself), for all methods or those in
\`methods\`; \`public: true\` in place of \`roles\` admits everybody; \`shadow: true\` only logs whom it would have refused.
The most specific rule decides, for the path and for whatever a lenient application could take it for: \`/admin.json\`,
\`/admin/\`, \`/Admin\`, \`/admin%3Fx\` need what \`/admin\` needs too, unless a rule names them as they are written.
Two rules for the same requests are refused. \`menshen rules check /path --role common\` says which, and \`menshen rules test FILE\` runs
a table of expectations. \`upstreams: { '/api': 'http://127.0.0.1:9000' }\` sends what is below a path to another
application. Without a rule, every signed-in user
may see a page; \`/_menshen/console\` is always for \`developer\` alone.
`
}

function topicPart(topic: Topic): string {
  const rows = Object.entries(TOPICS[topic]).map(([name, row]) => settingRow(name, row))
  return `## ${en[`topic.${topic}`]}

| name | default | expected | meaning |
|---|---|---|---|
${rows.join('\n')}
`
}

function settingRow(name: string, row: Row<unknown>): string {
  const standard = row.defaultNote ?? (row.default === undefined ? 'none' : `\`${row.default}\``)
  return `| \`${name}\` | ${standard} | ${row.expected}, e.g. \`${row.example}\` | ${row.reloads ? '↻ ' : ''}${row.sentence} |`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(SETTINGS_PAGE, settingsPage())
