// Runs commands that end, one after the other in one process: for tests of what they print, not of their process. The modules
// are loaded once, so that many commands cost little more than one.

import { type ChildProcess, fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'
import { compiledCode, type Environment, type ProcessOptions } from './instance.ts'

const HOST = fileURLToPath(new URL('./command-host.ts', import.meta.url))

export interface CommandRequest {
  readonly args: readonly string[]
  readonly env: Environment
  readonly cwd: string
}

/** What it writes, and at last its exit code. */
export type CommandMessage = { readonly to: 'stdout' | 'stderr'; readonly text: string } | { readonly code: number }

export interface CommandResult {
  code: number
  /** All that it wrote, without the end of the last line. */
  output: string
  out: string
  err: string
}

/** For one test file: the process starts with the first command, and ends with the file. */
export function createCommandRunner() {
  let child: ChildProcess | undefined
  let last: Promise<unknown> = Promise.resolve()
  after(() => void child?.kill('SIGKILL'))

  function run(
    env: Environment,
    options: ProcessOptions = {},
    onOutput: (text: string) => void = () => {},
  ): Promise<CommandResult> {
    const result = last.then(() => runNow(env, options, onOutput))
    last = result.catch(() => {})
    return result
  }

  async function runNow(
    env: Environment,
    { cwd, args = [] }: ProcessOptions,
    onOutput: (text: string) => void,
  ): Promise<CommandResult> {
    child ??= fork(HOST, {
      execArgv: ['--import=./test/kit/resolve-quickly.js'],
      env: { PATH: process.env.PATH, ...compiledCode() },
    })
    const host = child
    const folder = cwd ?? mkdtempSync(join(tmpdir(), 'menshen-'))
    const { PATH, HOME } = process.env
    const written = { output: '', stdout: '', stderr: '' }
    const { promise: ended, resolve, reject } = Promise.withResolvers<number>()
    const onMessage = (message: CommandMessage) => {
      if ('code' in message) return resolve(message.code)
      written[message.to] += message.text
      written.output += message.text
      onOutput(written.output)
    }
    const onExit = () => reject(new Error(`the process of the commands has ended: ${written.output}`))
    host.on('message', onMessage).once('exit', onExit)
    try {
      host.send({ args, env: { ...(PATH && { PATH }), ...(HOME && { HOME }), ...env }, cwd: folder })
      const code = await ended
      const { stdout: out, stderr: err, output } = written
      return { code, out, err, output: output.replace(/\n$/, '') }
    } finally {
      host.off('message', onMessage).off('exit', onExit)
      if (!cwd) rmSync(folder, { recursive: true, force: true })
    }
  }

  return { run }
}
