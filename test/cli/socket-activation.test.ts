// A socket that a service manager hands over: served by one process or several, restarted without a refused connection, and
// refused in one sentence if it is none.

import assert from 'node:assert/strict'
import { type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { get } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { suite, type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { takeInheritedSocket } from '../../src/cli/inherited-socket.ts'
import { createClient } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import { isReady, signedIn } from '../kit/instance.ts'
import { requireProgram } from '../kit/requirements.ts'
import { openScriptedProvider } from '../kit/scripted-provider.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'
import { startServiceManager } from './service-manager.ts'

const MAIN = fileURLToPath(new URL('../../bin/menshen.js', import.meta.url))

for (const WORKERS of ['1', '2'])
  test(`with an inherited socket and WORKERS=${WORKERS}, a restart under load refuses no connection`, async t => {
    const { manager, provider, url } = await startManaged(t, { WORKERS })
    await until(() => isReady(url))
    await manager.said('started')
    assert.equal(manager.lines.find(({ event }) => event === 'started')?.listening, 'descriptor 3, inherited')
    const user = await signedIn({ url }, provider)
    const statuses = new Map<number | string, number>()
    let isOver = false
    const visits: Promise<void>[] = []
    const count = (status: number | string) => void statuses.set(status, (statuses.get(status) ?? 0) + 1)
    const come = async () => {
      while (!isOver) {
        visits.push(
          user.get({ url }).then(
            ({ status }) => count(status),
            ({ code }) => count(code),
          ),
        )
        await pause(5)
      }
    }
    const coming = come()
    await until(() => statuses.has(200))
    process.kill(manager.menshen(), 'SIGTERM')
    await manager.said('started', 2)
    isOver = true
    await coming
    await Promise.all(visits)
    assert.deepEqual([...statuses.keys()], [200], JSON.stringify([...statuses]))
    assert.equal(manager.lines.find(({ event }) => event === 'ended')?.status, 0)
    t.diagnostic(`${statuses.get(200)} pages`)
  })

test('all LISTEN_* variables are removed from the environment, so that child processes do not inherit them', () => {
  const environment = {
    LISTEN_FDS: '0',
    LISTEN_PID: '1',
    LISTEN_FDNAMES: 'menshen.socket',
    LISTEN_PIDFDID: '1',
    PATH: '',
  }
  assert.equal(takeInheritedSocket(environment), undefined)
  assert.deepEqual(environment, { PATH: '' })
})

test('when all workers die at once, Menshen exits and is restarted, and a request sent in between is served', async t => {
  const { manager, url } = await startManaged(t, { WORKERS: '2' })
  await until(() => isReady(url))
  const first = manager.menshen()
  const workers = () =>
    readFileSync(`/proc/${first}/task/${first}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number)
  await until(() => workers().length === 2)
  for (const worker of workers()) process.kill(worker, 'SIGKILL')
  await manager.said('inherited_socket_lost')
  assert.equal((await createClient(url).get('/_menshen/health')).status, 200)
  assert.notEqual(manager.menshen(), first)
})

test('under systemd-socket-activate, the first request starts Menshen and is served', async t => {
  const program = requireProgram('systemd-socket-activate')
  const port = await freePort()
  const [folder, providerPort] = [tempFolder(t), await freePort()]
  const env = [`BASE_URL=http://localhost:${port}`, `DEV_PROVIDER_PORT=${providerPort}`, 'STORE=memory:']
  const given = env.flatMap(one => ['-E', one])
  const child = spawn(program, ['-l', `127.0.0.1:${port}`, ...given, process.execPath, MAIN], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const closed = once(child, 'close')
  t.after(() => {
    child.kill('SIGKILL')
    return closed
  })
  await once(child.stderr, 'data')
  child.stderr.resume()
  const [response] = await once(get({ host: '127.0.0.1', port, path: '/login' }), 'response')
  assert.equal(response.statusCode, 200)
  response.resume()
  child.kill('SIGTERM')
  assert.deepEqual(await closed, [0, null])
})

suite('an invalid inherited socket', { concurrency: 4 }, () => {
  const shell = (variables: string) => `${variables} exec "$@"`

  for (const [name, given, sentence] of [
    [
      'a socket for another process',
      { LISTEN_FDS: '1', LISTEN_PID: '1' },
      /^LISTEN_PID is "1" and this process is \d+: /,
    ],
    ['a socket without LISTEN_PID', { LISTEN_FDS: '1' }, /^LISTEN_PID is "" and this process is \d+: /],
    [
      'one of two inherited sockets',
      { LISTEN_FDS: '2', LISTEN_PID: String(process.pid) },
      /^LISTEN_FDS is "2"; expected one listening TCP socket/,
    ],
    [
      'an invalid LISTEN_FDS',
      { LISTEN_FDS: '1x', LISTEN_PID: String(process.pid) },
      /^LISTEN_FDS is "1x"; expected one listening TCP socket/,
    ],
  ] as const)
    test(`${name} is refused with a one-line error that stops the start`, () => {
      assert.throws(
        () => takeInheritedSocket({ ...given }),
        (error: Error & { code?: string }) => {
          assert.equal(error.code, 'cannot_start')
          assert.match(error.message, sentence)
          assert.equal(error.message.split('\n').length, 1)
          return true
        },
      )
    })

  for (const [name, variables, third, sentence] of [
    [
      'one of two inherited sockets',
      'LISTEN_FDS=2 LISTEN_PID=$$',
      'ignore',
      /^LISTEN_FDS is "2"; expected one listening TCP socket/,
    ],
    [
      'a file as descriptor 3',
      'LISTEN_FDS=1 LISTEN_PID=$$',
      'ignore',
      /^Descriptor 3 is not a socket, although LISTEN_FDS names it; /,
    ],
    [
      'a connection as descriptor 3',
      'LISTEN_FDS=1 LISTEN_PID=$$',
      'pipe',
      /^Descriptor 3 cannot be listened on \(EINVAL\); /,
    ],
    [
      'a missing descriptor 3',
      'LISTEN_FDS=1 LISTEN_PID=$$',
      undefined,
      /^Descriptor 3 (is not a socket|cannot be listened on)/,
    ],
  ] as const)
    test(`${name} stops the start with a one-line error and exit code 1`, async t => {
      const stdio: SpawnOptions['stdio'] = ['ignore', 'ignore', 'pipe', ...(third ? [third] : [])]
      const child = spawn('sh', ['-c', shell(variables), 'sh', process.execPath, MAIN], {
        cwd: tempFolder(t),
        env: { PATH: process.env.PATH, STORE: 'memory:', DEV_PROVIDER_PORT: String(await freePort()) },
        stdio,
      })
      const closed = once(child, 'close')
      assert.ok(child.stderr)
      const said = await text(child.stderr)
      assert.match(said, sentence)
      assert.equal(said.trimEnd().split('\n').length, 1)
      assert.deepEqual(await closed, [1, null])
    })

  for (const [kind, code] of [
    ['udp', 'EINVAL'],
    ['unix', 'ENOTSUP'],
  ] as const)
    test(`an inherited ${kind} socket stops the start with an error and exit code 1`, async t => {
      const cwd = tempFolder(t)
      const place = kind === 'unix' ? join(cwd, 'socket') : String(await freePort())
      const env = { STORE: 'memory:', DEV_PROVIDER_PORT: String(await freePort()) }
      const { lines, closed } = startServiceManager(t, { kind, place, cwd, env })
      await closed
      assert.equal(lines[0]?.event.split('; ')[0], `Descriptor 3 cannot be listened on (${code})`)
      assert.equal(lines.at(-1)?.status, 1)
    })
})

async function startManaged(t: TestContext, env: Record<string, string>) {
  const provider = await openScriptedProvider(t)
  const [cwd, place] = [tempFolder(t), String(await freePort())]
  const url = `http://localhost:${place}`
  // Another port: the socket alone says where it listens.
  const own = {
    BASE_URL: url,
    PORT: String(await freePort()),
    STORE: 'sqlite:data/menshen.db',
    RATE_LIMIT_PER_MINUTE: '0',
  }
  const manager = startServiceManager(t, { place, cwd, env: { ...provider.settings, ...own, ...env } })
  return { manager, provider, url }
}
