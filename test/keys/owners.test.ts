// Owners of personal keys are found by name or by `sub`, also where these are not unique.

import assert from 'node:assert/strict'
import test from 'node:test'
import { type ConfirmedUser, createKeyOwners } from '../../src/keys/owners.ts'
import { createKeyListing } from '../../src/keys/personal.ts'
import { newDataKeys } from '../../src/session/data-keys.ts'
import { createMemoryStore } from '../../src/stores/memory.ts'

const NOW = Date.parse('2026-03-01T08:00:00Z')
const keys = newDataKeys()

async function setUpOwners() {
  const store = createMemoryStore({ now: () => NOW })
  const owners = createKeyOwners({ store, keyring: { current: async () => keys, latest: () => keys } })
  const ensure = (n: number, username: string, subject: string) =>
    owners.ensure(userOf(`sub-${n}`, username, subject), NOW + 60_000)
  const same = await Promise.all(Array.from({ length: 250 }, (_, n) => ensure(n, 'zhangsan', 'shared')))
  const other = await ensure(250, 'lisi', 'another')
  return { store, owners, same: same.map(({ key }) => key), other: other.key }
}

test('all owners with the same username or the same sub at the provider are found, however many there are', async () => {
  const { owners, same } = await setUpOwners()
  assert.deepEqual((await owners.keysOfUsername('zhangsan')).toSorted(), same.toSorted())
  assert.deepEqual((await owners.keysOfSubject({ sub: 'shared', provider: undefined })).toSorted(), same.toSorted())
})

test('revoking the keys of a username revokes those of all its owners, and of no other user', async () => {
  const { store, same, other } = await setUpOwners()
  await createKeyListing({ store, allKeys: async () => [keys] }).revokeOf('zhangsan')
  for (const key of same) assert.equal(await store.read(key), undefined)
  assert.notEqual(await store.read(other), undefined)
})

function userOf(sub: string, username: string, subject: string): ConfirmedUser {
  const payload = Buffer.from(JSON.stringify({ sub: subject })).toString('base64url')
  return {
    userInfo: { sub, username },
    groups: [],
    idToken: `e30.${payload}.x`,
    claims: { claims: {} },
    askedAt: 0,
  } as unknown as ConfirmedUser
}
