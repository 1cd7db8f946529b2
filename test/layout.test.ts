// The layout of docs/architecture.md: imports go one way and in no circle, and only the entry points read the environment and
// the clock.

import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** From the bottom up: a folder may import from all floors below its own, and from its own floor where `SHARED` says so. */
const FLOORS: readonly (readonly string[])[] = [
  ['util'],
  ['errors', 'events', 'measure', 'text', 'log', 'paths', 'config'],
  ['stores', 'provider', 'access'],
  ['session'],
  ['observe', 'pages'],
  ['server'],
  ['http'],
  ['identify'],
  ['doctor', 'proxy'],
  ['sign-in'],
  ['gateway'],
  ['keys', 'devices', 'token-exchange', 'hosts', 'portal'],
  ['account', 'api'],
  ['console'],
  ['assembly', 'menshen', 'dev-reload', 'options', 'setting-options', 'create-menshen', 'index'],
  ['adapters', 'cli', 'testing'],
]
/** Floors whose folders import from each other: the configuration and what it needs, and the assembly. */
const SHARED: readonly string[] = ['config', 'menshen']
/** The entry points: the command, and the library. */
const STARTS = ['src/cli/entry.ts', 'src/cli/main.ts', 'src/options.ts']
/** Shares nothing with the others; only the library's entry point and the command import it. */
const APART = 'dev-provider'
const IMPORTERS_OF_APART = ['options', 'cli']
/** Adapters import what an application may import, the errors, so that small adapters load nothing else, and how bundles share. */
const PUBLIC: readonly string[] = ['index', 'errors', 'dev-reload']

interface Source {
  /** From the project's root, with `/`. */
  path: string
  text: string
}

const scripts = [...filesIn('src'), ...filesIn('browser')].filter(({ path }) => /\.[jt]s$/.test(path))
const ours = scripts.filter(({ path }) => path.startsWith('src/'))

test('source files import only from their own folder and from the layers below it', () => {
  assert.deepEqual(ours.flatMap(wrongImports), [])
})

test('outside the development provider, node:http is imported only for its types (see util/node-http.ts)', () => {
  const isValue = ({ text }: Source) => /^import (?!type )[^']*from 'node:http'$/m.test(text)
  const isApart = ({ path }: Source) => path.startsWith(`src/${APART}/`)
  assert.deepEqual(
    ours.filter(file => isValue(file) && !isApart(file)).map(({ path }) => path),
    [],
  )
})

test('the import check finds a forbidden import in every syntax', () => {
  const wrong = (path: string, text: string) => wrongImports({ path, text }).length
  assert.equal(wrong('src/stores/memory.ts', "import { admit } from '../identify/admit.ts'"), 1)
  assert.equal(wrong('src/session/ticket.ts', "import type { Html } from '../pages/layout.ts'"), 1)
  assert.equal(wrong('src/session/ticket.ts', "import {\n  a,\n  b,\n} from '../pages/layout.ts'"), 1)
  assert.equal(wrong('src/provider/slots.ts', "export * from '../stores/store.ts'"), 1)
  assert.equal(wrong('src/pages/layout.ts', "const { routes } = await import('../gateway/routes.ts')"), 1)
  assert.equal(wrong('src/errors.ts', "import './index.ts'"), 1)
  assert.equal(wrong('src/util/recent.ts', "import { Secret } from '../config/secret.ts'"), 1)
  assert.equal(
    wrong('src/gateway/listener.ts', "import { startDevProvider } from '../dev-provider/dev-provider.ts'"),
    1,
  )
  assert.equal(wrong('src/dev-provider/dev-provider.ts', "import { Secret } from '../config/secret.ts'"), 1)
  assert.equal(wrong('src/attic/box.ts', "import './nail.ts'"), 1)
  assert.equal(wrong('src/gateway/listener.ts', "import { log } from '../attic/box.ts'"), 1)
  assert.equal(wrong('src/gateway/listener.ts', "import { x } from '../../test/kit/client.ts'"), 1)

  assert.equal(wrong('src/sign-in/login.ts', "import { loginPage } from '../pages/login-page.ts'"), 0)
  assert.equal(wrong('src/sign-in/login.ts', "import { a } from '../http/cookies.ts'\nimport { z } from 'zod'"), 0)
  assert.equal(wrong('src/gateway/routes.ts', "import { showRules } from '../console/rules-tab.ts'"), 1)
  assert.equal(wrong('src/console/rules-tab.ts', "import { pageAnswer } from '../http/answers.ts'"), 0)
  assert.equal(wrong('src/adapters/express.ts', "import type { GatewayRequest } from '../http/request.ts'"), 1)
  assert.equal(wrong('src/adapters/express.ts', "import { createCore } from '../menshen.ts'"), 1)
  assert.equal(wrong('src/gateway/listener.ts', "import { menshen } from '../adapters/express.ts'"), 1)
  assert.equal(wrong('src/adapters/express.ts', "import { MenshenError, type Menshen } from '../index.ts'"), 0)
  assert.equal(wrong('src/cli/main.ts', "import { startDevProvider } from '../dev-provider/dev-provider.ts'"), 0)
})

test('there are no circular imports, not even of types', () => {
  const graph = new Map(ours.map(source => [source.path, targetsOf(source)]))
  assert.deepEqual(circlesIn(graph), [])
})

test('the check for circular imports finds cycles of any length, each once', () => {
  const graph = new Map([
    ['a', ['b', 'd']],
    ['b', ['c']],
    ['c', ['a']],
    ['d', ['e']],
    ['e', ['d', 'f']],
    ['f', []],
  ])
  assert.deepEqual(circlesIn(graph), [
    ['a', 'b', 'c'],
    ['d', 'e'],
  ])
})

test('the import check sees every relative path of a script in the source', () => {
  for (const { path, text } of ours) {
    const mentioned = text.match(/(?<=['"`])\.\.?\/[^'"`\n]*\.[jt]s(?=['"`])/g) ?? []
    assert.deepEqual(importsOf(text).filter(isRelative).sort(), mentioned.sort(), path)
  }
})

test('only the entry points read the environment', () => {
  const readers = scripts.filter(({ text }) =>
    /process\s*(\.|\[\s*['"])env\b|\{[^}]*\benv\b[^}]*\}\s*=\s*process\b/.test(text),
  )
  assert.deepEqual(pathsOf(readers).sort(), STARTS)
  // The library reads one variable, and those that the configuration names.
  const library = ours.find(({ path }) => path === 'src/options.ts')
  assert.deepEqual(library?.text.match(/process\.env\S*/g), ['process.env.NODE_ENV', 'process.env)'])
})

test('nothing below the entry points reads the clock', () => {
  const readers = ours.filter(({ path, text }) => !STARTS.includes(path) && readsClock(text))
  assert.deepEqual(pathsOf(readers), [])
  // The entry points only hand it on.
  assert.deepEqual(pathsOf(ours.filter(({ text }) => /\bDate\.now\(|new Date\(\s*\)/.test(text))), [])
  for (const clock of ['Date.now()', 'new Date()', 'new Date( )', 'new Date', 'now = Date.now'])
    assert.ok(readsClock(clock), clock)
  assert.ok(!readsClock('new Date(at).toISOString()'))
})

test('the entry point of the command imports neither the gateway nor a store statically', () => {
  const loaded = new Set(['src/cli/entry.ts'])
  for (const file of loaded) {
    const text = ours.find(({ path }) => path === file)?.text ?? ''
    const values = text.replace(/^(?:import|export) type\b[^'"]*['"][^'"]+['"]/gm, '').replace(/\bimport\(/g, '')
    for (const target of targetsOf({ path: file, text: values })) loaded.add(target)
  }
  const heavy = ['assembly', 'gateway', 'menshen', 'proxy', 'session', 'stores']
  assert.deepEqual(
    [...loaded].filter(path => heavy.includes(folderOf(path))),
    [],
  )
})

test('every test folder matches one in src or is named in docs/architecture.md', () => {
  const [, named = ''] = readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8').split(/^test\/ /m)
  const folders = readdirSync(join(ROOT, 'test'), { withFileTypes: true }).filter(entry => entry.isDirectory())
  const isKnown = (name: string) =>
    existsSync(join(ROOT, 'src', name)) || existsSync(join(ROOT, 'src', `${name}.ts`)) || named.includes(` ${name}/`)
  assert.deepEqual(
    folders.map(({ name }) => name).filter(name => !isKnown(name)),
    [],
  )
})

test('only test/kit/set-up.ts defines setUp', () => {
  const builders = filesIn('test').filter(({ text }) =>
    /^(?:export )?(?:async )?(?:function|const) setUp\b/m.test(text),
  )
  assert.deepEqual(pathsOf(builders), ['test/kit/set-up.ts'])
})

test('browser scripts import only each other and the plotting library', () => {
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

test('every source file begins with a comment', () => {
  assert.deepEqual(pathsOf(scripts.filter(({ text }) => !text.startsWith('// '))), [])
})

test('every file that a source comment names exists', () => {
  const names = [...filesIn('src'), ...filesIn('browser'), ...filesIn('test'), ...filesIn('bench')].map(
    ({ path }) => path,
  )
  // A file of the application in the usage of an adapter.
  const elsewhere = ['instrumentation.ts', 'proxy.ts', 'menshen.ts']
  const missing = ours.flatMap(({ path, text }) =>
    (text.match(/^\s*(?:\/\/|\*|\/\*\*).*$/gm) ?? [])
      .flatMap(comment => comment.match(/(?<![\w.*/-])[\w/-]+\.ts\b/g) ?? [])
      .filter(named => !elsewhere.includes(named) && !names.some(name => `/${name}`.endsWith(`/${named}`)))
      .map(named => `${path}: ${named}`),
  )
  assert.deepEqual(missing, [])
})

test('the README has the commands npm ci && npm start and npm ci && npm test', () => {
  const readme = join(ROOT, 'README.md')
  assert.ok(existsSync(readme), 'README.md is missing')
  const text = readFileSync(readme, 'utf8')
  assert.match(text, /npm ci && npm start/)
  assert.match(text, /npm ci && npm test/)
})

function wrongImports({ path, text }: Source): string[] {
  return targetsOf({ path, text })
    .filter(target => !mayImport(folderOf(path), folderOf(target)))
    .map(target => `${path} imports ${target}`)
}

/** The paths of the files that a file imports. */
function targetsOf({ path, text }: Source): string[] {
  return importsOf(text)
    .filter(isRelative)
    .map(specifier => new URL(specifier, `file:///${path}`).pathname.slice(1))
}

/** Files that import each other, directly or through others: Tarjan's strongly connected components. */
function circlesIn(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const order = new Map<string, number>()
  const lowest = new Map<string, number>()
  const stack: string[] = []
  const circles: string[][] = []
  const lower = (file: string, number: number) => lowest.set(file, Math.min(lowest.get(file) ?? number, number))

  function search(file: string): void {
    order.set(file, order.size)
    lower(file, order.size - 1)
    stack.push(file)
    for (const target of graph.get(file) ?? []) {
      if (!order.has(target)) {
        search(target)
        lower(file, lowest.get(target) ?? 0)
      } else if (stack.includes(target)) lower(file, order.get(target) ?? 0)
    }
    if (lowest.get(file) !== order.get(file)) return
    const circle = stack.splice(stack.indexOf(file))
    if (circle.length > 1) circles.push(circle.sort())
  }

  for (const file of graph.keys()) if (!order.has(file)) search(file)
  return circles.sort()
}

function mayImport(folder: string, used: string): boolean {
  if (folder === APART || used === APART) return folder === used || IMPORTERS_OF_APART.includes(folder)
  if (folder === 'adapters') return folder === used || PUBLIC.includes(used)
  const [floor, below] = [floorOf(folder), floorOf(used)]
  if (floor < 0 || below < 0) return false
  const isShared = floor === below && SHARED.some(each => FLOORS[floor]?.includes(each))
  return folder === used || below < floor || isShared
}

/** `src/pages/home.ts` is in `pages`; `src/errors.ts` counts as a folder. */
function folderOf(path: string): string {
  return /^src\/([^/.]+)/.exec(path)?.[1] ?? path
}

function floorOf(folder: string): number {
  return FLOORS.findIndex(floor => floor.includes(folder))
}

/** The files that are imported or re-exported, statically or not, as values or as types. */
function importsOf(text: string): string[] {
  const statements = text.matchAll(/^(?:import|export)\b(?:[^'"`;]*?\bfrom)?\s*['"]([^'"]+)['"]/gm)
  const calls = text.matchAll(/\b(?:import|require)\(\s*['"]([^'"]+)['"]/g)
  const threads = text.matchAll(/\bnew URL\(\s*['"]([^'"]+\.[jt]s)['"], import\.meta\.url\)/g)
  return [...statements, ...calls, ...threads].map(([, specifier = '']) => specifier)
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
