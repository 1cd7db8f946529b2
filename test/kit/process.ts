// Menshen as its operators run it: a process of its own, with nothing but the given environment.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createClient } from './client.ts'
import { freePort } from './free-port.ts'

const MAIN = fileURLToPath(new URL('../../bin/menshen.js', import.meta.url))
const START_DEADLINE_MS = 20_000
const EXIT_DEADLINE_MS = 10_000

export type Environment = Record<string, string>

export interface Options {
  /** The working folder, for a start that reads files there; otherwise an empty one, removed at the end. */
  cwd?: string
  args?: string[]
  /** What answers 200 once it serves; `ready` unless it never gets ready. */
  probe?: '/_menshen/health' | '/_menshen/ready'
}

export interface Exit {
  code: number | null
  signal: NodeJS.Signals | null
}

interface Run extends Exit {
  /** All that it wrote, to stdout and to stderr. */
  output: string
  /** What of it went to stderr. */
  errors: string
}

export type Menshen = Awaited<ReturnType<typeof startMenshen>>

/** Resolves when it is ready to serve. Without BASE_URL or PORT, it gets a free port of localhost; so does its provider. */
export async function startMenshen(env: Environment, options: Options = {}) {
  const port = env.PORT || new URL(env.BASE_URL ?? 'http://localhost').port || String(await freePort())
  const url = `${env.TLS_CERT_FILE ? 'https' : 'http'}://localhost:${port}`
  const { child, lines, exited } = launch(
    { BASE_URL: url, PORT: port, DEV_PROVIDER_PORT: String(await freePort()), ...env },
    options,
  )

  function kill(signal: NodeJS.Signals): Promise<Exit> {
    child.kill(signal)
    return exited
  }

  /** Asks it to end, and makes it end if it does not: then `signal` is SIGKILL. */
  async function stop(): Promise<Exit> {
    const timer = setTimeout(() => child.kill('SIGKILL'), EXIT_DEADLINE_MS)
    return kill('SIGTERM').finally(() => clearTimeout(timer))
  }

  const client = createClient(url)
  const deadline = Date.now() + START_DEADLINE_MS
  const isReady = () =>
    client.get(options.probe ?? '/_menshen/ready', { signal: AbortSignal.timeout(2000) }).then(
      response => response.status === 200,
      () => false,
    )
  while (!(await isReady())) {
    const hasEnded = child.exitCode !== null || child.signalCode !== null
    if (hasEnded || Date.now() > deadline) {
      const { code, signal } = await kill('SIGKILL')
      throw new Error(`Menshen did not get ready (exit: ${code ?? signal}):\n${lines.join('\n')}`)
    }
    await pause(50)
  }

  return {
    /** Where it listens; the same as BASE_URL unless that was given. */
    url,
    /** What it has written so far, to stdout and to stderr. */
    lines,
    kill,
    stop,
    /** Resolves when it has ended and its last line has been read. */
    exited,
  }
}

/** For commands that end by themselves and starts that must fail. */
export async function runMenshen(env: Environment, options: Options = {}): Promise<Run> {
  const { child, lines, errors, exited } = launch(env, options)
  const timer = setTimeout(() => child.kill('SIGKILL'), START_DEADLINE_MS)
  const exit = await exited.finally(() => clearTimeout(timer))
  return { ...exit, output: lines.join('\n'), errors: errors.join('\n') }
}

function launch(env: Environment, { cwd, args = [] }: Options) {
  const folder = cwd ?? mkdtempSync(join(tmpdir(), 'menshen-'))
  const { PATH, HOME } = process.env
  const child = spawn(process.execPath, [MAIN, ...args], {
    cwd: folder,
    env: { PATH, HOME, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const lines: string[] = []
  const errors: string[] = []
  for (const input of [child.stdout, child.stderr]) createInterface({ input }).on('line', line => lines.push(line))
  createInterface({ input: child.stderr }).on('line', line => errors.push(line))
  const exited = once(child, 'close').then(([code, signal]): Exit => {
    if (!cwd) rmSync(folder, { recursive: true, force: true })
    return { code, signal }
  })
  return { child, lines, errors, exited }
}
