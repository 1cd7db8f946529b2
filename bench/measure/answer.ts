// Asks a server of the benchmarks, and keeps its answer so exactly that another server can send the same.

import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import { buffer } from 'node:stream/consumers'

export interface Answer {
  readonly status: number
  /** Alternating names and values, as they were sent. */
  readonly rawHeaders: readonly string[]
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

const agent = new Agent({ keepAlive: true })

/** Asks as a program does. */
export function ask(url: string, cookie?: string): Promise<Answer> {
  return askWith(url, cookie ? ['Host', new URL(url).host, 'Cookie', cookie] : ['Host', new URL(url).host])
}

/** Sends the headers of `request`, which contains the bytes of a request. */
export function askAs(url: string, request: string): Promise<Answer> {
  const lines = request.split('\r\n').slice(1, -2)
  return askWith(
    url,
    lines.flatMap(line => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
  )
}

async function askWith(url: string, headers: readonly string[]): Promise<Answer> {
  const request = get(url, { agent, headers })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  const all = Object.entries(response.headersDistinct).map(([name, values = []]) => [name, values.join(', ')])
  return {
    status: response.statusCode ?? 0,
    rawHeaders: response.rawHeaders,
    headers: Object.fromEntries(all),
    body: await buffer(response),
  }
}
