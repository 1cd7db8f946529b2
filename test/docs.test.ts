// The documentation says what the code says.
import assert from 'node:assert/strict'
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { ALLOWED_LICENCES, productionDependencies } from '../scripts/dependencies.ts'
import { GENERATED, settingsPage } from '../scripts/docs.ts'
import { SETTINGS } from '../src/config/settings.ts'
import { ERRORS } from '../src/errors.ts'
import { EVENTS } from '../src/events.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** Texts below a folder. */
const listFiles = (folder: string) =>
  readdirSync(new URL(`../${folder}/`, import.meta.url), { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile() && !entry.parentPath.includes('node_modules'))
    .map(({ parentPath, name }) => relative(ROOT, join(parentPath, name)))
    .filter(path => !/\.(?:png|svg)$/.test(path))

const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')

for (const [path, generate] of Object.entries(GENERATED))
  test(`${path} is the current output of \`npm run docs\``, () => {
    assert.equal(read(path), generate(read(path)))
  })

test('every production dependency has an allowed licence', () => {
  const dependencies = productionDependencies()
  assert.ok(dependencies.length > 25)
  assert.deepEqual(
    dependencies.filter(({ licence }) => !ALLOWED_LICENCES.includes(licence)),
    [],
  )
  // What is installed says the same of itself.
  const installed = dependencies.filter(({ folder }) =>
    existsSync(new URL(`../${folder}/package.json`, import.meta.url)),
  )
  assert.ok(installed.length > 25)
  for (const { folder, name, version, licence } of installed)
    assert.partialDeepStrictEqual(JSON.parse(read(`${folder}/package.json`)), { name, version, license: licence })
})

test('the settings reference lists exactly the settings in the code', () => {
  const documented = [...settingsPage().matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name)
  assert.deepEqual(documented, Object.keys(SETTINGS))
})

test('every error code is explained in docs/troubleshooting.md', () => {
  const page = read('docs/troubleshooting.md')
  for (const code of Object.keys(ERRORS)) assert.match(page, new RegExp(`^\\| \`${code}\` \\|`, 'm'))
})

test('no page or example tells readers to install the package by its bare name', () => {
  const files = [
    ...listFiles('docs'),
    ...listFiles('examples'),
    'README.md',
    'README.zh-CN.md',
    'Dockerfile',
    'CONTRIBUTING.md',
    'SECURITY.md',
    'package.json',
  ]
  for (const file of files) {
    assert.doesNotMatch(read(file), /npm (?:install|i|add|exec)(?: -\S+| --prefix \S+)* menshen\b(?!\/)/, file)
    assert.doesNotMatch(read(file), /github\.com\/menshen/, file)
  }
})

test('the Next.js example installs the package of this version that was packed in the clone', () => {
  const { version } = JSON.parse(read('package.json'))
  const { dependencies } = JSON.parse(read('examples/next/package.json'))
  assert.equal(dependencies.menshen, `file:../../menshen-${version}.tgz`)
})

test('docs/security-statements.md names an existing test for each statement', () => {
  const page = read('docs/security-statements.md')
  const rows = [...page.matchAll(/^\| S(\d+) \|.*\| `(test\/[\w./-]+)`: (.*) \|$/gm)]
  assert.equal(rows.length, page.match(/^\| S\d+ \|/gm)?.length)
  const numbers = rows.map(([, number]) => Number(number))
  assert.deepEqual(
    numbers.slice(0, 55),
    Array.from({ length: 55 }, (_, n) => n + 1),
  )
  assert.deepEqual(
    numbers,
    [...new Set(numbers)].sort((one, other) => one - other),
  )
  for (const [, , file = '', name = ''] of rows) assert.ok(read(file).includes(name), `${file}: ${name}`)
})

test('docs/accounts.md names an existing test for each permission and for each way that a session or key ends', () => {
  const tables = read('docs/accounts.md').split(/^## /m).slice(1).join('')
  const rows = [...tables.matchAll(/^\| .*\| `(test\/[\w./-]+)`: (.*) \|$/gm)]
  assert.equal(rows.length, (tables.match(/^\| /gm)?.length ?? 0) - 2)
  for (const [, file = '', name = ''] of rows) assert.ok(read(file).includes(name), `${file}: ${name}`)
})

test('every file that a documentation page names exists', () => {
  const pages = [
    'README.md',
    'CONTRIBUTING.md',
    ...readdirSync(new URL('../docs', import.meta.url))
      .filter(isPage)
      .map(name => `docs/${name}`),
  ]
  const missing = pages.flatMap(page => {
    const named = read(page).match(/(?<![\w/])(?:src|test|browser|examples|bench|scripts)\/[\w./-]*\w/g) ?? []
    return [...new Set(named)]
      .filter(path => !existsSync(new URL(`../${path}`, import.meta.url)))
      .map(path => `${page}: ${path}`)
  })
  assert.deepEqual(missing, [])
})

test('every link on a Markdown page leads to an existing file and heading', () => {
  const linked = globSync('**/*.md', { cwd: ROOT, exclude: ['**/node_modules/**'] })
  assert.ok(linked.length > 30)
  const broken = linked.flatMap(page =>
    [...read(page).matchAll(/(?<!`)\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)/g)]
      .filter(([, path = '', heading]) => !leadsSomewhere(page, path, heading))
      .map(([link]) => `${page}: ${link}`),
  )
  assert.deepEqual(broken, [])
})

test('every event that docs/troubleshooting.md explains exists', () => {
  const [, table = ''] = read('docs/troubleshooting.md').split('| event | means |')
  const codes = [...(table.split('\n\n', 1)[0] ?? '').matchAll(/^\| `(\w+)` \|/gm)].map(([, code = '']) => code)
  assert.ok(codes.length > 5)
  assert.deepEqual(
    codes.filter(code => !Object.hasOwn(EVENTS, code)),
    [],
  )
})

function leadsSomewhere(page: string, path: string, heading: string | undefined): boolean {
  const target =
    path === '' ? new URL(`../${page}`, import.meta.url) : new URL(path, new URL(`../${page}`, import.meta.url))
  if (!existsSync(target)) return false
  if (heading === undefined) return true
  const headings = [...readFileSync(target, 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, text = '']) => headingId(text))
  return headings.includes(decodeURIComponent(heading))
}

/** As GitHub makes it. */
function headingId(text: string): string {
  return text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-')
}

function isPage(name: string): boolean {
  return name.endsWith('.md')
}
