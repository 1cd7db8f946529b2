// The gateway as docs/architecture.md draws it: imports go one way, and the environment and the clock are read at the top only.

import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** The floors, from the ground up: a folder may use its own floor's folders where `SHARED` says so, and all those below it. */
const FLOORS: readonly (readonly string[])[] = [
  ['util', 'errors', 'events', 'measure', 'phrases', 'log', 'paths', 'config'],
  ['stores', 'provider', 'access'],
  ['session'],
  ['observe', 'pages'],
  ['doctor'],
  ['proxy', 'gateway', 'console'],
  ['menshen', 'options', 'index'],
  ['adapters', 'cli'],
]
/** Floors whose folders use each other: the ground, the way of a request, and the assembly. */
const SHARED: readonly string[] = ['util', 'proxy', 'menshen']
/** Where a program starts: the command, and the library. */
const STARTS = ['src/cli/main.ts', 'src/options.ts']
/** Shares nothing with the others; only the library's start and the command know it. */
const APART = 'dev-provider'
const KNOW_IT = ['options', 'cli']
/** What an application may import, the adapters may too; and the errors, so that the light ones load nothing else. */
const DOORS: readonly string[] = ['index', 'errors']

interface Source {
  /** From the project's root, with `/`. */
  path: string
  text: string
}

const scripts = [...filesIn('src'), ...filesIn('browser')].filter(({ path }) => /\.[jt]s$/.test(path))
const ours = scripts.filter(({ path }) => path.startsWith('src/'))

test('imports go one way, from the command down to the errors', () => {
  assert.deepEqual(ours.flatMap(wrongImports), [])
})

test('the check of the imports sees a wrong one, however it is written', () => {
  const wrong = (path: string, text: string) => wrongImports({ path, text }).length
  assert.equal(wrong('src/stores/memory-store.ts', "import { admit } from '../gateway/admission.ts'"), 1)
  assert.equal(wrong('src/session/ticket.ts', "import type { Html } from '../pages/layout.ts'"), 1)
  assert.equal(wrong('src/session/ticket.ts', "import {\n  a,\n  b,\n} from '../pages/layout.ts'"), 1)
  assert.equal(wrong('src/provider/slots.ts', "export * from '../stores/store.ts'"), 1)
  assert.equal(wrong('src/pages/home.ts', "const { routes } = await import('../gateway/routes.ts')"), 1)
  assert.equal(wrong('src/errors.ts', "import './index.ts'"), 1)
  assert.equal(
    wrong('src/gateway/listener.ts', "import { startDevProvider } from '../dev-provider/dev-provider.ts'"),
    1,
  )
  assert.equal(wrong('src/dev-provider/dev-provider.ts', "import { Secret } from '../config/secret.ts'"), 1)
  assert.equal(wrong('src/attic/box.ts', "import './nail.ts'"), 1)
  assert.equal(wrong('src/gateway/listener.ts', "import { log } from '../attic/box.ts'"), 1)
  assert.equal(wrong('src/gateway/listener.ts', "import { x } from '../../test/kit/client.ts'"), 1)

  assert.equal(wrong('src/gateway/routes/login.ts', "import { loginPage } from '../../pages/login-page.ts'"), 0)
  assert.equal(wrong('src/gateway/routes/login.ts', "import { a } from '../cookies.ts'\nimport { z } from 'zod'"), 0)
  assert.equal(wrong('src/adapters/express.ts', "import type { GatewayRequest } from '../gateway/request.ts'"), 1)
  assert.equal(wrong('src/adapters/express.ts', "import { createCore } from '../menshen.ts'"), 1)
  assert.equal(wrong('src/gateway/listener.ts', "import { menshen } from '../adapters/express.ts'"), 1)
  assert.equal(wrong('src/adapters/express.ts', "import { MenshenError, type Menshen } from '../index.ts'"), 0)
  assert.equal(wrong('src/cli/main.ts', "import { startDevProvider } from '../dev-provider/dev-provider.ts'"), 0)
})

test('no two files have the same name, so that a name finds its file', () => {
  const names = ours.map(({ path }) => path.slice(path.lastIndexOf('/') + 1))
  assert.deepEqual(
    names.filter((name, n) => names.indexOf(name) < n),
    [],
  )
})

test('every path of a script that stands in the code was seen as an import', () => {
  for (const { path, text } of ours) {
    const mentioned = text.match(/(?<=['"`])\.\.?\/[^'"`\n]*\.[jt]s(?=['"`])/g) ?? []
    assert.deepEqual(importsOf(text).filter(isRelative).sort(), mentioned.sort(), path)
  }
})

test('only the two doors read the environment', () => {
  const readers = scripts.filter(({ text }) =>
    /process\s*(\.|\[\s*['"])env\b|\{[^}]*\benv\b[^}]*\}\s*=\s*process\b/.test(text),
  )
  assert.deepEqual(pathsOf(readers).sort(), STARTS)
  // The library asks it one thing alone.
  const library = ours.find(({ path }) => path === STARTS[1])
  assert.deepEqual(library?.text.match(/process\.env\S*/g), ['process.env.NODE_ENV'])
})

test('nothing below the two doors reads the clock by itself', () => {
  const readers = ours.filter(({ path, text }) => !STARTS.includes(path) && readsClock(text))
  assert.deepEqual(pathsOf(readers), [])
  // The doors themselves only hand it on.
  assert.deepEqual(pathsOf(ours.filter(({ text }) => /\bDate\.now\(|new Date\(\s*\)/.test(text))), [])
  for (const clock of ['Date.now()', 'new Date()', 'new Date( )', 'new Date', 'now = Date.now'])
    assert.ok(readsClock(clock), clock)
  assert.ok(!readsClock('new Date(at).toISOString()'))
})

test('what runs in the browser imports nothing but its neighbours', () => {
  const browser = scripts.filter(({ path }) => path.startsWith('browser/'))
  assert.ok(browser.length > 0)
  const neighbours = browser.map(({ path }) => path.replace('browser/', './'))
  // Types come from anywhere; the plotting library is served beside our own scripts.
  const withoutTypes = (text: string) => text.replace(/^\/\*\* @typedef .*$/gm, '')
  const served = [...neighbours, './uplot.js']
  const scriptsOnly = browser.filter(({ path }) => !path.endsWith('.d.ts'))
  const others = scriptsOnly.flatMap(({ text }) => importsOf(withoutTypes(text))).filter(path => !served.includes(path))
  assert.deepEqual(others, [])
})

test('every file begins by saying what it is for', () => {
  assert.deepEqual(pathsOf(scripts.filter(({ text }) => !text.startsWith('// '))), [])
})

test('the README has the two commands that work with nothing configured', () => {
  const readme = join(ROOT, 'README.md')
  assert.ok(existsSync(readme), 'README.md is missing')
  const text = readFileSync(readme, 'utf8')
  assert.match(text, /npm ci && npm start/)
  assert.match(text, /npm ci && npm test/)
})

function wrongImports({ path, text }: Source): string[] {
  return importsOf(text)
    .filter(isRelative)
    .map(specifier => new URL(specifier, `file:///${path}`).pathname.slice(1))
    .filter(target => !mayImport(roomOf(path), roomOf(target)))
    .map(target => `${path} imports ${target}`)
}

function mayImport(room: string, used: string): boolean {
  if (room === APART || used === APART) return room === used || KNOW_IT.includes(room)
  if (room === 'adapters') return room === used || DOORS.includes(used)
  const [floor, below] = [floorOf(room), floorOf(used)]
  if (floor < 0 || below < 0) return false
  const isShared = floor === below && SHARED.some(each => FLOORS[floor]?.includes(each))
  return room === used || below < floor || isShared
}

/** `src/pages/home.ts` is in `pages`, and `src/errors.ts` is a room of its own. */
function roomOf(path: string): string {
  return /^src\/([^/.]+)/.exec(path)?.[1] ?? path
}

function floorOf(room: string): number {
  return FLOORS.findIndex(floor => floor.includes(room))
}

/** What the file imports or hands on, statically or not, as a value or as a type. */
function importsOf(text: string): string[] {
  const statements = text.matchAll(/^(?:import|export)\b(?:[^'"`;]*?\bfrom)?\s*['"]([^'"]+)['"]/gm)
  const calls = text.matchAll(/\b(?:import|require)\(\s*['"]([^'"]+)['"]/g)
  return [...statements, ...calls].map(([, specifier = '']) => specifier)
}

function isRelative(specifier: string): boolean {
  return specifier.startsWith('.')
}

function readsClock(text: string): boolean {
  return /\bDate\.now\b|\bnew Date\b(?!\s*\(\s*[^\s)])/.test(text)
}

function filesIn(folder: string): Source[] {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
    .map(file => ({ path: relative(ROOT, file).replaceAll('\\', '/'), text: readFileSync(file, 'utf8') }))
}

function pathsOf(sources: readonly Source[]): string[] {
  return sources.map(({ path }) => path)
}
