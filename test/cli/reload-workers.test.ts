// The primary of several workers, with workers that say what the test wants.

import assert from 'node:assert/strict'
import cluster, { type Worker } from 'node:cluster'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { takeSnapshot } from '../../src/cli/reload-changes.ts'
import { reloadWorkers } from '../../src/cli/reload-workers.ts'
import type { WorkerChannel, WorkerMessage } from '../../src/cli/worker-messages.ts'
import { fingerprintOf } from '../../src/config/fingerprint.ts'
import { tempFolder } from '../kit/temp.ts'

test('a worker that started with older rules than the others is stopped when a reload is refused', async t => {
  const { write, fingerprint, startWorker, ended, target } = await setUpPrimary(t)
  const older = await fingerprint()
  const first = startWorker(older)
  write([{ path: '/closed', roles: ['developer'] }])
  const { use } = await target.prepare()
  await use(true)
  const late = startWorker(older)
  write([{ path: 'no-slash', public: true }])
  await assert.rejects(target.prepare(), /no-slash/)
  assert.deepEqual(ended, [late])
  write([{ path: '/closed', roles: ['developer'] }])
  const next = startWorker(await fingerprint())
  write([{ path: 'no-slash', public: true }])
  await assert.rejects(target.prepare(), /no-slash/)
  assert.ok(!ended.includes(first) && !ended.includes(next))
})

test('a worker that is stopping is not asked to reload, and the primary does not wait for it', async t => {
  const { write, fingerprint, startWorker, asked, ended, target } = await setUpPrimary(t)
  const [stopping, other] = [startWorker(await fingerprint()), startWorker(await fingerprint())]
  cluster.emit('disconnect', stopping)
  write([{ path: '/closed', roles: ['developer'] }])
  const { use } = await target.prepare()
  await use(true)
  assert.deepEqual([...new Set(asked)], [other])
  assert.deepEqual(ended, [])
})

async function setUpPrimary(t: TestContext) {
  const file = join(tempFolder(t), 'menshen.config.json')
  const write = (rules: object[]) => writeFileSync(file, JSON.stringify({ rules }))
  write([])
  const environment = {
    CONFIG: file,
    STORE: 'memory:',
    AUTH_URL: 'https://id.test',
    CLIENT_ID: 'a',
    CLIENT_SECRET: 'b',
  }
  const options = { sources: { environment }, hadEnvFile: false, listens: true }
  const fingerprint = async () => fingerprintOf((await takeSnapshot(options.sources)).parts)
  let tell: Parameters<WorkerChannel['handle']>[0] = () => assert.fail('no handler')
  const asked: Worker[] = []
  const channel: WorkerChannel = {
    send() {},
    async ask(worker, message): Promise<WorkerMessage | undefined> {
      asked.push(worker)
      return message.type === 'prepare_reload'
        ? { type: 'reload_prepared', fingerprint: await fingerprint() }
        : { type: 'reload_used' }
    },
    handle(handler) {
      tell = handler
    },
  }
  const before = cluster.listeners('disconnect')
  const target = reloadWorkers(channel, await takeSnapshot(options.sources), options)
  t.after(() => {
    for (const listener of cluster.listeners('disconnect'))
      if (!before.includes(listener)) cluster.off('disconnect', listener as () => void)
  })
  const ended: Worker[] = []
  function startWorker(started: string): Worker {
    const worker = { isDead: () => false, process: { kill: () => void ended.push(worker) } } as unknown as Worker
    void tell({ type: 'started', fingerprint: started }, worker)
    return worker
  }
  return { write, fingerprint, startWorker, asked, ended, target }
}
