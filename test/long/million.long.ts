// A million sessions on the disk, a tenth of them expired: the start, the memory, and requests while the sweep goes on.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { join } from 'node:path'
import test from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { open } from 'lmdb'
import { USUAL_ROLES } from '../../src/access/roles.ts'
import { createDataKeyring } from '../../src/session/keys/data-keys.ts'
import { deriveKeys } from '../../src/session/keys/derived-keys.ts'
import { newSession, toEntry } from '../../src/session/session-record.ts'
import { newTicket, recordKey } from '../../src/session/ticket.ts'
import { Secret } from '../../src/settings/secret.ts'
import { openLmdbStore } from '../../src/stores/lmdb/lmdb-store.ts'
import { type Instance, prepare, signedIn } from '../faults/instance.ts'
import { CLIENT_SECRET } from '../kit/strict-provider.ts'

const SESSIONS = 1_000_000
const EXPIRED = 100_000
const TICKETS = 10_000
const AT_ONCE = 5000
const ORIGIN = {
  address: '192.0.2.7',
  userAgent:
    'Mozilla/5.0 (Linux; Android 13; wv) AppleWebKit/537.36 Chrome/116 Mobile MicroMessenger/8.0.49 WeChat/arm64',
}
const NEVER_MS = 2 ** 31 - 1
const START_MS = 3000
/** Far above what is needed, far below what a million sessions in memory would take. */
const MEMORY_MB = 250

test('a million sessions in the embedded store', { timeout: 1_500_000 }, async t => {
  const { folder, provider, start } = await prepare(t, { LOG_LEVEL: 'warn' })
  const directory = join(folder, 'data')
  const began = performance.now()
  const tickets = await preload(directory)
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
    const page = await developer.get(menshen, `/_menshen/console/sessions${n % 2 ? '?username=user-500000' : ''}`)
    times.push(performance.now() - before)
    assert.equal(page.status, 200)
    assert.match(page.text, n % 2 ? /<code>user-500000</ : /共有 \d{6,7} 个会话/)
  }
  t.diagnostic(`console: p50 ${at(times, 0.5)} ms, slowest ${at(times, 1)} ms; memory ${anonymousMb(menshen)} MB`)
  assert.ok(anonymousMb(menshen) < MEMORY_MB, `${anonymousMb(menshen)} MB`)
  assert.ok(menshen.readyAfterMs < START_MS, `ready after ${menshen.readyAfterMs} ms`)
  assert.ok(at(times, 1) < 1000, 'the console is slow')
})

/** Gives tickets of sessions that live. */
async function preload(directory: string): Promise<string[]> {
  const store = await openLmdbStore({ directory, now: Date.now, sweepEveryMs: NEVER_MS })
  const derived = deriveKeys({ SECRET: undefined, CLIENT_SECRET: new Secret(CLIENT_SECRET) })
  const keys = await createDataKeyring({ store, keys: derived, now: Date.now, report() {} }).current()
  const tickets: string[] = []
  const numbers = Array(SESSIONS).keys()
  const write = async () => {
    for (const number of numbers) {
      const [ticket, now, username] = [newTicket(), Date.now(), `user-${number}`]
      const userInfo = {
        sub: username,
        ou_id: '1',
        nickname: username,
        phone_number: '13800000000',
        ou_name: '研发部',
        email: `${username}@example.com`,
        username,
      }
      const tokens = { accessToken: `at-${ticket}`, refreshToken: `rt-${ticket}`, expiresIn: 86_400, receivedAt: now }
      const session = newSession(
        { tokens, facts: { userInfo, groups: [], claims: {} }, provider: undefined },
        USUAL_ROLES,
      )
      const { userRole } = session
      const card = { username, nickname: username, userRole, signedInAt: now, seenAt: now, ...ORIGIN }
      const entry = toEntry(ticket, session, card, 168, keys)
      const isExpired = number % (SESSIONS / EXPIRED) === 1
      await store.create(recordKey(ticket), isExpired ? { ...entry, expiresAt: now - 1 } : entry)
      if (!isExpired && tickets.length < TICKETS) tickets.push(ticket)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, write))
  await store.close()
  return tickets
}

function countExpired(t: { after(work: () => Promise<void>): void }, directory: string): () => number {
  const root = open({ path: directory, noSubdir: false, readOnly: true })
  t.after(() => root.close())
  const byExpiry = root.openDB<Buffer, [number, string]>('byExpiry', { encoding: 'binary' })
  return () => {
    byExpiry.resetReadTxn()
    return byExpiry.getKeysCount({ end: [Date.now(), ''] })
  }
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

function anonymousMb({ pid }: Instance): number {
  const [, kilobytes = '0'] = /RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Math.round(Number(kilobytes) / 1024)
}
