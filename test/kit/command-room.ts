// Commands that end by themselves, one after the other in one process: for tests of what they say and not of their process.
// The first second of a process is the loading of its modules, so that many commands cost little more than one.

import { type ChildProcess, fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Environment, ProcessOptions } from './instance.ts'

const HOST = fileURLToPath(new URL('./command-host.ts', import.meta.url))

export interface Order {
  readonly args: readonly string[]
  readonly env: Environment
  readonly cwd: string
}

/** What it writes, and at last its exit code. */
export type Said = { readonly to: 'stdout' | 'stderr'; readonly text: string } | { readonly code: number }

export interface Spoken {
  code: number
  /** All that it wrote, without the end of the last line. */
  output: string
  out: string
  err: string
}

/** For one file of tests: the process is started when it is first needed, and ends with the file. */
export function openCommandRoom() {
  let child: ChildProcess | undefined
  let last: Promise<unknown> = Promise.resolve()
  after(() => void child?.kill('SIGKILL'))

  function run(
    env: Environment,
    options: ProcessOptions = {},
    heard: (text: string) => void = () => {},
  ): Promise<Spoken> {
    const spoken = last.then(() => runNow(env, options, heard))
    last = spoken.catch(() => {})
    return spoken
  }

  async function runNow(
    env: Environment,
    { cwd, args = [] }: ProcessOptions,
    heard: (text: string) => void,
  ): Promise<Spoken> {
    child ??= fork(HOST, { execArgv: ['--import=./test/kit/keep-compiled.ts'], env: { PATH: process.env.PATH } })
    const host = child
    const folder = cwd ?? mkdtempSync(join(tmpdir(), 'menshen-'))
    const { PATH, HOME } = process.env
    const written = { output: '', stdout: '', stderr: '' }
    const { promise: ended, resolve, reject } = Promise.withResolvers<number>()
    const onMessage = (said: Said) => {
      if ('code' in said) return resolve(said.code)
      written[said.to] += said.text
      written.output += said.text
      heard(written.output)
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
