// How long an event of a stream takes from the application's write to the browser's read.

import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { preciseNow } from './precise-now.ts'
import { median } from './statistics.ts'

const STREAMS = 20

/** In milliseconds, the median of the first events of several streams. */
export async function firstEventDelay(url: string, cookie: string): Promise<number> {
  const delays: number[] = []
  while (delays.length < STREAMS) delays.push(await delayOfOne(url, cookie))
  return median(delays)
}

async function delayOfOne(url: string, cookie: string): Promise<number> {
  const request = get(url, { agent: false, headers: { cookie, accept: 'text/event-stream' } })
  request.on('error', () => {}) // reported to the waiting caller, and irrelevant once it has been ended here
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  const [event] = await once(response, 'data')
  const now = preciseNow()
  request.destroy()
  const [, written] = /^data: ([\d.]+)/.exec(String(event)) ?? []
  if (response.statusCode !== 200 || !written) throw new Error(`${url} answered ${response.statusCode}: ${event}`)
  return now - Number(written)
}
