// docs/specification.md: each statement names a test that exists, and each citation names a statement that exists.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import test from 'node:test'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const read = (path: string) => readFileSync(`${ROOT}/${path}`, 'utf8')
const page = read('docs/specification.md')

interface Statement {
  number: string
  file: string
  title: string
}

const statements: Statement[] = [
  ...page.matchAll(/^\| (?<number>\d+\.\d+) \| [^|]+ \| `(?<file>test\/[\w./-]+)`: (?<title>.+) \|$/gm),
].map(({ groups: { number = '', file = '', title = '' } = {} }) => ({ number, file, title }))

test('every row of docs/specification.md is a statement with a number and a test', () => {
  const rows = page.match(/^\| \d.*$/gm) ?? []
  assert.ok(rows.length > 40)
  assert.equal(statements.length, rows.length)
})

test('the numbers in docs/specification.md are consecutive, section by section', () => {
  const sections = [...page.matchAll(/^## (\d+)\. /gm)].map(([, number]) => Number(number))
  assert.deepEqual(
    sections,
    sections.map((_, n) => n + 1),
  )
  const expected = sections.flatMap(section => {
    const own = statements.filter(({ number }) => number.startsWith(`${section}.`))
    return own.map((_, n) => `${section}.${n + 1}`)
  })
  assert.deepEqual(
    statements.map(({ number }) => number),
    expected,
  )
})

test('every statement of docs/specification.md names a test that exists', () => {
  const missing = statements.filter(({ file, title }) => !titlesIn(read(file)).includes(title))
  assert.deepEqual(missing, [])
})

test('every statement that code, a test or a page cites exists', () => {
  const numbers = new Set(statements.map(({ number }) => number))
  const files = globSync(['{src,test,browser,bench,scripts,examples}/**/*.{ts,js,md}', 'docs/**/*.md', '*.md'], {
    cwd: ROOT,
    exclude: ['**/node_modules/**'],
  })
  const cited = files.flatMap(file =>
    [...read(file).matchAll(/\b[Ss]pecification (\d+\.\d+)\b/g)].map(([, number = '']) => ({ file, number })),
  )
  assert.ok(cited.length > 10)
  assert.deepEqual(
    cited.filter(({ number }) => !numbers.has(number)),
    [],
  )
})

/** What a template inserts is `…`, as on the page. */
function titlesIn(source: string): string[] {
  const titles = source.matchAll(/\btest\(\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`)/g)
  return [...titles].map(([, single, double, template]) =>
    (single ?? double ?? template ?? '').replaceAll(/\$\{[^}]*\}/g, '…').replaceAll(/\\(.)/g, '$1'),
  )
}
