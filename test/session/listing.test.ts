// Sessions as the console lists them: the newest first, counted, with where somebody signed in from.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import test from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { DEFAULT_ROLES } from '../../src/access/roles.ts'
import { readSettings } from '../../src/config/read.ts'
import { Secret } from '../../src/config/secret.ts'
import { createDataKeyring } from '../../src/session/data-keys.ts'
import { deriveKeys } from '../../src/session/derived-keys.ts'
import { createSessionListing } from '../../src/session/listing.ts'
import { labelOf } from '../../src/session/record.ts'
import { createSessions, type Sessions } from '../../src/session/sessions.ts'
import { newTicket, recordKey } from '../../src/session/ticket.ts'
import { createMemoryStore } from '../../src/stores/memory.ts'
import { allPages } from '../../src/stores/pages.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { createScene, settle, signedIn, tokens } from '../faults/doubles.ts'
import { openScriptedProvider } from '../kit/scripted-provider.ts'
import { openGateway } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'

const ORIGIN = { address: '192.0.2.7', userAgent: 'Mozilla/5.0 (X11)' }

test('sessions are listed newest first, page by page, and only live sessions are counted', async t => {
  const { scene, sessions, signIn } = open()
  t.after(() => scene.store.close())
  const keys: string[] = []
  for (let n = 0; n < 5; n++) {
    keys.unshift(await signIn())
    scene.pass(1000)
  }
  assert.equal(await sessions.count(), 5)
  const first = await sessions.newest({ limit: 3 })
  const second = await sessions.newest({ limit: 3, ...(first.next && { before: first.next }) })
  assert.deepEqual(keysOf([...first.sessions, ...second.sessions]), keys)
  assert.equal(second.next, undefined)
  assert.deepEqual(keysOf((await sessions.list({ username: 'zhangsan', limit: 10 })).sessions), keys)

  await sessions.end(keys[1] ?? '')
  assert.equal(await sessions.count(), 4)
  assert.deepEqual(keysOf((await sessions.newest({ limit: 2 })).sessions), [keys[0], keys[2]])
})

test('the address and user agent of a sign-in are listed and stay the same after refreshes and visits', async t => {
  const { scene, sessions } = open()
  t.after(() => scene.store.close())
  const signedInAt = scene.now()
  const { ticket } = await sessions.open({ ...signedIn(tokens('first', signedInAt)), origin: ORIGIN })
  await sessions.open(signedIn(tokens('other', signedInAt + 1)))
  const listed = async () => (await sessions.getListed(recordKey(ticket)))?.summary
  const asOpened = await listed()
  assert.deepEqual({ ...asOpened, ...ORIGIN, seenAt: signedInAt }, asOpened)

  scene.pass(7_000_000)
  const refreshing = sessions.getFresh(ticket)
  const { give } = await scene.call(1)
  give(tokens('second'))
  await refreshing
  assert.deepEqual(await listed(), { ...asOpened, seenAt: scene.now() })

  scene.pass(6 * 60_000)
  await sessions.getFresh(ticket)
  await settle()
  assert.deepEqual(await listed(), { ...asOpened, seenAt: scene.now() })
  const { sessions: newest } = await sessions.newest({ limit: 10 })
  assert.equal(newest.at(-1)?.key, recordKey(ticket), 'by its sign-in, whatever happened since')
})

test('a very long user agent is listed by its first 256 characters', async t => {
  const { scene, sessions } = open()
  t.after(() => scene.store.close())
  await sessions.open({ ...signedIn(tokens('first')), origin: { userAgent: 'x'.repeat(5000) } })
  const [listed] = (await sessions.newest({ limit: 1 })).sessions
  assert.equal(listed?.summary?.userAgent, 'x'.repeat(256))
  assert.ok(!Object.hasOwn(listed?.summary ?? {}, 'address'))
})

test('a sign-in through the gateway is listed with its client address and user agent', async t => {
  const provider = await openScriptedProvider(t)
  const directory = join(await tempFolder(t), 'data')
  const gateway = await openGateway(
    t,
    { ...provider.settings, STORE: `sqlite:${directory}/menshen.db`, TRUSTED_PROXIES: '127.0.0.1' },
    { now: Date.now() },
  )
  const visitor = gateway.visitor()
  const back = new URL((await visitor.follow(await visitor.post('/login'))).headers.location ?? '')
  const headers = { 'user-agent': ORIGIN.userAgent, 'x-forwarded-for': ORIGIN.address }
  assert.equal((await visitor.get(back.pathname + back.search, { headers })).status, 302)

  const store = await openSqliteStore({ file: `${directory}/menshen.db`, now: Date.now })
  t.after(() => store.close())
  const clientSecret = provider.settings.CLIENT_SECRET
  const keys = deriveKeys({ SECRET: undefined, CLIENT_SECRET: new Secret(clientSecret) })
  const common = { store, now: Date.now, report() {} }
  const providers = { get: () => undefined }
  const keyring = createDataKeyring({ ...common, keys })
  const sessions = createSessions({ ...common, keyring, providers, roles: DEFAULT_ROLES, settings: readSettings({}) })
  const [listed, ...others] = (await sessions.newest({ limit: 10 })).sessions
  assert.deepEqual(others, [])
  assert.deepEqual({ ...listed?.summary, ...ORIGIN }, listed?.summary)
})

test('sessions of a user are listed newest first for any page size, and more than ten thousand are each listed once', async t => {
  const keys = { publicPart: randomBytes(32), labels: randomBytes(32) }
  const store = createMemoryStore({ now: () => 0 })
  t.after(() => store.close())
  const listing = createSessionListing({ store, keyring: { current: async () => keys } })
  const walk = async (limit: number) => {
    const found: string[] = []
    const sizes: number[] = []
    for await (const { sessions } of allPages(before => listing.newestNamed('zhangsan', { before, limit }))) {
      found.push(...keysOf(sessions))
      sizes.push(sessions.length)
    }
    return { found, sizes }
  }
  const since = new Map<string, number>()
  const labels = [labelOf('username', 'zhangsan', keys)]
  const add = async (count: number) => {
    for (let n = 0; n < count; n++) {
      const key = newTicket()
      // Many have the same time.
      since.set(key, (since.size * 7919) % 997)
      await store.create(key, { value: new Uint8Array(1), expiresAt: 1, labels, since: since.get(key) ?? 0 })
    }
  }
  const newestFirst = (some: Iterable<string>) =>
    [...some].sort((a, b) => (since.get(b) ?? 0) - (since.get(a) ?? 0) || (a < b ? 1 : -1))
  assert.deepEqual((await walk(10)).found, [])
  await add(450)
  for (const limit of [1, 7, 150, 450, 451]) assert.deepEqual((await walk(limit)).found, newestFirst(since.keys()))
  await add(24_000)
  const { found, sizes } = await walk(2000)
  const inOrder = [...since.keys()].sort()
  const parts = [inOrder.slice(0, 10_000), inOrder.slice(10_000, 20_000), inOrder.slice(20_000)]
  assert.deepEqual(found, parts.flatMap(newestFirst))
  assert.ok(sizes.every(size => size > 0 && size <= 2000))
  for (const odd of ['x', '1:', ':::', `:${'a'.repeat(43)}`, '1:é'])
    assert.equal((await listing.newestNamed('zhangsan', { before: odd, limit: 1 })).sessions[0]?.key, found[0], odd)
})

test('other requests are answered while a long list of sessions is read or ended', async t => {
  const keys = { publicPart: randomBytes(32), labels: randomBytes(32) }
  const store = createMemoryStore({ now: () => 0 })
  t.after(() => store.close())
  const labels = [labelOf('username', 'zhangsan', keys)]
  const count = 5000
  for (let n = 0; n < count; n++)
    await store.create(newTicket(), { value: new Uint8Array(1), expiresAt: 1, labels, since: n })
  const listing = createSessionListing({ store, keyring: { current: async () => keys } })
  /** How many turns of the event loop others had in the meantime. */
  async function turnsDuring(work: Promise<unknown>): Promise<number> {
    let isDone = false
    let turns = 0
    const done = work.finally(() => {
      isDone = true
    })
    while (!isDone) {
      await nextTurn()
      turns++
    }
    await done
    return turns
  }
  assert.ok((await turnsDuring(listing.newestNamed('zhangsan', { limit: 200 }))) >= count / 200)
  let ended = 0
  const endAll = async () => {
    for await (const _session of listing.endNamed('zhangsan')) ended++
  }
  assert.ok((await turnsDuring(endAll())) >= count / 100)
  assert.equal(ended, count)
})

function open() {
  const scene = createScene()
  const sessions = scene.instance('one')
  const signIn = async () => (await sessions.open(signedIn(tokens('first', scene.now())))).loaded.key
  return { scene, sessions, signIn }
}

function keysOf(sessions: Awaited<ReturnType<Sessions['list']>>['sessions']): string[] {
  return sessions.map(({ key }) => key)
}
