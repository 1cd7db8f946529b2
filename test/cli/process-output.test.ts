// Every line that the command prints is a line of its log, also what Node and libraries print.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { setUpInstances } from '../kit/instance.ts'

/** Prints when the test asks for it, as a library would. */
const CONFIG = `
process.once('SIGUSR2', () => {
  console.log('printed by', 'a library')
  console.error(new Error('a library failed'))
  process.emitWarning('it is old', 'DeprecationWarning', 'DEP9999')
})
export default {}
`

test('Node warnings and console output from libraries are logged as events, and every line is JSON', async t => {
  const { folder, start } = await setUpInstances(t, { LOG_FORMAT: 'json' })
  writeFileSync(join(folder, 'menshen.config.js'), CONFIG)
  const instance = await start()
  const [worker = instance.pid] = instance.workers()
  process.kill(worker, 'SIGUSR2')
  const warning = await instance.said(({ event, name }) => event === 'process_warning' && name === 'DeprecationWarning')
  assert.deepEqual([warning.code, warning.text, warning.level], ['DEP9999', 'it is old', 'warn'])
  const printed = await instance.said(({ event }) => event === 'console_output')
  assert.equal(printed.text, 'printed by a library')
  const failed = await instance.said(({ name }) => name === 'console.error')
  assert.match(String(failed.text), /^Error: a library failed/)
  for (const line of instance.output) assert.doesNotThrow(() => JSON.parse(line), line)
})
