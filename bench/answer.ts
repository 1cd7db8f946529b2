// Asks a server of the benchmarks, and keeps what it answered so exactly that another one can answer the same.

import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import { buffer } from 'node:stream/consumers'

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** What node:http adds by itself, the same for every server. */
const ADDED_BY_NODE = ['date', 'connection', 'keep-alive']
const agent = new Agent({ keepAlive: true })

export async function ask(url: string, cookie = ''): Promise<Answer> {
  const request = get(url, { agent, headers: cookie ? { cookie } : {} })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  const all = Object.entries(response.headersDistinct).map(([name, values = []]) => [name, values.join(', ')])
  const headers = Object.fromEntries(all.filter(([name = '']) => !ADDED_BY_NODE.includes(name)))
  return { status: response.statusCode ?? 0, headers, body: await buffer(response) }
}

export function writeAnswer({ status, headers, body }: Answer): string {
  return JSON.stringify({ status, headers, body: body.toString('base64') })
}

export function readAnswer(text: string): Answer {
  const { status, headers, body } = JSON.parse(text)
  return { status, headers, body: Buffer.from(body, 'base64') }
}
