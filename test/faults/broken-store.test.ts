// A commit that fails at its very end: LMDB refuses everything in that process from then on. The process ends and is started again.

import assert from 'node:assert/strict'
import test from 'node:test'
import { createClient, signIn } from '../kit/client.ts'
import { type Instance, isServed, setUpInstances, signedIn } from '../kit/instance.ts'
import { requireLinux } from '../kit/requirements.ts'
import { until } from '../kit/until.ts'

const NODE_OPTIONS = `--import=${new URL('../kit/break-lmdb.ts', import.meta.url)}`

test('a worker whose store is broken says so once and is replaced, and the users stay signed in', async t => {
  requireLinux('/proc')
  const { provider, start } = await setUpInstances(t, { WORKERS: '2', NODE_OPTIONS })
  const menshen = await start()
  await until(async () => {
    // Together, because nothing promises that they take turns.
    await Promise.all([1, 2, 3, 4].map(() => signedIn(menshen, provider)))
    return new Set(menshen.lines.map(line => line.worker)).isSupersetOf(new Set([1, 2]))
  })
  const user = await signedIn(menshen, provider)
  const [broken = 0, other = 0] = menshen.workers()
  await breakStore(menshen, broken)
  await until(async () => {
    await signIn(createClient(menshen.url), provider).catch(() => {})
    return menshen.lines.some(({ event }) => event === 'store_broken')
  })
  const { worker, exitCode } = await menshen.said(({ event }) => event === 'worker_died')
  assert.equal(exitCode, 1)
  assert.deepEqual(
    menshen.lines.filter(({ event }) => event === 'store_broken').map(line => line.worker),
    [worker],
  )
  await until(() => menshen.workers().length === 2)
  assert.ok(menshen.workers().includes(other) && !menshen.workers().includes(broken))
  assert.ok(isServed(await user.get(menshen)))
  assert.ok(isServed(await (await signedIn(menshen, provider)).get(menshen)))
})

test('a single process whose store is broken says so and ends as a failure, so that it is started again', async t => {
  requireLinux('/proc')
  const { provider, start } = await setUpInstances(t, { WORKERS: '1', NODE_OPTIONS })
  const menshen = await start()
  const user = await signedIn(menshen, provider)
  await breakStore(menshen, menshen.pid)
  await signIn(createClient(menshen.url), provider).catch(() => {})
  assert.deepEqual(await menshen.exited, { code: 1, signal: null })
  const { err } = await menshen.said(({ event }) => event === 'store_broken')
  assert.equal(Object(err).message, 'Bad file descriptor')
  const next = await start({ NODE_OPTIONS: '', PORT: new URL(menshen.url).port })
  assert.ok(isServed(await user.get(next)))
})

async function breakStore(menshen: Instance, pid: number): Promise<void> {
  process.kill(pid, 'SIGUSR2')
  await menshen.said(({ event }) => event === 'broken')
}
