// A worker that the system cannot start, for want of processes or while Node is being updated.
import assert from 'node:assert/strict'
import cluster from 'node:cluster'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { SERVING, startWorkers } from '../../src/cli/workers.ts'
import { tempFolder } from '../kit/temp.ts'

test('a worker that cannot be started is reported and tried again, and ends neither the primary process nor other workers', async t => {
  const folder = tempFolder(t)
  const script = join(folder, 'worker.mjs')
  writeFileSync(script, `process.on('SIGTERM', () => process.exit()); process.send(${JSON.stringify(SERVING)})`)
  // A process whose folder is missing is not started.
  const missing = join(folder, 'missing')
  cluster.setupPrimary({ exec: script, args: [], execArgv: [], cwd: folder })
  const events: unknown[] = []
  let serving = 0
  const bothServe = Promise.withResolvers<void>()
  const nextServes = Promise.withResolvers<void>()
  cluster.on('message', (_worker, message) => {
    if (message === SERVING) serving += 1
    if (serving === 2) bothServe.resolve()
    if (serving === 3) nextServes.resolve()
  })
  const workers = await startWorkers(2, { env: {}, isSocketInherited: false }, (code, fields) => {
    events.push([code, fields])
    if (code === 'worker_not_started') mkdirSync(missing)
  })
  // The second call kills those that a failed test leaves behind.
  t.after(() => workers?.close().catch(() => {}))
  await bothServe.promise
  const [first, other] = Object.values(cluster.workers ?? {})
  cluster.setupPrimary({ cwd: missing })
  const exited = once(cluster, 'exit')
  first?.process.kill('SIGKILL')
  await exited
  await nextServes.promise
  const running = Object.values(cluster.workers ?? {})
  assert.deepEqual([running.length, other && running.includes(other), other?.isDead()], [2, true, false])
  await workers?.close()
  assert.deepEqual(events, [
    ['worker_died', { worker: 1, exitCode: null, signal: 'SIGKILL' }],
    ['worker_not_started', { code: 'ENOENT' }],
  ])
})
