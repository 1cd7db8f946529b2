// A million sessions on the disk, a tenth of them expired: the start, the memory, and requests while the sweep goes on.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { join } from 'node:path'
import test from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { watchExpired } from '../../bench/servers/expired-sessions.ts'
import { userNumber } from '../../bench/servers/users.ts'
import { type Instance, setUpInstances, signedIn } from '../kit/instance.ts'
import { CLIENT_SECRET } from '../kit/strict-provider.ts'

const run = promisify(execFile)

const SESSIONS = 1_000_000
const EXPIRED = 100_000
const TICKETS = 10_000
const AN_HOUR_SECONDS = 3600
const DAY_SECONDS = 86_400
/** Far above what is needed, far below what a million sessions in memory would take. */
const MEMORY_MB = 220

test('a million sessions in the embedded store are swept and listed with less than 220 MB of memory', {
  timeout: 1_500_000,
}, async t => {
  const { folder, provider, start } = await setUpInstances(t, { LOG_LEVEL: 'warn' })
  const directory = join(folder, 'data')
  const began = performance.now()
  const tickets = await preload(folder, directory)
  t.diagnostic(`preloaded ${SESSIONS} sessions in ${Math.round((performance.now() - began) / 1000)} s`)

  const menshen = await start()
  const atStart = anonymousMb(menshen)
  t.diagnostic(`ready after ${Math.round(menshen.readyAfterMs)} ms with ${atStart} MB`)

  const expired = countExpired(t, directory)
  const windows: string[] = []
  let swept: string | undefined
  const sweepBegan = performance.now()
  for (let quiet = 0; quiet < 2 && windows.length < 60; ) {
    const left = expired()
    const latencies = await visit(menshen, tickets, 3000)
    windows.push(`${left} expired left: p50 ${at(latencies, 0.5)} ms, p99 ${at(latencies, 0.99)} ms`)
    if (left > 0) continue
    quiet += 1
    swept ??= `${Math.round((performance.now() - sweepBegan) / 1000)} s`
  }
  t.diagnostic(`sweep of ${EXPIRED} while serving: ${swept}; ${windows.at(0)}; ${windows.at(1)}; ${windows.at(-1)}`)
  assert.equal(expired(), 0)

  const developer = await signedIn(menshen, provider, 'admin')
  const times: number[] = []
  for (let n = 0; n < 20; n++) {
    const before = performance.now()
    const page = await developer.get(
      menshen,
      `/_menshen/console/sessions${n % 2 ? `?username=${userNumber(TICKETS - 1)}` : ''}`,
    )
    times.push(performance.now() - before)
    assert.equal(page.status, 200)
    assert.match(page.text, n % 2 ? new RegExp(`<code>${userNumber(TICKETS - 1)}<`) : /共有 \d{6,7} 个会话/)
  }
  t.diagnostic(`console: p50 ${at(times, 0.5)} ms, slowest ${at(times, 1)} ms; memory ${anonymousMb(menshen)} MB`)
  assert.ok(anonymousMb(menshen) < MEMORY_MB, `${anonymousMb(menshen)} MB`)
})

/** Gives tickets of sessions that live. Not by sign-ins, which would take an hour. */
async function preload(folder: string, directory: string): Promise<string[]> {
  const script = fileURLToPath(new URL('../../bench/servers/preload.ts', import.meta.url))
  const file = join(folder, 'cookies')
  const fill = (...args: (string | number)[]) =>
    run(process.execPath, [script, directory, ...args.map(String)], { env: { CLIENT_SECRET } })
  await fill(EXPIRED, -AN_HOUR_SECONDS, file, 0)
  await fill(SESSIONS - EXPIRED, DAY_SECONDS, file, TICKETS)
  return readFileSync(file, 'utf8')
    .split('\n')
    .map(cookie => cookie.slice(cookie.indexOf('=') + 1))
}

function countExpired(t: { after(work: () => Promise<void>): void }, directory: string): () => number {
  const expired = watchExpired(directory)
  t.after(async () => expired[Symbol.asyncDispose]())
  return expired.count
}

/** One request after the other, from several users; how long each took, in order of length. */
async function visit({ url }: Instance, tickets: readonly string[], forMs: number): Promise<number[]> {
  const agent = new Agent({ keepAlive: true })
  const end = performance.now() + forMs
  const latencies: number[] = []
  const user = async () => {
    while (performance.now() < end) {
      const ticket = tickets[Math.floor(Math.random() * tickets.length)]
      const before = performance.now()
      await new Promise<void>((resolve, reject) => {
        const headers = { cookie: `menshen_session=${ticket}` }
        get(`${url}/_menshen/check`, { agent, headers }, response => {
          if (response.statusCode !== 200) reject(new Error(`${response.statusCode}`))
          response.resume().on('end', resolve)
        }).on('error', reject)
      })
      latencies.push(performance.now() - before)
      await pause(2)
    }
  }
  await Promise.all(Array.from({ length: 8 }, user))
  agent.destroy()
  return latencies
}

function at(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return Math.round(10 * (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0)) / 10
}

function anonymousMb(instance: Instance): number {
  const [pid] = instance.workers()
  const [, kilobytes = '0'] = /RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Math.round(Number(kilobytes) / 1024)
}
