// Several workers behind one port: together they behave as one process, and end as one.

import assert from 'node:assert/strict'
import { Agent, get } from 'node:http'
import { suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { createClient, signIn } from '../kit/client.ts'
import {
  type Instance,
  isAlive,
  isReady,
  isSentToLogin,
  isServed,
  refusesVisitors,
  setUpInstances,
  signedIn,
} from '../kit/instance.ts'
import { until } from '../kit/until.ts'

/** Much longer than a busy machine needs, and much shorter than a client waits. */
const HANGING_MS = 20_000

const BURST = 100
const DONE = { code: 0, signal: null }

test('two workers behave as one process', async t => {
  const { provider, start, dueUser } = await setUpInstances(t, { WORKERS: '2' })
  const menshen = await start()
  await until(() => menshen.workers().length === 2)
  let next: Instance | undefined

  for (const delay of [0, 1000])
    await t.test(
      `${BURST} concurrent requests for a due session cause one refresh at a provider that takes ${delay} ms`,
      async () => {
        const user = await dueUser(menshen)
        const before = provider.callsTo('refresh').length
        provider.answer('refresh', { kind: 'delay', ms: delay }, 'once')
        const pages = await Promise.all(Array.from({ length: BURST }, () => user.get(menshen)))
        assert.equal(pages.filter(isServed).length, BURST)
        assert.equal(provider.callsTo('refresh').length - before, 1)
        assert.equal(provider.reuses, 0)
      },
    )

  await t.test('both workers serve requests, and log lines name the worker', async () => {
    await until(async () => {
      // Together, because nothing promises that they take turns.
      await Promise.all([1, 2, 3, 4].map(() => signedIn(menshen, provider)))
      return workersThatSaid(menshen, 'sign_in').length === 2
    })
    assert.deepEqual(workersThatSaid(menshen, 'sign_in'), [1, 2])
  })

  await t.test('a sign-out in one worker takes effect in all workers immediately', async () => {
    for (let round = 0; round < 10; round++) {
      const user = await signedIn(menshen, provider)
      for (const page of await Promise.all([1, 2, 3, 4].map(() => user.get(menshen)))) assert.ok(isServed(page))
      await user.signOut(menshen)
      for (const page of await Promise.all([1, 2, 3, 4].map(() => user.get(menshen)))) assert.ok(isSentToLogin(page))
    }
  })

  await t.test('a killed worker is replaced, and the other one serves requests until then', async () => {
    const user = await signedIn(menshen, provider)
    const [dead = 0, living = 0] = menshen.workers()
    process.kill(dead, 'SIGKILL')
    await menshen.said(({ event, signal }) => event === 'worker_died' && signal === 'SIGKILL')
    for (let n = 0; n < 10; n++) assert.ok(isServed(await user.get(menshen)))
    await until(() => menshen.workers().length === 2)
    assert.ok(menshen.workers().includes(living) && !menshen.workers().includes(dead))
    await until(async () => {
      // Together, because nothing promises that they take turns.
      await Promise.all([1, 2, 3, 4].map(() => signedIn(menshen, provider)))
      return workersThatSaid(menshen, 'sign_in').includes(3)
    })
  })

  await t.test('no request hangs when a worker is killed', async () => {
    const user = await signedIn(menshen, provider)
    const [dying = 0] = menshen.workers()
    process.kill(dying, 'SIGKILL')
    assert.deepEqual(await hanging(Array.from({ length: 8 }, () => user.get(menshen))), [])
    await until(() => menshen.workers().length === 2)
    await until(async () => {
      // Together, because nothing promises that they take turns.
      await Promise.all([1, 2, 3, 4].map(() => signedIn(menshen, provider)))
      return workersThatSaid(menshen, 'sign_in').includes(4)
    })
  })

  await t.test('a worker that receives SIGTERM finishes its requests and is replaced', async () => {
    const before = provider.callsTo('token').length
    const release = provider.hold('token')
    const client = createClient(menshen.url)
    const attempt = signIn(client, provider)
    await provider.called('token', before + 1)
    const ending = menshen.workers()
    for (const pid of ending) process.kill(pid, 'SIGTERM')
    await until(() => menshen.lines.filter(({ event }) => event === 'stopping').length === 2)
    release()
    assert.equal((await attempt).headers.location, '/')
    // One that ends answers what the system has already accepted for it.
    await until(() => !ending.some(isAlive))
    await until(() => isReady(menshen.url))
    await until(() => menshen.workers().length === 2)
    assert.ok(isServed(await client.get('/')))
  })

  await t.test('kill -9 of the first process leaves no worker behind and frees the port', async () => {
    const workers = menshen.workers()
    await menshen.kill('SIGKILL')
    await until(() => !workers.some(isAlive))
    const PORT = new URL(menshen.url).port
    next = await start({ PORT, WORKERS: '1' })
    assert.ok(isServed(await (await signedIn(next, provider)).get(next)))
  })

  await t.test('a response during shutdown has Connection: close, so that clients send no further request', async t => {
    const last = next ?? assert.fail('it is not there')
    const agent = new Agent({ keepAlive: true })
    t.after(() => agent.destroy())
    const before = provider.callsTo('token').length
    const release = provider.hold('token')
    const answer = new Promise<string | undefined>((resolve, reject) => {
      get(`${last.url}/callback?code=${provider.codeFor()}&state=abc_idp`, { agent }, response => {
        resolve(response.resume().headers.connection)
      }).on('error', reject)
    })
    await provider.called('token', before + 1)
    const exited = last.kill('SIGTERM')
    await refusesVisitors(last)
    release()
    assert.equal(await answer, 'close')
    assert.deepEqual(await exited, DONE)
  })
})

suite('shutdown of one and of two workers', { concurrency: 2 }, () => {
  for (const [WORKERS, to] of [
    ['1', 'the first process'],
    ['2', 'the first process'],
    ['2', 'the whole group'],
  ] as const) {
    const signalled = (menshen: Instance, signal: NodeJS.Signals) =>
      to === 'the first process' ? menshen.kill(signal) : menshen.killAll(signal)

    test(`SIGTERM to ${to} with WORKERS=${WORKERS} lets a sign-in and a refresh in flight finish`, async t => {
      const { provider, start, dueUser } = await setUpInstances(t, { WORKERS })
      const menshen = await start()
      await until(() => menshen.workers().length === Number(WORKERS))
      const user = await dueUser(menshen)
      for (let n = 0; n < 4; n++) await signedIn(menshen, provider)
      const client = createClient(menshen.url)
      const releases = [provider.hold('token'), provider.hold('refresh')]
      const visit = user.get(menshen)
      const attempt = signIn(client, provider)
      await Promise.all([provider.called('refresh'), provider.called('token', 6)])
      const pids = [menshen.pid, ...menshen.workers()]
      const exited = signalled(menshen, 'SIGTERM')
      if (WORKERS === '2')
        // A sign-in and a refresh take their time, so that the end does too.
        await t.test(`no request that arrives during a SIGTERM to ${to} hangs`, async () => {
          const visits: Promise<unknown>[] = []
          for (let n = 0; n < 50; n++) {
            visits.push(
              createClient(menshen.url)
                .get('/_menshen/health')
                .catch(() => {}),
            )
            await pause(1)
          }
          assert.deepEqual(await hanging(visits), [])
        })
      await refusesVisitors(menshen)
      for (const release of releases) release()
      assert.ok(isServed(await visit))
      assert.equal((await attempt).headers.location, '/')
      assert.deepEqual(await exited, DONE)
      assert.ok(!pids.some(isAlive))
      assert.deepEqual(
        // One that had not finished its start ends at once, and the first process may say so.
        menshen.lines.filter(({ level, signal }) => level === 'error' && signal !== 'SIGTERM'),
        [],
      )
      const again = await start()
      const next = await createClient(again.url).get('/', {
        headers: { cookie: `menshen_session=${client.cookies.get('menshen_session')}` },
      })
      assert.ok(isServed(next))
      assert.ok(isServed(await user.get(again)))
      assert.equal(provider.reuses, 0)

      // A signal that comes a second after the first means now; until then it counts as the first.
      const release = provider.hold('token')
      const cutOff = signIn(createClient(again.url), provider).catch(() => 'cut off')
      await provider.called('token', 7)
      const workers = again.workers()
      const ended = signalled(again, 'SIGTERM')
      await refusesVisitors(again)
      const impatient = setInterval(() => signalled(again, 'SIGTERM'), 200)
      t.after(() => clearInterval(impatient))
      const { code } = await ended
      clearInterval(impatient)
      assert.notEqual(code, 0, 'something was cut off')
      assert.equal(await cutOff, 'cut off')
      await until(() => !workers.some(isAlive))
      release()
    })
  }
})

/** Which of the visits have come to no end, good or bad, after a while. */
async function hanging(visits: readonly Promise<unknown>[]): Promise<number[]> {
  const open = new Set(visits.keys())
  const all = visits.map((visit, n) =>
    visit
      .catch(() => {})
      .then(() => {
        open.delete(n)
      }),
  )
  await Promise.race([Promise.all(all), pause(HANGING_MS, undefined, { ref: false })])
  return [...open]
}

function workersThatSaid({ lines }: Instance, event: string): unknown[] {
  return [...new Set(lines.filter(line => line.event === event).map(({ worker }) => worker))].toSorted()
}
