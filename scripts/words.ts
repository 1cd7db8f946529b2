// Writes the sentences that operators change most into docs/customizing.md, from src/pages/words: `npm run docs`.
// A test fails when the two differ.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { en } from '../src/pages/words/en.ts'
import type { Key } from '../src/pages/words/sentences.ts'
import { zhCN } from '../src/pages/words/zh-CN.ts'
import { withTable } from './generated-table.ts'

export const WORDS_PAGE = new URL('../docs/customizing.md', import.meta.url)

const OFTEN_CHANGED: readonly Key[] = [
  'app.name',
  'login.title',
  'login.use_account',
  'login.choose',
  'login.button',
  'login.hint',
  'login.missing',
  'login.signed_out_here',
  'home.title',
]

export function withWords(page: string): string {
  const rows = OFTEN_CHANGED.map(key => [`\`${key}\``, zhCN[key], en[key]])
  return withTable(page, ['name', 'zh-CN', 'en'], rows)
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync(WORDS_PAGE, withWords(readFileSync(WORDS_PAGE, 'utf8')))
