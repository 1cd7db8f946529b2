// A store that fails late in a sign-in: once the session is stored, the user gets it.

import assert from 'node:assert/strict'
import test from 'node:test'
import { MenshenError } from '../../src/errors.ts'
import { shortKey } from '../../src/session/fields.ts'
import type { Store } from '../../src/stores/store.ts'
import { createScene, signedIn, tokens } from './doubles.ts'

test('a sign-in succeeds if the store fails right after saving the session, which is valid once the store is back', async () => {
  const outage = { isOn: false }
  const through = (store: Store): Store => ({
    ...store,
    isCurrent: (key, version) => !outage.isOn && store.isCurrent(key, version),
    async create(key, entry) {
      const version = await store.create(key, entry)
      if (entry.since !== undefined) outage.isOn = true
      return version
    },
    async read(key) {
      if (outage.isOn) throw new MenshenError('store_unavailable', 'the disk is away')
      return store.read(key)
    },
  })
  const scene = createScene({ through })
  const sessions = scene.instance('one')
  const { ticket, loaded } = await sessions.open(signedIn(tokens('first')))
  assert.equal(loaded.session.accessToken, 'access-first')
  outage.isOn = false
  const later = await sessions.getFresh(ticket)
  assert.equal(typeof later === 'object' && later.session.accessToken, 'access-first')
})

const AWAY = new MenshenError('store_unavailable', 'the disk is away')

/** What was left undone, by the events of the instance. */
const undone = ({ events }: ReturnType<typeof createScene>) =>
  events.filter(({ event }) => event === 'sign_in_incomplete').map(({ fields }) => fields)

test('a session limit that cannot be enforced is reported, and the new session is valid', async () => {
  const outage = { isOn: false }
  const through = (store: Store): Store => ({
    ...store,
    async list(query) {
      if (outage.isOn) throw AWAY
      return store.list(query)
    },
  })
  const scene = createScene({ through })
  const sessions = scene.instance('one')
  await sessions.begin({ SESSION_IDLE_MINUTES: 0, SESSIONS_PER_USER: 1 })
  const former = await sessions.open(signedIn(tokens('first')))
  const { ticket, loaded } = await sessions.open(signedIn(tokens('second')))
  outage.isOn = true
  await sessions.enforceLimit(loaded, { user: 'zhangsan' })
  assert.deepEqual(undone(scene), [
    { user: 'zhangsan', error: 'store_unavailable', detail: 'the disk is away', step: 'limit' },
  ])
  assert.ok(sessions.getCached(ticket))
  assert.ok(sessions.getCached(former.ticket), 'no session has ended')
  outage.isOn = false
  await sessions.enforceLimit(loaded)
  assert.ok(sessions.getCached(ticket))
  assert.equal(await sessions.get(former.ticket), undefined)
  await sessions.settle()
})

test('a key owner that cannot be saved is reported, and the new session is valid', async () => {
  const scene = createScene({ onUserConfirmed: () => Promise.reject(AWAY) })
  const sessions = scene.instance('one')
  const { ticket } = await sessions.open(signedIn(tokens('first')))
  assert.ok(sessions.getCached(ticket))
  assert.deepEqual(
    undone(scene).map(fields => 'step' in fields && fields.step),
    ['key_owner'],
  )
})

test('a session whose end the store does not confirm is reported, and its tokens are known to the sign-out', async () => {
  const through = (store: Store): Store => ({
    ...store,
    async take(key) {
      await store.take(key)
      throw AWAY
    },
  })
  const scene = createScene({ through })
  const sessions = scene.instance('one')
  const [one, other] = [await sessions.open(signedIn(tokens('first'))), await sessions.open(signedIn(tokens('second')))]
  const unconfirmed: unknown[] = []
  await assert.rejects(
    sessions.close(one.ticket, ({ session }) => unconfirmed.push(session.accessToken)),
    AWAY,
  )
  assert.deepEqual(unconfirmed, ['access-first'])
  await assert.rejects(sessions.end(other.loaded.key), AWAY)
  const reported = scene.events.filter(({ event }) => event === 'session_end_unconfirmed').map(({ fields }) => fields)
  assert.deepEqual(
    reported,
    [one, other].map(({ loaded }) => ({
      session: shortKey(loaded.key),
      error: 'store_unavailable',
      detail: 'the disk is away',
    })),
  )
})
