// The watchdog of the test runner, with a file that blocks.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { suite, test } from 'node:test'
import { filesNotRun, writeShares } from './shared-process.ts'
import { tempFolder } from './temp.ts'
import { createWatchdog } from './watchdog.ts'

const SAMPLES = 'test/kit/samples'

suite('the watchdog', { concurrency: true }, () => {
  test('a test file that blocks is stopped and reported as failed with its name and stack, while other files continue', async () => {
    const { printed, output } = await runWatched([`${SAMPLES}/blocks.ts`, `${SAMPLES}/passes.ts`], {
      blockedAfterMs: 10_000,
      fileTimeoutMs: 60_000,
    })
    assert.match(printed, /^✖ test\/kit\/samples\/blocks\.ts is blocked: its main thread has not run for \d+ s$/m)
    assert.match(printed, /^ +at blockForEver \(file:.*blocks\.ts:\d+\)$/m)
    assert.match(output, /this test passes beside a file that blocks/)
    assert.match(output, /^ℹ pass 1$/m)
    assert.match(output, /^ℹ fail 1$/m)
  })

  test('a test file that stays open after its tests is stopped and reported as failed with its name', async () => {
    const { printed, output } = await runWatched([`${SAMPLES}/stays-open.ts`], {
      blockedAfterMs: 60_000,
      fileTimeoutMs: 4000,
    })
    assert.match(printed, /^✖ test\/kit\/samples\/stays-open\.ts has not ended after \d+ s$/m)
    assert.match(output, /^ℹ fail 1$/m)
  })

  test('a file that blocks a shared process is stopped and reported by name, and the files after it are listed as not run', async t => {
    const files = ['passes.ts', 'blocks.ts', 'has-hooks.ts'].map(name => `${SAMPLES}/${name}`)
    const shares = writeShares(tempFolder(t), files, 1)
    const { printed, output } = await runWatched(
      shares.map(({ path }) => path),
      { blockedAfterMs: 10_000, fileTimeoutMs: 60_000 },
    )
    assert.match(printed, /^✖ test\/kit\/samples\/blocks\.ts is blocked: its main thread has not run for \d+ s$/m)
    assert.match(output, /^ℹ fail [1-9]$/m)
    assert.deepEqual(filesNotRun(shares), [`${SAMPLES}/has-hooks.ts`])
  })

  test('no file is listed as not run after a shared process that finished', async t => {
    const shares = writeShares(tempFolder(t), [`${SAMPLES}/passes.ts`, `${SAMPLES}/has-hooks.ts`], 1)
    const { output } = await runWatched(
      shares.map(({ path }) => path),
      { blockedAfterMs: 60_000, fileTimeoutMs: 60_000 },
    )
    assert.match(output, /^ℹ fail 0$/m)
    assert.deepEqual(filesNotRun(shares), [])
  })
})

async function runWatched(files: readonly string[], limits: { blockedAfterMs: number; fileTimeoutMs: number }) {
  let printed = ''
  const print = (text: string) => {
    printed += text
  }
  using watchdog = createWatchdog({ ...limits, checkEveryMs: 200, print })
  const args = [...watchdog.nodeOptions, '--test', ...files]
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const runner = spawn(process.execPath, args, { env: { ...env, ...watchdog.env } })
  const ended = new AbortController()
  const watching = watchdog.watch(runner.pid ?? 0, ended.signal)
  const output = await text(runner.stdout)
  ended.abort()
  await watching
  return { printed, output }
}
