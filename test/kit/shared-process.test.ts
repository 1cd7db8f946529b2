// Test files that share a process.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import test, { type TestContext } from 'node:test'
import { canShare, startsPrograms, writeShares } from './shared-process.ts'
import { tempFolder } from './temp.ts'

test('files that start programs or need their own process are detected, also through their imports', () => {
  assert.ok(!startsPrograms('test/kit/samples/passes.ts'))
  assert.ok(!startsPrograms('test/session/refresh.test.ts'))
  assert.ok(startsPrograms('test/kit/watchdog.test.ts'), 'it imports node:child_process')
  assert.ok(startsPrograms('test/cli/reload.test.ts'), 'it imports kit/instance.ts, which imports node:child_process')
  assert.ok(canShare('test/cli/reload.test.ts'))
  assert.ok(!canShare('test/browser/pages.test.ts'), 'it imports kit/browser.ts, which imports playwright-core')
})

test('a test file that changes the process fails under its own name, and the next file passes', async t => {
  const output = await runShared(t, ['leaves-variable.ts', 'passes.ts'])
  assert.match(output, /^✖ test\/kit\/samples\/leaves-variable\.ts /m)
  assert.match(output, /the file leaves the process as it found it/)
  assert.match(output, /LEFT_BEHIND/)
  assert.match(output, /^✔ test\/kit\/samples\/passes\.ts /m)
})

test('a test file that leaves a server open fails under its own name', async t => {
  const output = await runShared(t, ['leaves-server.ts'])
  assert.match(output, /^✖ test\/kit\/samples\/leaves-server\.ts /m)
  assert.match(output, /the file leaves open: TCPServerWrap/)
})

test('the hooks of a test file run only for its own tests', async t => {
  const output = await runShared(t, ['has-hooks.ts', 'passes.ts'])
  assert.deepEqual(output.match(/(before|after): .*/g), ['before: this test has hooks', 'after: this test has hooks'])
  assert.match(output, /^ℹ pass 2$/m)
})

test('an unhandled rejection fails the process and is reported with the name of the test file', async t => {
  const output = await runShared(t, ['overlooks-error.ts', 'passes.ts'])
  assert.match(
    output,
    /^✖ test\/kit\/samples\/overlooks-error\.ts overlooks an error:\nError: nobody waits for this\n/m,
  )
  assert.match(output, /^✔ test\/kit\/samples\/passes\.ts /m)
  assert.match(output, /^ℹ fail 1$/m)
})

async function runShared(t: TestContext, names: readonly string[]): Promise<string> {
  const shares = writeShares(
    tempFolder(t),
    names.map(name => `test/kit/samples/${name}`),
    1,
  )
  const paths = shares.map(({ path }) => path)
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const runner = spawn(process.execPath, ['--test', '--test-reporter=spec', '--test-force-exit', ...paths], { env })
  return (await Promise.all([text(runner.stdout), text(runner.stderr)])).join('')
}
