// The owners of personal keys: one record per user who has created a key, with what the provider returned last. A sign-in and
// a refresh of the identity write it again if something has changed, so that a key loses a group when its owner does.
//
//   key     key-owner:<label of the user>
//   value   who the user is, with a random id, sealed with the data keys
//   labels  key-owner.<label of the username>, key-owner.<label of the provider's sub> if that is another
//
// A key names the id of its owner's record. Removing the record revokes all keys of the user immediately, even one that is just
// being created: the next record has another id.

import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { UserInfo } from '../provider/user.ts'
import { type StoredClaims, storedClaimsSchema, withoutTokenClaims } from '../session/claims.ts'
import type { DataKeyring } from '../session/data-keys.ts'
import type { ConfirmedUser } from '../session/identity-refresh.ts'
import {
  type DataKeys,
  labelOf,
  providerSubLabel,
  subjectIn,
  type UserId,
  userIdOf,
  userLabel,
} from '../session/record.ts'
import { decodeJson, encodeJson, sealValue, unsealValue } from '../session/sealing.ts'
import { allEntries } from '../stores/pages.ts'
import type { Entry, Store, StoredValue } from '../stores/store.ts'

export type { ConfirmedUser }

export interface KeyOwner {
  /** New for each record: keys that name another id are revoked. */
  readonly id: string
  readonly userInfo: UserInfo
  readonly groups: readonly string[]
  readonly provider?: string
  readonly claims: StoredClaims
  /** When the provider was asked. */
  readonly askedAt: number
}

export interface KeyOwners {
  /**
   * The provider has confirmed who the user is: updates the owner of their keys, unless the record has a later answer. Nothing is
   * written for a user without keys.
   */
  confirm(user: ConfirmedUser): Promise<void>
  /** The user's record, which lasts at least until then. If there is none, it is created from what this session knows. */
  ensure(user: ConfirmedUser, until: number): Promise<{ readonly key: string; readonly id: string }>
  keyOf(user: UserId): Promise<string>
  /** `undefined` if it cannot be opened. */
  open(stored: StoredValue): Promise<KeyOwner | undefined>
  /** The keys of owners with this username, at any provider. */
  keysOfUsername(username: string): Promise<string[]>
  /** The keys of owners with this `sub` at the provider, which may differ from ours. */
  keysOfSubject(subject: UserId): Promise<string[]>
}

const PREFIX = 'key-owner:'
const LABEL_PREFIX = 'key-owner.'
/**
 * How long before the last answer an older one may have been asked for. A record from further in the future than that comes from a clock
 * that was wrong.
 */
const MAX_CALL_MS = 10 * 60_000

const ownerSchema: z.ZodType<KeyOwner> = z.object({
  id: z.string(),
  userInfo: z.custom<UserInfo>(value => z.record(z.string(), z.string()).safeParse(value).success),
  groups: z.array(z.string()),
  provider: z.string().exactOptional(),
  claims: storedClaimsSchema,
  askedAt: z.number(),
})

interface KeyOwnersOptions {
  readonly store: Store
  readonly keyring: Pick<DataKeyring, 'current' | 'latest'>
}

export function createKeyOwners({ store, keyring }: KeyOwnersOptions): KeyOwners {
  async function open(stored: StoredValue): Promise<KeyOwner | undefined> {
    const latest = keyring.latest()
    // Other instances may use other keys by now.
    return (latest && openOwner(stored, latest)) ?? openOwner(stored, await keyring.current())
  }

  return {
    open,

    keyOf: async user => ownerKeyOf(userLabel(user, await keyring.current())),

    async confirm(user) {
      const keys = await keyring.current()
      const key = ownerKeyOf(userLabel(userIdOf(user), keys))
      for (;;) {
        const stored = await store.read(key)
        const owner = stored && (await open(stored))
        if (!owner) return
        const age = owner.askedAt - user.askedAt
        if (age > 0 && age < MAX_CALL_MS) return
        const next = toOwner(owner.id, user)
        if (JSON.stringify({ ...next, askedAt: owner.askedAt }) === JSON.stringify(owner)) return
        const entry = toEntry(key, next, user, stored.expiresAt, keys)
        if ((await store.replace(key, entry, stored.version)) !== undefined) return
      }
    },

    async ensure(user, until) {
      const keys = await keyring.current()
      const key = ownerKeyOf(userLabel(userIdOf(user), keys))
      for (;;) {
        const stored = await store.read(key)
        const known = stored && (await open(stored))
        if (known && stored.expiresAt >= until) return { key, id: known.id }
        const owner = known ?? toOwner(randomUUID(), user)
        const entry = toEntry(key, owner, user, Math.max(until, stored?.expiresAt ?? 0), keys)
        const written = stored ? store.replace(key, entry, stored.version) : store.create(key, entry)
        if ((await written) !== undefined) return { key, id: owner.id }
      }
    },

    async keysOfUsername(username) {
      const label = labelOf('username', username, await keyring.current())
      return (await allEntries(store, LABEL_PREFIX + label)).map(({ key }) => key)
    },

    async keysOfSubject(subject) {
      const keys = await keyring.current()
      const own = await store.read(ownerKeyOf(userLabel(subject, keys)))
      const entries = await allEntries(store, LABEL_PREFIX + providerSubLabel(subject, keys))
      // A user with a separate `sub` at the provider is found by that, not by ours.
      return [...(own && own.labels.length === 1 ? [own] : []), ...entries].map(({ key }) => key)
    },
  }
}

export function openOwner({ key, value }: StoredValue, keys: DataKeys): KeyOwner | undefined {
  return decodeJson(ownerSchema, unsealValue(keys.publicPart, value, key))
}

/** Derived from the label that the user's sessions have. */
export function ownerKeyOf(label: string): string {
  return PREFIX + label
}

function toOwner(id: string, { userInfo, groups = [], provider, claims, askedAt }: ConfirmedUser): KeyOwner {
  const lasting = { ...claims, claims: withoutTokenClaims(claims.claims) }
  return { id, userInfo, groups, ...(provider === undefined ? {} : { provider }), claims: lasting, askedAt }
}

function toEntry(key: string, owner: KeyOwner, { idToken }: ConfirmedUser, expiresAt: number, keys: DataKeys): Entry {
  const { userInfo, provider } = owner
  const subject = subjectIn(idToken)
  const labels = [
    labelOf('username', userInfo.username, keys),
    ...(subject !== undefined && subject !== userInfo.sub ? [providerSubLabel({ sub: subject, provider }, keys)] : []),
  ]
  return {
    value: sealValue(keys.publicPart, encodeJson(owner), key),
    expiresAt,
    labels: labels.map(label => LABEL_PREFIX + label),
  }
}
