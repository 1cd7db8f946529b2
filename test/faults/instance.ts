// Menshen as a service manager runs it: a process group of its own, whose processes a test can find, signal and read.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { TestContext } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Client, createClient, type Response, signIn } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import type { Environment, Exit } from '../kit/process.ts'
import { requireLinux } from '../kit/requirements.ts'
import { startScriptedProvider } from '../kit/scripted-provider.ts'
import type { Behaviour } from '../kit/strict-provider.ts'
import { tempFolder } from '../kit/temp.ts'

const MAIN = fileURLToPath(new URL('../../bin/menshen.js', import.meta.url))
const DEADLINE_MS = 20_000

/** A line of the log. */
export interface Line {
  readonly event: string
  readonly worker?: number
  readonly [fact: string]: unknown
}

/** Nobody is left behind if the test itself is made to end. */
const groups = new Set<number>()
process.once('exit', () => {
  for (const group of groups) endGroup(group, 'SIGKILL')
})

export type Instance = Awaited<ReturnType<typeof startInstance>>

/** Resolves when it is ready to serve. */
export async function startInstance(t: TestContext, cwd: string, given: Environment) {
  const port = given.PORT ?? String(await freePort())
  const url = `http://localhost:${port}`
  const { PATH, HOME } = process.env
  const env = { PATH, HOME, BASE_URL: url, PORT: port, HOST: '127.0.0.1', ...given }
  const began = performance.now()
  const child = spawn(process.execPath, [MAIN], { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  const pid = child.pid ?? assert.fail('it was not started')
  const lines: Line[] = []
  const written = new EventEmitter().setMaxListeners(0)
  for (const input of [child.stdout, child.stderr])
    createInterface({ input }).on('line', text => {
      lines.push(text.startsWith('{') ? JSON.parse(text) : { event: text })
      written.emit('line')
    })
  const exited = once(child, 'close').then(([code, signal]): Exit => ({ code, signal }))
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null

  /** To every process of it, as systemd and a terminal do. */
  function signalAll(signal: NodeJS.Signals): Promise<Exit> {
    endGroup(pid, signal)
    return exited
  }
  groups.add(pid)
  exited.then(() => groups.delete(pid))
  t.after(() => signalAll('SIGKILL'))

  await until(async () => {
    assert.ok(!hasEnded(), `it ended at once:\n${lines.map(({ event }) => event).join('\n')}`)
    return isReady(url)
  })

  return {
    url,
    pid,
    lines,
    readyAfterMs: performance.now() - began,
    exited,
    signalAll,
    /** To the first process alone. */
    signal(signal: NodeJS.Signals): Promise<Exit> {
      child.kill(signal)
      return exited
    },
    /** The processes that it started. */
    workers(): number[] {
      requireLinux('/proc')
      const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
      return text.trim().split(' ').filter(Boolean).map(Number)
    },
    /** Resolves with the first line that is so, written before or later. */
    async said(isSo: (line: Line) => boolean): Promise<Line> {
      const signal = AbortSignal.timeout(DEADLINE_MS)
      for (;;) {
        const found = lines.find(isSo)
        if (found) return found
        await once(written, 'line', { signal })
      }
    },
  }
}

function endGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal)
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, 'ESRCH')
  }
}

/** A provider and a folder, for any number of instances. */
export async function prepare(t: TestContext, env: Environment = {}, behaviour: Partial<Behaviour> = {}) {
  const provider = await startScriptedProvider(behaviour)
  t.after(() => provider.close())
  const folder = tempFolder(t)
  const all = {
    ...provider.settings,
    STORE: `lmdb:${join(folder, 'data')}`,
    RATE_LIMIT_PER_MINUTE: '0',
    ...env,
  }
  return {
    provider,
    folder,
    start: (more: Environment = {}) => startInstance(t, folder, { ...all, ...more }),
    /** A user whose token is due; the tokens that follow are not. */
    async dueUser(instance: Instance, secondsLeft = 200): Promise<User> {
      const before = provider.behaviour.expiresIn
      provider.behaviour.expiresIn = secondsLeft
      const user = await signedIn(instance, provider)
      provider.behaviour.expiresIn = before
      return user
    },
  }
}

export interface User {
  readonly cookie: string
  /** With the same cookie at any instance, and whatever the answers set. */
  get(instance: { readonly url: string }, path?: string): Promise<Response>
  signOut(instance: { readonly url: string }): Promise<Response>
}

export async function signedIn(
  instance: { readonly url: string },
  provider: Parameters<typeof signIn>[1],
  username = 'zhangsan',
): Promise<User> {
  const client = createClient(instance.url)
  const answer = await signIn(client, provider, { username })
  assert.equal(answer.headers.location, '/')
  return userOf(client)
}

export function userOf(client: Client): User {
  const cookie = `menshen_session=${client.cookies.get('menshen_session')}`
  const options = { headers: { cookie } }
  return {
    cookie,
    get: ({ url }, path = '/') => createClient(url).get(path, options),
    signOut: ({ url }) => createClient(url).post('/logout', '', options),
  }
}

export function isReady(url: string): Promise<boolean> {
  return createClient(url)
    .get('/_menshen/ready', { signal: AbortSignal.timeout(2000) })
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

export async function until(isSo: () => boolean | Promise<boolean>, deadlineMs = DEADLINE_MS): Promise<void> {
  const deadline = performance.now() + deadlineMs
  while (!(await isSo())) {
    assert.ok(performance.now() < deadline, `not so after ${deadlineMs} ms`)
    await pause(20)
  }
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
