// Started by npm, as most people do: it ends when npm is told to end, and an old Node gets one sentence.

import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createClient } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import type { Environment } from '../kit/instance.ts'
import { npmPackages } from '../kit/live/cached-folder.ts'
import { tempFolder } from '../kit/temp.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const BIN = join(ROOT, 'bin', 'menshen.js')
const { version: VERSION } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
const VERSION_SHOWN = { status: 0, stdout: `${VERSION}\n`, stderr: '' }
const PATH = [dirname(process.execPath), process.env.PATH].join(delimiter)

suite('npm start', { concurrency: 2 }, () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    test(`${signal} to npm start shuts the server down gracefully`, async t => {
      await endsWith(t, signal, ['start'], ROOT, { STORE: 'memory:' })
    })

  test('SIGTERM to npm start stops the server with all its worker processes', async t => {
    await endsWith(t, 'SIGTERM', ['start'], ROOT, { STORE: `sqlite:${tempFolder(t)}/menshen.db`, WORKERS: '2' })
  })

  test('SIGTERM to npm start also stops the server in an application whose start script is "menshen"', async t => {
    await endsWith(t, 'SIGTERM', ['start'], application(t), { STORE: 'memory:' })
  })

  test('SIGTERM to npm exec menshen stops the server, as with npm start', async t => {
    await endsWith(t, 'SIGTERM', ['exec', 'menshen'], application(t), { STORE: 'memory:' })
  })
})

suite('an old Node', { concurrency: 2 }, () => {
  test('Node 20 exits with code 1 and a one-line error, but in a clone runs the Node that npm ci has installed', async t => {
    const node = await oldNode()
    if (!node) return t.skip('Node 20 cannot be installed: there is no way to the npm registry.')
    assertOneSentence(await run(node, [binAlone(t)]))
    const { status, stdout } = await run(node, [BIN, 'rules', 'check', '/'])
    assert.equal(status, 0, 'in a clone it leaves the work to the Node that npm ci has brought')
    assert.match(stdout, /^GET \/ as visitor: login/)
  })

  for (const version of ['18.20.0', '22.99.1', '24.14.9']) {
    test(`Node ${version} exits with code 1 and a one-line error that asks for Node 24.15 or newer`, async t => {
      assertOneSentence(await runAs(t, version, binAlone(t)))
    })

    test(`Node ${version} in a clone runs the Node that npm ci has installed`, async t => {
      assert.deepEqual(await runAs(t, version, BIN, ['--version']), VERSION_SHOWN)
      assert.equal((await runAs(t, version, BIN, ['nonsense'])).status, 2)
    })
  }

  test('an old Node exits with code 1 and a one-line error if the Node that npm ci has installed is too old as well', async t => {
    const bin = binAlone(t)
    const own = join(dirname(bin), '../node_modules/node')
    mkdirSync(own, { recursive: true })
    writeFileSync(join(own, 'package.json'), JSON.stringify({ version: '24.14.0' }))
    assertOneSentence(await runAs(t, '20.0.0', bin))
  })

  test('an old Node forwards SIGTERM to the Node that it has started, and exits with code 0 after it', async t => {
    const env = { PATH, STORE: 'memory:', PORT: String(await freePort()), DEV_PROVIDER_PORT: String(await freePort()) }
    const command = spawn(process.execPath, ['--import', pretend(t, '20.0.0'), BIN], {
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
    })
    t.after(() => endGroup(command))
    let output = ''
    command.stdout.setEncoding('utf8').on('data', text => {
      output += text
    })
    const closed = once(command, 'close')
    while (!output.includes('"event":"started"')) await once(command.stdout, 'data')
    command.kill('SIGTERM')
    assert.deepEqual(await closed, [0, null])
    assert.match(output, /"event":"stopped"/)
  })

  test('Node 24.15 and newer run Menshen themselves without an error, also in a clone with another Node', async t => {
    for (const version of ['24.15.0', '25.0.0', '100.1.0'])
      assert.deepEqual(await runAs(t, version, BIN, ['--version']), VERSION_SHOWN)
    const bin = binAlone(t)
    const clone = join(dirname(bin), '..')
    symlinkSync(join(ROOT, 'src'), join(clone, 'src'))
    mkdirSync(join(clone, 'node_modules/node/bin'), { recursive: true })
    writeFileSync(join(clone, 'node_modules/node/package.json'), JSON.stringify({ version: '26.0.0' }))
    writeFileSync(join(clone, 'node_modules/node/bin/node'), '#!/bin/sh\necho another Node\n', { mode: 0o755 })
    assert.deepEqual(await runAs(t, '24.15.0', bin, ['--version']), VERSION_SHOWN)
    assert.equal((await runAs(t, '24.14.0', bin, ['--version'])).stdout, 'another Node\n')
    const { status, stdout, stderr } = await runAs(t, '24.15.0')
    assert.deepEqual({ status, stderr }, { status: 0, stderr: '' })
    assert.match(stdout, /^GET \/ as visitor: login/)
  })
})

/** Resolves when the last process that holds npm's output has ended. */
async function endsWith(t: TestContext, signal: NodeJS.Signals, args: string[], cwd: string, more: Environment) {
  const PORT = String(await freePort())
  const { HOME } = process.env
  const env = {
    PATH,
    HOME,
    PORT,
    DEV_PROVIDER_PORT: String(await freePort()),
    npm_config_update_notifier: 'false',
    ...more,
  }
  const npm = spawn('npm', args, { cwd, env, stdio: ['ignore', 'pipe', 'inherit'], detached: true })
  t.after(() => endGroup(npm))
  let output = ''
  npm.stdout.setEncoding('utf8').on('data', text => {
    output += text
  })
  const closed = once(npm, 'close')
  while (!output.includes('"event":"started"')) await once(npm.stdout, 'data')
  const { status } = await createClient(`http://localhost:${PORT}`).get('/_menshen/health')
  assert.equal(status, 200)
  npm.kill(signal)
  await closed
  assert.match(output, /"event":"stopped"/)
  await assert.rejects(createClient(`http://localhost:${PORT}`).get('/'), { code: 'ECONNREFUSED' })
}

/** What a failed test has left behind. */
function endGroup({ pid }: ChildProcess): void {
  try {
    if (pid) process.kill(-pid, 'SIGKILL')
  } catch {
    // All have ended.
  }
}

/** A project of somebody who has installed the package. */
function application(t: TestContext): string {
  const folder = tempFolder(t)
  mkdirSync(join(folder, 'node_modules', '.bin'), { recursive: true })
  symlinkSync(BIN, join(folder, 'node_modules', '.bin', 'menshen'))
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'application', scripts: { start: 'menshen' } }))
  return folder
}

/** The command without anything that npm would have brought. */
function binAlone(t: TestContext): string {
  const folder = tempFolder(t)
  cpSync(join(ROOT, 'bin'), join(folder, 'bin'), { recursive: true })
  cpSync(join(ROOT, 'package.json'), join(folder, 'package.json'))
  return join(folder, 'bin', 'menshen.js')
}

/** What makes Node say that it is this version. */
function pretend(t: TestContext, version: string): string {
  const script = join(tempFolder(t), 'version.mjs')
  writeFileSync(script, `Object.defineProperty(process, 'versions', { value: { node: '${version}' } })`)
  return script
}

function runAs(t: TestContext, version: string, bin = BIN, args = ['rules', 'check', '/']): Promise<Result> {
  return run(process.execPath, ['--import', pretend(t, version), bin, ...args])
}

interface Result {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

function run(program: string, args: readonly string[]): Promise<Result> {
  const { promise, resolve } = Promise.withResolvers<Result>()
  const child = execFile(program, args, (_error, stdout, stderr) => resolve({ status: child.exitCode, stdout, stderr }))
  return promise
}

function assertOneSentence({ status, stdout, stderr }: Result): void {
  assert.equal(status, 1)
  assert.equal(stdout, '')
  assert.match(stderr, /^Menshen needs Node 24\.15 or newer, and this is [\d.]+; .*\.\n$/)
}

/** The oldest line that people still have, as the npm registry brings it. `undefined` if it cannot be had here. */
async function oldNode(): Promise<string | undefined> {
  const name = `node-${process.platform}-${process.arch}`
  const packages = await npmPackages('old-node', [`${name}@20.20.2`])
  return packages && join(dirname(packages.resolve(`${name}/package.json`)), 'bin', 'node')
}
