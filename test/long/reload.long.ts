// A reload with a worker that hangs: it is ended, and the one in its place has what the others have.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { isAlive, setUpInstances } from '../kit/instance.ts'
import { until } from '../kit/until.ts'

test('a reload replaces a worker that does not respond and applies without waiting for it', async t => {
  const { folder, start } = await setUpInstances(t, { WORKERS: '2' })
  const configure = (title: string) =>
    writeFileSync(join(folder, 'menshen.config.ts'), `export default { words: { 'login.title': '${title}' } }\n`)
  configure('before')
  const instance = await start()
  await until(() => instance.lines.filter(({ event }) => event === 'started').length === 1)
  await until(() => instance.workers().length === 2)
  const [hanging = 0] = instance.workers()
  process.kill(hanging, 'SIGSTOP')
  configure('after')
  process.kill(instance.pid, 'SIGHUP')
  const { event } = await instance.said(line => ['config_reloaded', 'config_refused'].includes(line.event))
  assert.equal(event, 'config_reloaded')
  assert.ok(!isAlive(hanging))
  await instance.said(line => line.event === 'worker_died')
  await until(() => instance.workers().length === 2)
})
