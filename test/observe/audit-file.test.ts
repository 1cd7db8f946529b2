// AUDIT_FILE: every event as a line of JSON, whatever happens to the file.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { createAuditFile } from '../../src/observe/audit.ts'
import { createClient } from '../kit/client.ts'
import { type Instance, isAlive, setUpInstances } from '../kit/instance.ts'
import { requireProgram } from '../kit/requirements.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'
import { auditLines, auditOf } from './audit-lines.ts'

const run = promisify(execFile)

async function fail(instance: Instance, count: number): Promise<void> {
  const asking = Array.from({ length: count }, () => createClient(instance.url).get('/callback?error=access_denied'))
  for (const { status } of await Promise.all(asking)) assert.equal(status, 302)
}

const linesIn = (file: string) => (existsSync(file) ? auditLines(readFileSync(file, 'utf8')) : [])
const failuresIn = (file: string) => linesIn(file).filter(({ event }) => event === 'sign_in_failed')

test('two workers write whole lines to one AUDIT_FILE, and its rotation with SIGHUP loses no line', async t => {
  const { provider, folder, start } = await setUpInstances(t, { WORKERS: '2', AUDIT_FILE: 'audit.jsonl' })
  const [file, old] = [join(folder, 'audit.jsonl'), join(folder, 'audit.jsonl.1')]
  const instance = await start()
  await until(() => existsSync(file))
  assert.equal(statSync(file).mode & 0o777, 0o600)
  await fail(instance, 100)
  await until(() => failuresIn(file).length === 100)
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
  const STORE = `sqlite:${join(folder, 'data', 'menshen.db')}`
  const events = await auditOf(folder, { ...provider.settings, STORE })
  const kept = events.filter(({ event }) => event === 'sign_in_failed')
  const ids = new Set([...linesIn(old), ...linesIn(file)].map(({ requestId }) => requestId))
  const [counted, whole] = [kept.filter(({ count }) => count), kept.filter(({ count }) => !count)]
  assert.ok(whole.length > 0 && whole.every(({ requestId }) => ids.has(requestId)), 'the same events are in the store')
  const sum = counted.reduce((sum, { count }) => sum + Number(count), whole.length)
  assert.equal(sum, 300, 'where repeats are counted')
})

test('a removed folder of AUDIT_FILE is logged and blocks no request, and the lines are written when it is back', async t => {
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

test('a full disk is logged, blocks no request and does not prevent a clean shutdown', async t => {
  const { start } = await setUpInstances(t, { AUDIT_FILE: '/dev/full' })
  const instance = await start()
  await fail(instance, 20)
  const { to, err } = await instance.said(({ event }) => event === 'audit_not_written')
  assert.deepEqual([to, Object(err).code], ['file', 'ENOSPC'])
  assert.deepEqual(await instance.killAll('SIGTERM'), { code: 0, signal: null })
})

test('a line that a full disk cut off does not swallow a line of another process', async t => {
  const { path, file } = openFile(t)
  assert.equal(await file.write(['{"n":1}\n']), 1)
  // The disk is full for that process alone, in the midst of its second line.
  assert.equal(await writeElsewhere(path, ['{"n":2}\n', '{"n":3}\n'], 20), 1)
  assert.equal(await file.write(['{"n":4}\n']), 1)
  assert.equal(await writeElsewhere(path, ['{"n":3}\n']), 1)
  assert.equal(readFileSync(path, 'utf8'), '{"n":1}\n{"n":2}\n{"n"\n{"n":4}\n{"n":3}\n')
})

test('a line that was cut off before the start does not swallow the next line', async t => {
  const { path, file } = openFile(t)
  writeFileSync(path, '{"n":')
  assert.equal(await file.write(['{"n":1}\n', '{"n":2}\n']), 2)
  assert.equal(readFileSync(path, 'utf8'), '{"n":\n{"n":1}\n{"n":2}\n')
})

test('a file that is moved or emptied after a line was cut off starts without an empty line', async t => {
  const { path, file } = openFile(t)
  await file.write(['{"n":1}\n'])
  appendFileSync(path, '{"n":')
  truncateSync(path)
  await file.write(['{"n":2}\n'])
  assert.equal(readFileSync(path, 'utf8'), '{"n":2}\n')
  appendFileSync(path, '{"n":')
  renameSync(path, `${path}.1`)
  file.reopen()
  await file.write(['{"n":3}\n'])
  assert.equal(readFileSync(path, 'utf8'), '{"n":3}\n')
})

test('a file that Menshen can write but not read gets every line', async t => {
  const { path, file } = openFile(t)
  writeFileSync(path, '{"n":1}\n')
  chmodSync(path, 0o200)
  assert.equal(await file.write(['{"n":2}\n']), 1)
  chmodSync(path, 0o600)
  assert.equal(readFileSync(path, 'utf8'), '{"n":1}\n{"n":2}\n')
})

test('a write to a pipe without a reader is an error', async t => {
  const { path, file } = openFile(t)
  await run(requireProgram('mkfifo'), [path])
  await assert.rejects(file.write(['{"n":1}\n']), { code: 'ENXIO' })
})

function openFile(t: TestContext) {
  const path = join(tempFolder(t), 'audit.jsonl')
  const file = createAuditFile(path)
  t.after(() => file.close())
  return { path, file }
}

/** What another process says of its write. No file of it can be larger than the limit. */
async function writeElsewhere(path: string, lines: readonly string[], limit?: number): Promise<number> {
  const module = JSON.stringify(new URL('../../src/observe/audit.ts', import.meta.url))
  const script = `
    const { createAuditFile } = await import(${module})
    const file = createAuditFile(${JSON.stringify(path)})
    console.log(await file.write(${JSON.stringify(lines)}))
    await file.close()`
  const args = [`--fsize=${limit ?? 'unlimited'}`, process.execPath, '--input-type=module', '--eval', script]
  const { stdout } = await run(requireProgram('prlimit'), args)
  return Number(stdout)
}
