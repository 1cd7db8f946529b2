// The watchdog of the test runner, with a file that blocks.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import test from 'node:test'
import { createWatchdog } from './watchdog.ts'

test('a test file that blocks is ended with its name and stack and is treated as failed, while the others go on', async () => {
  const { printed, output } = await runWatched(['blocks.ts', 'passes.ts'], {
    blockedAfterMs: 5000,
    fileTimeoutMs: 60_000,
  })
  assert.match(printed, /^✖ test\/kit\/samples\/blocks\.ts is blocked: its main thread has not run for \d+ s$/m)
  assert.match(printed, /^ +at blockForEver \(file:.*blocks\.ts:\d+\)$/m)
  assert.match(output, /this test passes beside a file that blocks/)
  assert.match(output, /^ℹ pass 1$/m)
  assert.match(output, /^ℹ fail 1$/m)
})

test('a test file that leaves something open after its tests is ended with its name and is treated as failed', async () => {
  const { printed, output } = await runWatched(['stays-open.ts'], { blockedAfterMs: 60_000, fileTimeoutMs: 4000 })
  assert.match(printed, /^✖ test\/kit\/samples\/stays-open\.ts has not ended after \d+ s$/m)
  assert.match(output, /^ℹ fail 1$/m)
})

async function runWatched(names: readonly string[], limits: { blockedAfterMs: number; fileTimeoutMs: number }) {
  let printed = ''
  const print = (text: string) => {
    printed += text
  }
  using watchdog = createWatchdog({ ...limits, checkEveryMs: 200, print })
  const args = [...watchdog.nodeOptions, '--test', ...names.map(name => `test/kit/samples/${name}`)]
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const runner = spawn(process.execPath, args, { env: { ...env, ...watchdog.env } })
  const ended = new AbortController()
  const watching = watchdog.watch(runner.pid ?? 0, ended.signal)
  const output = await text(runner.stdout)
  ended.abort()
  await watching
  return { printed, output }
}
