// A bare node:http server that answers everything as another server answered once: the same status, headers and bytes.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Answer, askAs } from '../measure/answer.ts'
import { folder, type Served, startScript } from './processes.ts'

export interface Recorded {
  readonly status: number
  readonly rawHeaders: string[]
  readonly body: string
  readonly keepAliveMs: number
}

/** What node:http adds by itself. */
const ADDED_BY_NODE = ['date', 'connection', 'keep-alive']

/** `request` is the bytes of the request whose answer is recorded; `expected` its status. */
export async function startTwin(
  url: string,
  request: string,
  { on, expected = 200 }: { on: readonly string[]; expected?: number },
): Promise<Served> {
  const answer = await askAs(url, request)
  if (answer.status !== expected) throw new Error(`${url} answered ${answer.status} ${answer.body}`)
  const file = join(folder, 'answer.json')
  writeFileSync(file, JSON.stringify(record(answer)))
  const twin = await startScript('bare-server.ts', on, file)
  if (weight(await askAs(twin.url, request)) !== weight(answer)) throw new Error(`the bare server differs from ${url}`)
  return twin
}

function record({ status, rawHeaders, headers, body }: Answer): Recorded {
  const [, seconds = 5] = /timeout=(\d+)/.exec(headers['keep-alive'] ?? '') ?? []
  const kept = pairs(rawHeaders).filter(([name]) => !ADDED_BY_NODE.includes(name.toLowerCase()))
  return { status, rawHeaders: kept.flat(), body: body.toString('base64'), keepAliveMs: Number(seconds) * 1000 }
}

/** The names of the headers and how many bytes everything has, in an order that does not matter. */
function weight({ status, rawHeaders, body }: Answer): string {
  const headers = pairs(rawHeaders).map(([name, value]) => `${name.toLowerCase()} ${value.length}`)
  return [status, ...headers.sort(), body.length].join('\n')
}

function pairs(raw: readonly string[]): [name: string, value: string][] {
  return raw.flatMap((name, at) => (at % 2 === 0 ? [[name, raw[at + 1] ?? ''] as [string, string]] : []))
}
