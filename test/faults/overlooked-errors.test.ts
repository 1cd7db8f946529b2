// Errors that no code handles, planted from outside: a rejection changes nothing for anyone, and an exception costs no request and
// no session.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { createRestartBackoff } from '../../src/cli/workers.ts'
import { createClient, signIn } from '../kit/client.ts'
import { type Instance, isAlive, isServed, setUpInstances, signedIn } from '../kit/instance.ts'
import { until } from '../kit/until.ts'

const PLANTS = `
process.on('SIGUSR2', () => void Promise.reject(new Error('planted rejection')))
process.on('SIGALRM', () => setImmediate(() => { throw new Error('planted exception') }))
`

suite('unhandled errors', { concurrency: 2 }, () => {
  for (const WORKERS of ['1', '2'])
    test(`with WORKERS=${WORKERS}`, async t => {
      const { provider, menshen } = await startPlanted(t, WORKERS)
      const user = await signedIn(menshen, provider)

      await t.test(
        `after an uncaught exception requests in flight finish and the worker is replaced, with WORKERS=${WORKERS}`,
        async t => {
          const workers = menshen.workers()
          const before = provider.callsTo('token').length
          const release = provider.hold('token')
          const client = createClient(menshen.url)
          const attempt = signIn(client, provider, { username: 'lisi' })
          await provider.called('token', before + 1)
          const visits = keepVisiting(t, () => user.get(menshen))
          for (const worker of workers) process.kill(worker, 'SIGALRM')
          await until(() => errorsOf(menshen, 'exception').length === workers.length)
          await until(() => eventsOf(menshen, 'stopping').length === workers.length)
          release()
          assert.equal((await attempt).headers.location, '/', 'the sign-in that was in flight succeeds')
          await until(() => !workers.some(isAlive))
          await until(() => menshen.workers().length === workers.length)
          assert.deepEqual(await visits.end(), [], 'no request is lost in between')
          assert.ok(isServed(await client.get('/')))
          assert.ok(isServed(await user.get(menshen)), 'sessions stay')
          await until(() => eventsOf(menshen, 'worker_died').length === workers.length)
          for (const { exitCode } of eventsOf(menshen, 'worker_died')) assert.equal(exitCode, 1)
          assert.ok(isAlive(menshen.pid))
        },
      )

      if (WORKERS === '1')
        await t.test('the only worker is replaced when it is killed', async () => {
          const [worker = 0] = menshen.workers()
          process.kill(worker, 'SIGKILL')
          await menshen.said(({ event, signal }) => event === 'worker_died' && signal === 'SIGKILL')
          await until(() => user.get(menshen).then(isServed, () => false))
        })

      // Last: the workers that had a rejection end with code 0, too.
      await t.test(
        `an unhandled rejection is logged and counted, and the workers keep running, with WORKERS=${WORKERS}`,
        async () => {
          await until(() => isSettled(menshen, Number(WORKERS)))
          const workers = menshen.workers()
          const counted = await internalErrors(menshen)
          for (const worker of workers) process.kill(worker, 'SIGUSR2')
          await until(() => errorsOf(menshen, 'rejection').length === workers.length)
          for (const { err } of errorsOf(menshen, 'rejection'))
            assert.match(String(stackOf(err)), /planted rejection\n +at /)
          assert.ok(isServed(await user.get(menshen)))
          assert.equal((await internalErrors(menshen)) - counted, workers.length)
          assert.deepEqual(menshen.workers(), workers)
          assert.deepEqual(await menshen.stop(), { code: 0, signal: null })
        },
      )
    })

  test('workers that keep dying are replaced after growing pauses of up to 15 seconds', () => {
    let now = 0
    const pauseMs = createRestartBackoff(1, () => now)
    const pauses = Array.from({ length: 8 }, pauseMs)
    assert.deepEqual(pauses, [500, 500, 1000, 2000, 4000, 8000, 15_000, 15_000])
    now = 60_000
    assert.equal(pauseMs(), 500, 'a minute without a death')
  })
})

async function startPlanted(t: TestContext, WORKERS: string) {
  const { provider, start, folder } = await setUpInstances(t, { WORKERS, PROVIDER_TIMEOUT_MS: '60000' })
  const plants = join(folder, 'plants.mjs')
  writeFileSync(plants, PLANTS)
  const menshen = await start({ NODE_OPTIONS: `--import=${plants}` })
  await until(() => menshen.workers().length === Number(WORKERS))
  await menshen.said(({ event }) => event === 'started')
  await until(() => isSettled(menshen, Number(WORKERS)))
  return { provider, menshen }
}

/** Whether every worker serves: a worker that is still starting has nothing to finish. */
async function isSettled(menshen: Instance, count: number): Promise<boolean> {
  const { text } = await createClient(menshen.url).get('/_menshen/metrics')
  return text.includes(`\nmenshen_workers ${count}\n`)
}

async function internalErrors(menshen: Instance): Promise<number> {
  const { text } = await createClient(menshen.url).get('/_menshen/metrics')
  return Number(/^menshen_internal_errors_total (\d+)$/m.exec(text)?.[1])
}

function eventsOf({ lines }: Instance, code: string) {
  return lines.filter(({ event }) => event === code)
}

function errorsOf(menshen: Instance, kind: string) {
  return eventsOf(menshen, 'internal_error').filter(({ reason }) => reason === kind)
}

function stackOf(err: unknown): unknown {
  return Object(err).stack
}

/** One visit after the other until the end, which resolves with those that failed. */
function keepVisiting(t: TestContext, visit: () => Promise<Parameters<typeof isServed>[0]>) {
  const failures: unknown[] = []
  let isOver = false
  t.after(() => {
    isOver = true
  })
  const visiting = (async () => {
    while (!isOver) {
      await visit().then(
        answer => isServed(answer) || failures.push(answer.status),
        error => failures.push(error),
      )
      await pause(10)
    }
  })()
  return {
    async end() {
      isOver = true
      await visiting
      return failures
    },
  }
}
