// Signals: SIGHUP ends what runs on a terminal, and nothing else; one to all processes ends all, and no worker is replaced.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createClient } from '../kit/client.ts'
import { signInAtDevProvider } from '../kit/dev-sign-in.ts'
import { freePort } from '../kit/free-port.ts'
import { isAlive, isReady, refusesVisitors, setUpInstances, startInstance } from '../kit/instance.ts'
import { requireUtilLinux } from '../kit/requirements.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'

const MAIN = fileURLToPath(new URL('../../bin/menshen.js', import.meta.url))

test('without a terminal, Menshen and its workers keep running after SIGHUP, with WORKERS=1 and WORKERS=2', async t => {
  for (const WORKERS of ['1', '2']) {
    const { start } = await setUpInstances(t, { WORKERS })
    const instance = await start()
    // One worker may be ready before the first process is.
    await until(() => instance.lines.some(({ event }) => event === 'started'))
    const workers = instance.workers()
    for (let n = 0; n < 3; n++) process.kill(instance.pid, 'SIGHUP')
    assert.ok(await isReady(instance.url))
    assert.ok([instance.pid, ...workers].every(isAlive))
    assert.deepEqual(instance.workers(), workers)
    assert.deepEqual(await instance.killAll('SIGTERM'), { code: 0, signal: null })
  }
})

test('SIGHUP signals while a worker is starting are combined into one, and it gets that as soon as it serves', async t => {
  const { folder, start } = await setUpInstances(t)
  const CONFIG = `import { existsSync } from 'node:fs'
while (!existsSync('go')) await new Promise(done => setTimeout(done, 20))
export default {}
`
  writeFileSync(join(folder, 'menshen.config.ts'), CONFIG)
  writeFileSync(join(folder, 'go'), '')
  const instance = await start()
  const [first = 0] = instance.workers()
  rmSync(join(folder, 'go'))
  process.kill(first, 'SIGKILL')
  await until(() => instance.workers().some(pid => pid !== first))
  for (let n = 0; n < 30; n++) {
    process.kill(instance.pid, 'SIGHUP')
    await pause(5)
  }
  writeFileSync(join(folder, 'go'), '')
  await instance.said(({ event }) => event === 'config_reloaded')
  assert.deepEqual(
    instance.output.filter(line => !line.startsWith('{')),
    [],
  )
})

test('a worker that receives a signal to all processes before the primary does is not reported as an error', async t => {
  const { start } = await setUpInstances(t, { WORKERS: '2' })
  const instance = await start()
  await until(() => instance.lines.some(({ event }) => event === 'started'))
  const [worker = 0] = instance.workers()
  process.kill(worker, 'SIGINT')
  await until(() => !isAlive(worker))
  assert.deepEqual(await instance.killAll('SIGINT'), { code: 0, signal: null })
  assert.deepEqual(
    instance.lines.filter(({ level }) => level === 'error'),
    [],
  )
})

test('a worker that is shutting down serves new connections while the primary still has the socket open', async t => {
  const { start } = await setUpInstances(t)
  const instance = await start()
  const [worker = 0] = instance.workers()
  process.kill(instance.pid, 'SIGSTOP')
  try {
    process.kill(worker, 'SIGTERM')
    await instance.said(({ event }) => event === 'stopping')
    assert.equal((await createClient(instance.url).get('/_menshen/health')).status, 200)
  } finally {
    process.kill(instance.pid, 'SIGCONT')
  }
  await instance.said(({ event }) => event === 'stopped')
  assert.deepEqual(await instance.kill('SIGTERM'), { code: 0, signal: null })
})

test('during a shutdown, the development provider responds until the last request is complete', async t => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const upstream = await startUpstream(t, async (_, response) => {
    await released
    response.end('done')
  })
  const DEV_PROVIDER_PORT = String(await freePort())
  const instance = await startInstance({ STORE: 'memory:', UPSTREAM: upstream.url, DEV_PROVIDER_PORT })
  t.after(() => instance.killAll('SIGKILL'))
  const visitor = createClient(instance.url)
  await signInAtDevProvider(visitor, 'zhangsan')
  const page = visitor.get('/')
  await until(() => upstream.received.length === 1)
  const exited = instance.kill('SIGTERM')
  await refusesVisitors(instance)
  assert.equal((await createClient(`http://localhost:${DEV_PROVIDER_PORT}`).get('/')).status, 200)
  release()
  assert.equal((await page).text, 'done')
  assert.deepEqual(await exited, { code: 0, signal: null })
})

test('on a terminal, SIGHUP ends Menshen', async t => {
  const [PORT, DEV_PROVIDER_PORT] = [String(await freePort()), String(await freePort())]
  const { PATH, HOME } = process.env
  const env = { PATH, HOME, PORT, DEV_PROVIDER_PORT, STORE: 'memory:', SHELL: '/bin/sh' }
  const command = `exec ${process.execPath} ${MAIN}`
  const stdio = ['pipe', 'ignore', 'ignore'] as const
  const terminal = spawn(requireUtilLinux('script'), ['-qec', command, '/dev/null'], {
    cwd: tempFolder(t),
    env,
    stdio: [...stdio],
  })
  t.after(() => terminal.kill('SIGKILL'))
  const exited = once(terminal, 'exit')
  await until(() => isReady(`http://localhost:${PORT}`))
  const children = readFileSync(`/proc/${terminal.pid}/task/${terminal.pid}/children`, 'utf8')
  const pid = Number(children.trim())
  process.kill(pid, 'SIGHUP')
  await exited
  assert.ok(!isAlive(pid))
})
