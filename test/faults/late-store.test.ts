// A store that fails late in a sign-in: once the session is stored, the user gets it.

import assert from 'node:assert/strict'
import test from 'node:test'
import { MenshenError } from '../../src/errors.ts'
import type { Store } from '../../src/stores/store.ts'
import { createScene, signedIn, tokens } from './doubles.ts'

test('a store that cannot be read after it has stored a session fails no sign-in, and the session is there when it is back', async () => {
  const outage = { isOn: false }
  const through = (store: Store): Store => ({
    ...store,
    holds: (key, version) => !outage.isOn && store.holds(key, version),
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
