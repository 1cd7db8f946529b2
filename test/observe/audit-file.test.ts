// AUDIT_FILE: every event as a line of JSON, whatever happens to the file.

import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { createClient } from '../kit/client.ts'
import { type Instance, isAlive, setUpInstances } from '../kit/instance.ts'
import { until } from '../kit/until.ts'
import { auditLines, auditOf } from './audit-lines.ts'

async function fail(instance: Instance, count: number): Promise<void> {
  const asking = Array.from({ length: count }, () => createClient(instance.url).get('/callback?error=access_denied'))
  for (const { status } of await Promise.all(asking)) assert.equal(status, 302)
}

const linesIn = (file: string) => (existsSync(file) ? auditLines(readFileSync(file, 'utf8')) : [])
const failuresIn = (file: string) => linesIn(file).filter(({ event }) => event === 'sign_in_failed')

test('two workers write whole lines to one file, which is rotated by SIGHUP without losing any', async t => {
  const { provider, folder, start } = await setUpInstances(t, { WORKERS: '2', AUDIT_FILE: 'audit.jsonl' })
  const [file, old] = [join(folder, 'audit.jsonl'), join(folder, 'audit.jsonl.1')]
  const instance = await start()
  await until(() => existsSync(file))
  assert.equal(statSync(file).mode & 0o777, 0o600)
  await fail(instance, 100)
  renameSync(file, old)
  const during = fail(instance, 100)
  process.kill(instance.pid, 'SIGHUP')
  await until(() => existsSync(file))
  await during
  await fail(instance, 100)
  await until(() => failuresIn(old).length + failuresIn(file).length === 300)
  assert.ok(failuresIn(old).length >= 100 && failuresIn(file).length > 0)
  const { worker: _, ...line } = failuresIn(file).at(-1) ?? { worker: 0 }
  assert.partialDeepStrictEqual(line, { level: 'warn', event: 'sign_in_failed', reason: 'access_denied' })
  assert.ok(isAlive(instance.pid) && instance.workers().every(isAlive))
  await instance.killAll('SIGTERM')
  const STORE = `lmdb:${join(folder, 'data')}`
  const events = await auditOf(folder, { ...provider.settings, STORE })
  const kept = events.filter(({ event }) => event === 'sign_in_failed')
  const ids = new Set([...linesIn(old), ...linesIn(file)].map(({ requestId }) => requestId))
  const [counted, whole] = [kept.filter(({ count }) => count), kept.filter(({ count }) => !count)]
  assert.ok(whole.length > 0 && whole.every(({ requestId }) => ids.has(requestId)), 'the same events are in the store')
  const sum = counted.reduce((sum, { count }) => sum + Number(count), whole.length)
  assert.equal(sum, 300, 'where repeats are counted')
})

test('a folder that goes away is loud and stops nobody; when it is back, so are the lines', async t => {
  const { folder, start } = await setUpInstances(t, { AUDIT_FILE: 'logs/audit.jsonl' })
  const [logs, file] = [join(folder, 'logs'), join(folder, 'logs', 'audit.jsonl')]
  mkdirSync(logs)
  const instance = await start()
  await fail(instance, 1)
  await until(() => linesIn(file).length === 1)
  rmSync(logs, { recursive: true })
  process.kill(instance.pid, 'SIGHUP')
  const { to } = await instance.said(({ event }) => event === 'audit_not_written')
  assert.equal(to, 'file')
  await fail(instance, 20)
  mkdirSync(logs)
  await instance.said(({ event }) => event === 'audit_written_again')
  assert.equal(linesIn(file).length, 20)
})

test('a full disk stops nobody either, and the end does not wait for it long', async t => {
  const { start } = await setUpInstances(t, { AUDIT_FILE: '/dev/full' })
  const instance = await start()
  await fail(instance, 20)
  const { to, err } = await instance.said(({ event }) => event === 'audit_not_written')
  assert.deepEqual([to, Object(err).code], ['file', 'ENOSPC'])
  assert.deepEqual(await instance.killAll('SIGTERM'), { code: 0, signal: null })
})
