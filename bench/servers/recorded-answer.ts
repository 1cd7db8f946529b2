// A recorded answer in a file, so that another server can give the same.

import { readFileSync, writeFileSync } from 'node:fs'
import type { Answer } from '../measure/answer.ts'

interface Recorded {
  readonly status: number
  /** Alternating names and values. */
  readonly rawHeaders: string[]
  readonly body: Buffer
  readonly keepAliveMs: number
}

const ADDED_BY_NODE = ['date', 'connection', 'keep-alive']
const USUAL_KEEP_ALIVE_SECONDS = 5

export function writeRecorded(file: string, { status, rawHeaders, headers, body }: Answer): void {
  const [, seconds = USUAL_KEEP_ALIVE_SECONDS] = /timeout=(\d+)/.exec(headers['keep-alive'] ?? '') ?? []
  const kept = pairs(rawHeaders).filter(([name]) => !ADDED_BY_NODE.includes(name.toLowerCase()))
  const keepAliveMs = Number(seconds) * 1000
  writeFileSync(file, JSON.stringify({ status, rawHeaders: kept.flat(), body: body.toString('base64'), keepAliveMs }))
}

export function readRecorded(file: string): Recorded {
  const recorded = JSON.parse(readFileSync(file, 'utf8'))
  return { ...recorded, body: Buffer.from(recorded.body, 'base64') }
}

/** The names of the headers and how many bytes everything has, in an order that does not matter. */
export function weightOf({ status, rawHeaders, body }: Answer): string {
  const headers = pairs(rawHeaders).map(([name, value]) => `${name.toLowerCase()} ${value.length}`)
  return [status, ...headers.sort(), body.length].join('\n')
}

function pairs(raw: readonly string[]): [name: string, value: string][] {
  return raw.flatMap((name, at) => (at % 2 === 0 ? [[name, raw[at + 1] ?? ''] as [string, string]] : []))
}
