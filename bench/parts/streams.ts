// The cost of open event streams: memory of each, processor time while nothing happens, and the pages of other users beside them.

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type ClientRequest, get } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { inParallel } from '../in-parallel.ts'
import { type Contender, contender, contest } from '../measure/contest.ts'
import { cpuTimeOf } from '../measure/cpu-time.ts'
import { median } from '../measure/statistics.ts'
import type { Part } from '../part.ts'
import { memoryOf } from '../process-memory.ts'
import { kilobytes, megabytes, microseconds, whole } from '../report/words.ts'
import { signIn, startMenshen, startProvider } from '../servers/menshen.ts'
import { startScript } from '../servers/processes.ts'
import { openSqlite } from '../servers/stores.ts'

const AT_ONCE = 100
const IDLE_MS = 5000
const PAGE_ROUNDS = { warmUpSeconds: 1, rounds: 6, mostRounds: 6, roundSeconds: 0.5 }
const OTHER_DESCRIPTORS = 1000

export const streams: Part = {
  async run({ plan, cores, say }) {
    const counts = plan.streams.map(count => Math.min(count, mostStreams()))
    await using open = new AsyncDisposableStack()
    const provider = open.use(await startProvider())
    const store = open.use(await openSqlite())
    const upstream = open.use(await startScript('upstream.ts', []))
    const menshen = open.use(
      await startMenshen(store.address, provider, cores, {
        UPSTREAM: upstream.url,
        TRUSTED_PROXIES: '',
        UPSTREAM_STREAMS: String(2 * Math.max(...counts)),
      }),
    )
    const cookie = await signIn(menshen, 'user')
    const opened: ClientRequest[] = []
    open.defer(() => {
      for (const stream of opened) stream.destroy()
    })
    const page: Contender = contender(menshen, base => ({ url: `${base}/1KB` }), [cookie])
    await contest([page], PAGE_ROUNDS)

    const columns: { memory: number; idle: number; cpu: number; rate: number }[] = []
    for (const count of counts) {
      say(`${whole(count)} open streams`)
      await inParallel(Array(count - opened.length).keys(), AT_ONCE, async () => {
        opened.push(await openStream(`${menshen.url}/events`, cookie))
      })
      const before = cpuTimeOf(menshen.pid)
      await pause(IDLE_MS)
      const idle = (cpuTimeOf(menshen.pid) - before) / (IDLE_MS * 1000)
      const memory = memoryOf(menshen.pid).anonymous
      const [pages] = await contest([page], PAGE_ROUNDS)
      columns.push({ memory, idle, cpu: median(pages?.cpu ?? []), rate: median(pages?.rates ?? []) })
    }
    const [none] = columns
    const each = counts.map((count, index) => ((columns[index]?.memory ?? 0) - (none?.memory ?? 0)) / count)
    return {
      tables: [
        {
          title: 'How it grows with open event streams',
          columns: ['streams', ...counts.map(whole)],
          rows: [
            ['memory of its own (RssAnon)', ...columns.map(({ memory }) => megabytes(memory))],
            ['… each', '', ...each.slice(1).map(kilobytes)],
            [
              'a core is busy with them, nothing being said',
              ...columns.map(({ idle }) => `${(idle * 100).toFixed(1)} %`),
            ],
            ['pages of 1 KB /s beside them', ...columns.map(({ rate }) => whole(rate))],
            ['… CPU', ...columns.map(({ cpu }) => microseconds(cpu))],
          ],
        },
      ],
      marks: [],
      costs: { 'memory of an open stream, bytes': each.at(-1) ?? Number.NaN },
    }
  },
}

/** Menshen has two file descriptors for each stream. */
function mostStreams(): number {
  const [, most = 1024] = /^Max open files\s+\d+\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
  return Math.floor((Number(most) - OTHER_DESCRIPTORS) / 2)
}

/** Resolves when its first event has arrived. */
async function openStream(url: string, cookie: string): Promise<ClientRequest> {
  const request = get(url, { agent: false, headers: { cookie, accept: 'text/event-stream' } })
  const [response] = await once(request, 'response')
  if (response.statusCode !== 200) throw new Error(`${url} answered ${response.statusCode}`)
  request.on('error', () => {}) // ended here
  response.on('error', () => {})
  await once(response, 'data')
  response.resume()
  return request
}
