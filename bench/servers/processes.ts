// Starts the processes of the benchmarks. However the run ends, they end with it, and its folder is removed.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../test/kit/free-port.ts'

interface Running extends AsyncDisposable {
  readonly child: ChildProcess
}

export interface Served extends AsyncDisposable {
  readonly url: string
  readonly pid: number
}

interface Options {
  /** The command that runs it on certain cores. */
  readonly on?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

const PATIENCE_MS = 10_000
const running = new Set<ChildProcess>()

/** An empty folder for everything that a run writes. */
export const folder = mkdtempSync(join(tmpdir(), 'menshen-bench-'))

process.on('exit', () => {
  endAll()
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {
    process.stderr.write(`ended by ${signal}\n`)
    process.exit(1)
  })
}

/** A script of ours as a command. */
export function script(path: string, ...args: (string | number)[]): string[] {
  return [process.execPath, fileURLToPath(new URL(path, import.meta.url)), ...args.map(String)]
}

export function start(command: readonly string[], { on = [], env = {} }: Options = {}): Running {
  const [program = '', ...args] = [...on, ...command]
  const { PATH, HOME } = process.env
  const child = spawn(program, args, {
    cwd: folder,
    env: { PATH, HOME, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  running.add(child)
  const exited = once(child, 'exit').finally(() => running.delete(child))
  exited.catch(() => {}) // reported to the caller that waits for it
  return {
    child,
    async [Symbol.asyncDispose]() {
      const timer = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS)
      child.kill('SIGTERM')
      await exited.finally(() => clearTimeout(timer))
    },
  }
}

/** Resolves when it prints a line that contains `word`. */
export async function startUntil(word: string, command: readonly string[], options: Options = {}): Promise<Running> {
  const started = start(command, options)
  const { stdout } = started.child
  let printed = ''
  for await (const chunk of stdout?.iterator({ destroyOnReturn: false }) ?? []) {
    printed += chunk
    if (!printed.includes(word)) continue
    stdout?.resume()
    return started
  }
  throw new Error(`${command.join(' ')} ended before it was ready:\n${printed}`)
}

/** A process that serves http. */
export function served(port: number, running: Running): Served {
  const { pid = 0 } = running.child
  return { url: `http://127.0.0.1:${port}`, pid, [Symbol.asyncDispose]: () => running[Symbol.asyncDispose]() }
}

/** A server of this folder that reports when it is ready; `args` come after its port. */
export async function startScript(path: string, on: readonly string[], ...args: (string | number)[]): Promise<Served> {
  const port = await freePort()
  return served(port, await startUntil('ready', script(path, port, ...args), { on }))
}

/** Ends what is still running of a part that was given up. */
export function endAll(): void {
  for (const child of running) child.kill('SIGKILL')
}

/** Resolves with its output when it has ended successfully. */
export async function runToEnd(command: readonly string[], options: Options = {}): Promise<string> {
  await using started = start(command, options)
  const { child } = started
  const exit = once(child, 'exit')
  const printed = child.stdout ? await text(child.stdout) : ''
  const [code, signal] = await exit
  if (code !== 0) throw new Error(`${command.join(' ')} ended by ${signal ?? `code ${code}`}:\n${printed}`)
  return printed
}
