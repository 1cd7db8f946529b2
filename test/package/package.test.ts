// The npm package as somebody gets it who installs it: packed once, put into an empty folder, and used in every way.
import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { createClient } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import { tempFolder } from '../kit/temp.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const TSC = join(ROOT, 'node_modules/.bin/tsc')
/** A fifth of it is sentences in two languages. */
const MAX_BYTES = 630_000
const { exports, peerDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
/** `menshen`, `menshen/assertion`, …: whatever an application can import. */
const DOORS = Object.keys(exports)
  .filter(name => !name.endsWith('.json'))
  .map(name => name.replace('.', 'menshen'))

const run = promisify(execFile)
const PATH = [dirname(process.execPath), process.env.PATH].join(delimiter)
/** As it is called here otherwise: a registry, a proxy or certificates may be set. */
const ENVIRONMENT = { ...process.env, PATH, npm_config_update_notifier: 'false', npm_config_fetch_retries: '1' }
const npm = (cwd: string, ...args: string[]) => run('npm', args, { cwd, env: ENVIRONMENT })

let folder: string
let tarball: Uint8Array
let application: string
let installed: { stdout: string; stderr: string }

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'menshen-package-'))
  await npm(ROOT, 'pack', '--pack-destination', folder)
  const [name = ''] = readdirSync(folder).filter(file => file.endsWith('.tgz'))
  tarball = readFileSync(join(folder, name))
  application = join(folder, 'application')
  mkdirSync(application)
  writeFileSync(join(application, 'package.json'), JSON.stringify({ name: 'application', private: true }))
  const compilers = setTraps()
  const env = { ...ENVIRONMENT, PATH: [compilers, PATH].join(delimiter) }
  const options = ['--prefer-offline', '--no-audit', '--foreground-scripts']
  installed = await run('npm', ['install', ...options, join(folder, name)], { cwd: application, env })
})

/** In place of whatever compiles: each leaves a trace, and fails. */
function setTraps(): string {
  const place = join(folder, 'compilers')
  mkdirSync(place)
  for (const name of ['node-gyp', 'make', 'cc', 'gcc', 'c++', 'g++', 'clang', 'python', 'python3'])
    writeFileSync(join(place, name), `#!/bin/sh\necho ${name} >> '${join(folder, 'compiled')}'\nexit 1\n`, {
      mode: 0o755,
    })
  return place
}

after(() => rmSync(folder, { recursive: true, force: true }))

suite('the package', () => {
  test('the package is smaller than 630 KB and contains only needed files, without paths of the build machine', () => {
    assert.ok(tarball.length < MAX_BYTES, `${tarball.length} bytes`)
    const files = readdirSync(packageFolder(), { recursive: true, encoding: 'utf8' })
    const wanted =
      /^(LICENSE|README(\.zh-CN)?\.md|package\.json|menshen\.schema\.json|bin\b.*|browser\b.*|dist\b.*|examples(\/systemd\b.*|\/nginx(\/gateway\.conf)?|\/prometheus(\/alerts\.yml)?)?)$/
    assert.deepEqual(
      files.filter(file => !wanted.test(file) || /\.(test\.|map$|tsbuildinfo$)/.test(file)),
      [],
    )
    assert.deepEqual(
      files.filter(file => /\.ts$/.test(file) && !/\.d\.ts$/.test(file)),
      [],
    )
    const places = files.filter(file => /\.(js|ts|json)$/.test(file) && read(file).includes(ROOT))
    assert.deepEqual(places, [], 'no place of the machine that packed it')
  })

  test('the package passes publint without a message', async () => {
    const { messages, pkg } = await publint({ pack: { tarball: tarball.slice().buffer }, strict: true })
    assert.deepEqual(
      messages.map(message => formatMessage(message, pkg, { color: false })),
      [],
    )
  })

  test('the package has correct types for every supported module resolution', async () => {
    const found = await checkPackage(createPackageFromTarballData(tarball))
    assert.ok(found.types)
    // Every Node that we run on can require a module; the resolution of Node 10 has left TypeScript.
    const problems = found.problems.filter(
      problem =>
        problem.kind !== 'CJSResolvesToESM' && !('resolutionKind' in problem && problem.resolutionKind === 'node10'),
    )
    assert.deepEqual(problems, [])
  })

  test('the package installs into an empty folder without warnings and without its peer dependencies', () => {
    const ofNpm = /Unknown (user|env) config/
    const warnings = installed.stderr.split('\n').filter(line => line && !ofNpm.test(line))
    assert.deepEqual(warnings, [])
    for (const peer of Object.keys(peerDependencies))
      assert.ok(!readdirSync(join(application, 'node_modules')).includes(peer))
  })

  test('installing the package compiles nothing, and no installed package has an install script or a native binary', () => {
    assert.deepEqual(nativeParts(join(application, 'node_modules')), [])
    assert.ok(!existsSync(join(folder, 'compiled')), 'a compiler was called')
  })

  test('the package names no repository, and its README has no link relative to the root of a host', () => {
    const { repository, homepage, bugs } = JSON.parse(read('package.json'))
    assert.deepEqual([repository, homepage, bugs], [undefined, undefined, undefined])
    // Those that begin at the root of a host would not be found there.
    assert.doesNotMatch(read('README.md'), /\]\(\/|src="\//)
  })

  test('the package reports in one sentence that it needs Node if an Edge runtime or a worker imports it', async () => {
    for (const [condition, name] of [
      ['edge-light', 'menshen/next'],
      ['edge-light', 'menshen'],
      ['workerd', 'menshen/hono'],
    ] as const) {
      const script = `import(${JSON.stringify(name)}).catch(error => console.log(error.message))`
      const { stdout } = await run(process.execPath, [`--conditions=${condition}`, '-e', script], { cwd: application })
      assert.match(stdout, /^Menshen needs Node and cannot run in an Edge runtime or a worker: .*\.\n$/, name)
    }
    // A bundler looks for the names before anything runs.
    const edge = read('dist/adapters/edge.js')
    for (const file of ['index', 'adapters/hono', 'adapters/next'])
      for (const [, name = ''] of read(`dist/${file}.js`).matchAll(/export (?:async )?(?:function|const) (\w+)/g))
        assert.match(edge, new RegExp(`refuse as ${name}\\b`))
    for (const [, names = ''] of read('dist/index.js').matchAll(/export \{([^}]*)\}/g))
      for (const name of names.split(',')) assert.match(edge, new RegExp(`refuse as ${name.trim()}\\b`))
  })

  test('the package reads a TypeScript configuration that imports it, in an application of modules or of CommonJS', async t => {
    for (const type of ['module', 'commonjs']) {
      const own = tempFolder(t)
      symlinkSync(join(application, 'node_modules'), join(own, 'node_modules'))
      writeFileSync(join(own, 'package.json'), JSON.stringify({ type }))
      const rules = "{ rules: [{ path: '/internal', roles: ['developer'] }] }"
      writeFileSync(
        join(own, 'menshen.config.ts'),
        `import { type Config, defineConfig } from 'menshen'\nconst config: Config = ${rules}\nexport default defineConfig(config)\n`,
      )
      const menshen = (...args: string[]) =>
        run(process.execPath, ['node_modules/menshen/bin/menshen.js', ...args], { cwd: own })
      const [checked, { stdout }] = await Promise.all([
        menshen('check'),
        menshen('rules', 'check', '/internal', '--role', 'common').catch(({ stdout }) => ({ stdout })),
      ])
      assert.match(checked.stdout, /^✔ All settings are valid\.\n[\s\S]*menshen\.config\.ts, 1 rule\n/, type)
      assert.match(stdout, /^GET \/internal as common: refused, by the rule/, type)
    }
  })

  test('the package starts with npx menshen and serves the login page', async t => {
    const [port, providerPort] = [await freePort(), await freePort()]
    const env = {
      PATH,
      HOME: process.env.HOME,
      PORT: `${port}`,
      DEV_PROVIDER_PORT: `${providerPort}`,
      STORE: `sqlite:${join(folder, 'data', 'menshen.db')}`,
    }
    const npx = spawn('npx', ['menshen'], {
      cwd: application,
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
    })
    t.after(() => endGroup(npx))
    let output = ''
    npx.stdout.setEncoding('utf8').on('data', text => {
      output += text
    })
    const closed = once(npx, 'close')
    while (!output.includes('"event":"started"'))
      await Promise.race([once(npx.stdout, 'data'), closed.then(() => assert.fail(output))])
    const client = createClient(`http://localhost:${port}`)
    const { status, text } = await client.get('/login')
    assert.equal(status, 200)
    const [, asset = ''] = /"(\/_menshen\/assets\/[^"]+\.css[^"]*)"/.exec(text) ?? []
    assert.equal((await client.get(asset)).status, 200)
    npx.kill('SIGTERM')
    await closed
  })

  test('every entry point of the package gives the same module by import and require, or names its missing framework', async () => {
    const script = `
      const results = {}
      const note = (name, error) => { results[name] = error ? (error.message.match(/'([^']+)' imported from/)?.[1] ?? error.message) : 'ok' }
      for (const name of ${JSON.stringify(DOORS)}) {
        try { require(name); note('require ' + name) } catch (error) { note('require ' + name, error) }
      }
      Promise.all(${JSON.stringify(DOORS)}.map(name => import(name).then(module => {
        note('import ' + name, require(name) === module ? undefined : new Error('not the same'))
      }, error => note('import ' + name, error)))).then(() => console.log(JSON.stringify(results)))`
    const file = join(application, 'required.cjs')
    writeFileSync(file, script)
    const { stdout, stderr } = await run(process.execPath, [file])
    assert.equal(stderr, '')
    const results: Record<string, string> = JSON.parse(stdout)
    assert.equal(Object.keys(results).length, 2 * DOORS.length)
    const peers = Object.keys(peerDependencies)
    const failed = Object.entries(results).filter(
      ([, result]) => result !== 'ok' && !peers.some(peer => result === peer || result.startsWith(`${peer}/`)),
    )
    assert.deepEqual(failed, [])
    assert.equal(results['require menshen'], 'ok')
  })

  test('the types of the package pass in a strict application, as a module, with a bundler and in CommonJS', async () => {
    const place = join(application, 'types')
    linkTypes()
    const consumer = readFileSync(new URL('consumer.ts', import.meta.url))
    const doors = DOORS.map((name, n) => `export * as door${n} from '${name}'\n`).join('')
    const projects = (['nodenext', 'bundler'] as const).map(moduleResolution => {
      const folder = join(place, moduleResolution)
      mkdirSync(folder, { recursive: true })
      const module = moduleResolution === 'bundler' ? 'esnext' : moduleResolution
      const compilerOptions = { ...STRICT, module, moduleResolution }
      writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions }))
      writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module' }))
      writeFileSync(join(folder, 'application.ts'), consumer)
      writeFileSync(join(folder, 'doors.ts'), doors)
      return folder
    })
    const old = "import menshen = require('menshen')\nexport const { createMenshen } = menshen\n"
    writeFileSync(join(place, 'nodenext', 'old.cts'), old)
    const built = run(process.execPath, [TSC, '-b', ...projects])
    const { stdout } = await built.catch((error: { stdout: string }) => error)
    assert.equal(stdout, '')
  })
})

const STRICT = {
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  target: 'es2024',
  lib: ['es2024', 'esnext.disposable', 'dom'],
  types: ['node'],
  skipLibCheck: true,
  noEmit: true,
}

function packageFolder(): string {
  return join(application, 'node_modules', 'menshen')
}

function read(file: string): string {
  return readFileSync(join(packageFolder(), file), 'utf8')
}

let isLinked = false

/** What an application with types has besides: those of Node, and of the frameworks that it uses. */
function linkTypes(): void {
  if (isLinked) return
  isLinked = true
  for (const name of ['@types', ...Object.keys(peerDependencies)]) {
    if (readdirSync(join(ROOT, 'node_modules')).includes(name))
      symlinkSync(join(ROOT, 'node_modules', name), join(application, 'node_modules', name))
  }
}

/** What a failed test has left behind. */
function endGroup({ pid }: ChildProcess): void {
  try {
    if (pid) process.kill(-pid, 'SIGKILL')
  } catch {
    // All have ended.
  }
}

/** What a package needs to run on this kind of machine alone, or a program that runs while it is installed. */
function nativeParts(modules: string): string[] {
  return readdirSync(modules, { recursive: true, encoding: 'utf8' }).filter(path => {
    if (/\.node$|(^|[\\/])binding\.gyp$/.test(path)) return true
    if (!/^((@[^\\/]+[\\/])?[^\\/]+[\\/](node_modules[\\/])?)+package\.json$/.test(path)) return false
    const { scripts = {}, os, cpu, gypfile } = JSON.parse(readFileSync(join(modules, path), 'utf8'))
    return Boolean(scripts.preinstall ?? scripts.install ?? scripts.postinstall ?? os ?? cpu ?? gypfile)
  })
}
