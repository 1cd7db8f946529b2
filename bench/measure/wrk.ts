// Load by wrk: as many requests as a server can answer, for a short while.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { Requests } from './requests.ts'

export interface Load {
  readonly url: string
  readonly requests: Requests
  readonly connections?: number
}

export interface Measured {
  readonly requests: number
  /** Requests per second. */
  readonly rate: number
}

const SCRIPT = fileURLToPath(new URL('requests.lua', import.meta.url))
const CONNECTIONS = 32
/** Longer than any round: wrk supports only whole seconds, so a signal ends it, which it treats as its normal end. */
const LONG = '600s'
const LONGEST_SECONDS = 10
/** What requests.lua prints first. */
const READY = 'ready'

/** Begins with request number `first`. Throws if a single request failed, or if nothing was answered for a long time. */
export async function measure(load: Load, seconds: number, first = 0): Promise<Measured> {
  const measured = await measureOnce(load, seconds, first)
  if (measured.requests > 0) return measured
  // The machine was not available to us for the whole round.
  if (seconds < LONGEST_SECONDS) return measure(load, seconds * 2, first)
  throw new Error(`${load.url} was not answered for ${seconds} seconds`)
}

async function measureOnce(load: Load, seconds: number, first: number): Promise<Measured> {
  const { file, length, count } = load.requests
  const options = ['-t', '1', '-c', String(load.connections ?? CONNECTIONS), '-d', LONG, '--timeout', LONG]
  const numbers = [length, count, first % count].map(String)
  const wrk = spawn('wrk', [...options, '-s', SCRIPT, load.url, '--', file, ...numbers])
  const end = () => wrk.kill('SIGKILL')
  process.on('exit', end)
  try {
    const [printed, errors] = [text(wrk.stdout), once(wrk.stderr, 'data')]
    const exited = once(wrk, 'exit')
    const [said] = await Promise.race([
      errors,
      exited.then(() => Promise.reject(new Error(`wrk ended at once for ${load.url}`))),
    ])
    if (!String(said).startsWith(READY)) throw new Error(`wrk: ${said}`)
    const timer = setTimeout(() => wrk.kill('SIGINT'), seconds * 1000)
    await exited.finally(() => clearTimeout(timer))
    return read(load.url, await printed)
  } finally {
    process.off('exit', end)
    end()
  }
}

function read(url: string, printed: string): Measured {
  const [wrong] = /Socket errors.*|Non-2xx.*/.exec(printed) ?? []
  if (wrong) throw new Error(`${url}: ${wrong}`)
  const number = (pattern: RegExp) => Number(pattern.exec(printed)?.[1])
  return { requests: number(/(\d+) requests in/), rate: number(/Requests\/sec:\s*([\d.]+)/) }
}
