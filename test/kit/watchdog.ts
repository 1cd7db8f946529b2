// Ends test files that would never end. `--test-timeout` cannot end one whose main thread is blocked, because its timer is on
// that thread, nor one whose tests are done and left something open.
//
//   test file   heartbeat.js writes FOLDER/PID every two seconds       as long as its event loop turns
//   watchdog    looks at the age of these files                         in the process of test/run.ts
//   too old     SIGUSR1 opens the inspector of a thread that is busy    Debugger.pause tells its stack
//   then        the stack is printed, and SIGKILL ends the process      the runner counts the file as failed

import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'

interface Watchdog {
  /** Options of Node for the runner, which passes them on to each test file. */
  readonly nodeOptions: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** Ends blocked files of the runner with this process id until `signal` is aborted. Call it as soon as the runner is started. */
  watch(runner: number, signal: AbortSignal): Promise<void>
  [Symbol.dispose](): void
}

interface Heartbeat {
  readonly file: string
  readonly port: number
  readonly startedAt: number
}

interface WatchdogOptions {
  /** How long the main thread may stand still. */
  readonly blockedAfterMs: number
  /** How long a whole file may take. */
  readonly fileTimeoutMs: number
  readonly checkEveryMs: number
  readonly print: (text: string) => void
}

/** The file with the process id of the runner: only its children are test files. The others have a process id as their name. */
const RUNNER = 'runner'
/** A thread that is blocked in native code, or waits for events, does not tell its stack. */
const STACK_WITHIN_MS = 30_000
const PAUSE_EVERY_MS = 300

export function createWatchdog({ blockedAfterMs, fileTimeoutMs, checkEveryMs, print }: WatchdogOptions): Watchdog {
  const folder = mkdtempSync(join(tmpdir(), 'menshen-heartbeats-'))

  async function end(pid: number, { file, port }: Heartbeat, problem: string, isBlocked: boolean): Promise<void> {
    print(`✖ ${relative(process.cwd(), file)} ${problem}\n`)
    if (!isBlocked) print('    (its main thread runs: it waits for something, or has left something open)\n')
    else if (signalTo(pid, 'SIGUSR1')) print(`${await readStack(port)}\n`)
    signalTo(pid, 'SIGKILL')
    rmSync(join(folder, String(pid)), { force: true })
  }

  async function check(): Promise<void> {
    for (const name of readdirSync(folder)) {
      if (!/^\d+$/.test(name)) continue
      const path = join(folder, name)
      const beatAt = statSync(path, { throwIfNoEntry: false })?.mtimeMs
      const heartbeat = beatAt && readHeartbeat(path)
      if (!heartbeat) continue
      const silentMs = Date.now() - beatAt
      const ageMs = Date.now() - heartbeat.startedAt
      if (silentMs > blockedAfterMs)
        await end(Number(name), heartbeat, `is blocked: its main thread has not run for ${seconds(silentMs)}`, true)
      else if (ageMs > fileTimeoutMs) await end(Number(name), heartbeat, `has not ended after ${seconds(ageMs)}`, false)
    }
  }

  return {
    nodeOptions: ['--import=./test/kit/heartbeat.js'],
    env: { TEST_HEARTBEATS: folder },
    async watch(runner, signal) {
      writeFileSync(join(folder, RUNNER), String(runner))
      while (!signal.aborted) {
        await pause(checkEveryMs, undefined, { signal }).catch(() => {})
        await check()
      }
    },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** `undefined` if the process has just ended, or is writing. */
function readHeartbeat(path: string): Heartbeat | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    return undefined
  }
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1000)} s`
}

/** Whether the process was there. */
function signalTo(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal)
  } catch {
    return false
  }
}

async function readStack(port: number): Promise<string> {
  const signal = AbortSignal.timeout(STACK_WITHIN_MS)
  try {
    const frames = await pausedFrames(await inspectorAddress(port, signal), signal)
    return frames.map(frame => `    at ${frame}`).join('\n')
  } catch {
    return '    (no JavaScript runs: it waits for an event, or is blocked in native code)'
  }
}

/** The inspector takes a moment to listen. */
async function inspectorAddress(port: number, signal: AbortSignal): Promise<string> {
  for (;;) {
    try {
      const response = await fetch(`http://127.0.0.1:${port}/json/list`, { signal })
      const [target] = (await response.json()) as { webSocketDebuggerUrl: string }[]
      if (target) return target.webSocketDebuggerUrl
    } catch (error) {
      if (signal.aborted) throw error
    }
    await pause(100, undefined, { signal })
  }
}

/** The messages of the inspector protocol that are read here. */
interface InspectorMessage {
  readonly method?: string
  readonly params: {
    readonly scriptId: string
    readonly url: string
    readonly callFrames: readonly {
      readonly functionName: string
      readonly location: { readonly scriptId: string; readonly lineNumber: number }
    }[]
  }
}

function pausedFrames(address: string, signal: AbortSignal): Promise<string[]> {
  const socket = new WebSocket(address)
  const urls = new Map<string, string>()
  // Once is not always enough for a loop that V8 is just compiling.
  const pausing = setInterval(() => {
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ id: 2, method: 'Debugger.pause' }))
  }, PAUSE_EVERY_MS)
  return new Promise<string[]>((resolve, reject) => {
    signal.addEventListener('abort', reject)
    socket.onerror = reject
    socket.onopen = () => socket.send(JSON.stringify({ id: 1, method: 'Debugger.enable' }))
    socket.onmessage = ({ data }) => {
      const { method, params }: InspectorMessage = JSON.parse(data)
      if (method === 'Debugger.scriptParsed') urls.set(params.scriptId, params.url)
      if (method === 'Debugger.paused')
        resolve(
          params.callFrames.map(
            ({ functionName, location }) =>
              `${functionName || '<anonymous>'} (${urls.get(location.scriptId)}:${location.lineNumber + 1})`,
          ),
        )
    }
  }).finally(() => {
    clearInterval(pausing)
    socket.close()
  })
}
