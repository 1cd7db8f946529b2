// Menshen as its operators run it: a process of its own, with nothing but the given environment.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Client, createClient, type Response, signIn } from './client.ts'
import { freePort } from './free-port.ts'
import { requireLinux } from './requirements.ts'
import { openScriptedProvider } from './scripted-provider.ts'
import type { Behaviour } from './strict-provider.ts'
import { tempFolder } from './temp.ts'
import { HANG_MS, until } from './until.ts'

const MAIN = fileURLToPath(new URL('../../bin/menshen.js', import.meta.url))
const RESOLVE_QUICKLY = `--import=${new URL('./resolve-quickly.js', import.meta.url).href}`
const EXIT_DEADLINE_MS = 10_000
const ASK_EVERY_MS = 150

export type Environment = Record<string, string>

export interface ProcessOptions {
  /** The working folder, for a start that reads files there; otherwise an empty one, removed at the end. */
  cwd?: string
  args?: string[]
}

export interface InstanceOptions extends ProcessOptions {
  /** What answers 200 once it serves; `ready` unless it never gets ready. */
  probe?: '/_menshen/health' | '/_menshen/ready'
}

export interface Exit {
  code: number | null
  signal: NodeJS.Signals | null
}

/** A line of the log; another line has its text as the event. */
export interface Line {
  readonly event: string
  readonly worker?: number
  readonly [fact: string]: unknown
}

export type Instance = Awaited<ReturnType<typeof startInstance>>

/**
 * Resolves when it is ready to serve. Without BASE_URL or PORT, it gets a free port of localhost; so does its provider. The
 * test stops it; an instance that a test leaves behind ends with the process of the test.
 */
export async function startInstance(env: Environment, options: InstanceOptions = {}) {
  const port = env.PORT || new URL(env.BASE_URL ?? 'http://localhost').port || String(await freePort())
  const url = `${env.TLS_CERT_FILE ? 'https' : 'http'}://localhost:${port}`
  const began = performance.now()
  const { child, pid, output, written, exited } = launch(
    { ...compiledCode(), BASE_URL: url, PORT: port, DEV_PROVIDER_PORT: String(await freePort()), ...env },
    options,
  )
  const lines: Line[] = []
  // A line of the log that is not whole is an error; an exporter of traces in the process may write other lines.
  written.on('line', (text: string) => lines.push(text.startsWith('{"') ? JSON.parse(text) : { event: text }))

  function kill(signal: NodeJS.Signals): Promise<Exit> {
    child.kill(signal)
    return exited
  }

  function killAll(signal: NodeJS.Signals): Promise<Exit> {
    signalGroup(pid, signal)
    return exited
  }

  const deadline = began + HANG_MS
  do {
    const hasEnded = child.exitCode !== null || child.signalCode !== null
    if (hasEnded || performance.now() > deadline) {
      const { code, signal } = await killAll('SIGKILL')
      throw new Error(`Menshen did not get ready (exit: ${code ?? signal}):\n${output.join('\n')}`)
    }
    // Its log says when to ask; one that is silent is asked from time to time.
    await once(written, 'line', { signal: AbortSignal.timeout(ASK_EVERY_MS) }).catch(() => {})
  } while (!(await isReady(url, options.probe)))

  return {
    /** Where it listens; the same as BASE_URL unless that was given. */
    url,
    pid,
    /** What it has written so far, to stdout and to stderr, line by line. */
    output,
    /** The same, parsed. */
    lines,
    readyAfterMs: performance.now() - began,
    /** Resolves when it has ended and its last line has been read. */
    exited,
    /** A signal to the first process alone. */
    kill,
    /** A signal to every process of it, as systemd and a terminal send it. */
    killAll,
    /** Asks it to end, and makes it end if it does not: then `signal` is SIGKILL. */
    async stop(): Promise<Exit> {
      const timer = setTimeout(() => killAll('SIGKILL'), EXIT_DEADLINE_MS)
      return kill('SIGTERM').finally(() => clearTimeout(timer))
    },
    /** The processes that it started. */
    workers(): number[] {
      requireLinux('/proc')
      const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
      return text.trim().split(' ').filter(Boolean).map(Number)
    },
    /** Resolves with the first line that is so, written before or later. */
    async said(isSo: (line: Line) => boolean): Promise<Line> {
      const signal = AbortSignal.timeout(HANG_MS)
      for (;;) {
        const found = lines.find(isSo)
        if (found) return found
        await once(written, 'line', { signal })
      }
    },
  }
}

/** The variable that lets a process and its threads use the compiled code of the tests. */
export function compiledCode(): Environment {
  const { NODE_COMPILE_CACHE } = process.env
  return NODE_COMPILE_CACHE ? { NODE_COMPILE_CACHE } : {}
}

interface Run extends Exit {
  /** All that it wrote, to stdout and to stderr. */
  output: string
  /** What of it went to stderr. */
  errors: string
}

/** For commands that end, and starts that must fail. */
export async function runMenshen(env: Environment, options: ProcessOptions = {}): Promise<Run> {
  const { pid, output, errors, exited } = launch(env, options)
  const timer = setTimeout(() => signalGroup(pid, 'SIGKILL'), HANG_MS)
  const exit = await exited.finally(() => clearTimeout(timer))
  return { ...exit, output: output.join('\n'), errors: errors.join('\n') }
}

/** Of all instances: none is left behind if the test itself is made to end. */
const groups = new Set<number>()
process.once('exit', () => {
  for (const group of groups) signalGroup(group, 'SIGKILL')
})

function launch(env: Environment, { cwd, args = [] }: ProcessOptions) {
  const folder = cwd ?? mkdtempSync(join(tmpdir(), 'menshen-'))
  const { PATH, HOME } = process.env
  const child: ChildProcess = spawn(process.execPath, [RESOLVE_QUICKLY, MAIN, ...args], {
    cwd: folder,
    env: { PATH, HOME, ...env },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const pid = child.pid ?? assert.fail('it was not started')
  groups.add(pid)
  const output: string[] = []
  const errors: string[] = []
  const written = new EventEmitter<{ line: [text: string] }>().setMaxListeners(0)
  for (const input of [child.stdout, child.stderr])
    createInterface({ input: input ?? assert.fail() }).on('line', text => {
      output.push(text)
      if (input === child.stderr) errors.push(text)
      written.emit('line', text)
    })
  const exited = once(child, 'close').then(([code, signal]): Exit => {
    groups.delete(pid)
    if (!cwd) rmSync(folder, { recursive: true, force: true })
    return { code, signal }
  })
  return { child, pid, output, errors, written, exited }
}

function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal)
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, 'ESRCH')
  }
}

/** A provider and a folder, for any number of instances; they end with the test. */
export async function setUpInstances(t: TestContext, env: Environment = {}, behaviour: Partial<Behaviour> = {}) {
  const provider = await openScriptedProvider(t, behaviour)
  const folder = tempFolder(t)
  const all = {
    ...provider.settings,
    HOST: '127.0.0.1',
    STORE: `sqlite:${join(folder, 'data', 'menshen.db')}`,
    RATE_LIMIT_PER_MINUTE: '0',
    ...env,
  }
  return {
    provider,
    folder,
    async start(more: Environment = {}): Promise<Instance> {
      const instance = await startInstance({ ...all, ...more }, { cwd: folder })
      t.after(() => instance.killAll('SIGKILL'))
      return instance
    },
    /** A user whose token is due; the tokens that follow are not. */
    async dueUser(instance: Instance, secondsLeft = 200): Promise<SignedInUser> {
      const before = provider.behaviour.expiresIn
      provider.behaviour.expiresIn = secondsLeft
      const user = await signedIn(instance, provider)
      provider.behaviour.expiresIn = before
      return user
    },
  }
}

export interface SignedInUser {
  readonly cookie: string
  /** With the same cookie at any instance, and whatever the answers set. */
  get(instance: { readonly url: string }, path?: string): Promise<Response>
  signOut(instance: { readonly url: string }): Promise<Response>
}

export async function signedIn(
  instance: { readonly url: string },
  provider: Parameters<typeof signIn>[1],
  username = 'zhangsan',
): Promise<SignedInUser> {
  const client = createClient(instance.url)
  const answer = await signIn(client, provider, { username })
  assert.equal(answer.headers.location, '/')
  return userOf(client)
}

export function userOf(client: Client): SignedInUser {
  const cookie = `menshen_session=${client.cookies.get('menshen_session')}`
  const options = { headers: { cookie } }
  return {
    cookie,
    get: ({ url }, path = '/') => createClient(url).get(path, options),
    signOut: ({ url }) => createClient(url).post('/logout', '', options),
  }
}

export function isReady(url: string, probe: InstanceOptions['probe'] = '/_menshen/ready'): Promise<boolean> {
  return createClient(url)
    .get(probe, { signal: AbortSignal.timeout(2000) })
    .then(
      ({ status }) => status === 200,
      () => false,
    )
}

/** Resolves when nobody new gets in. */
export function refusesVisitors({ url }: { readonly url: string }): Promise<void> {
  return until(() =>
    createClient(url)
      .get('/_menshen/health', { signal: AbortSignal.timeout(500) })
      .then(
        () => false,
        ({ code }) => code === 'ECONNREFUSED',
      ),
  )
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    // A process that has ended and whose parent has not looked yet is still there, in name.
    return process.platform !== 'linux' || !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ')
  } catch {
    return false
  }
}

export const isServed = ({ status }: Response) => status === 200
export const isSentToLogin = ({ status, headers }: Response) => status === 302 && headers.location === '/login'
