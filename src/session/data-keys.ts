// The data keys: created once and kept in the store, wrapped under each of our secrets, so that a secret can be replaced without
// relabelling or resealing anything. A replacement, with the data keys D in the record `data-keys`:
//
//   SECRET=a     first start: D is created            a wraps D (created at 1)
//   SECRET=b,a   a restart adds a wrapper for b       a wraps D (1), b wraps D (2)
//   SECRET=a     an instance that still has only a    the same: b is newer than a, and about to replace it
//   SECRET=b     a is older than b and not ours       b wraps D (2): a no longer opens anything
//   SECRET=x     a mistaken start: x opens nothing    b wraps D (2), x wraps E (3): new data keys. Reported as data_keys_closed
//                                                      if sessions or personal keys need D, or once a session does
//   SECRET=b     D again                              the same: x holds other data keys, which may still be needed

import { createHash, randomBytes } from 'node:crypto'
import { z } from 'zod'
import type { Report } from '../events.ts'
import type { Store, StoredEntry } from '../stores/store.ts'
import type { DerivedKeys, WrappingKey } from './derived-keys.ts'
import { type DataKeys, PERSONAL_KEY_LABEL, summaryOf } from './record.ts'
import { decodeJson, encodeJson, isNewerFormat, sealValue, unsealValue } from './sealing.ts'

export interface DataKeyring {
  /** The keys that all instances share, as the store has them now. */
  current(): Promise<DataKeys>
  /** The last result of `current`. */
  latest(): DataKeys | undefined
  /** Our secrets have changed: the next `current` wraps the data keys for the new ones. */
  use(keys: WrappingKeys): void
}

type WrappingKeys = Pick<DerivedKeys, 'wrapping' | 'formerWrapping'>

interface DataKeyringOptions {
  readonly store: Store
  readonly keys: WrappingKeys
  readonly now: () => number
  readonly report: Report
}

/**
 * Reads the data keys of a store without changing it. Empty if none of our secrets opens them; new ones if the store has none yet,
 * because then nothing is sealed yet; several, the oldest first, after a start with another secret.
 */
export async function readDataKeys(
  store: Pick<Store, 'read'>,
  { wrapping, formerWrapping }: Pick<DerivedKeys, 'wrapping' | 'formerWrapping'>,
): Promise<DataKeys[]> {
  const stored = await store.read(STORE_KEY)
  if (!stored) return [newDataKeys()]
  return openAllWrappers(decodeWrappers(stored.value) ?? [], [...wrapping, ...formerWrapping])
}

/** Whether our secrets open the data keys of a store. */
export type DataKeysState =
  /** There are none yet, or a newer version has written them. */
  | { readonly kind: 'unknown' }
  /** None of our secrets opens them. */
  | { readonly kind: 'closed' }
  /** `hasOthers`: there are also data keys of a secret that we do not have. */
  | { readonly kind: 'open'; readonly keys: readonly DataKeys[]; readonly hasOthers: boolean }

export async function inspectDataKeys(
  store: Pick<Store, 'read'>,
  { wrapping, formerWrapping }: Pick<DerivedKeys, 'wrapping' | 'formerWrapping'>,
): Promise<DataKeysState> {
  const stored = await store.read(STORE_KEY)
  const wrappers = stored && decodeWrappers(stored.value)
  if (!wrappers || wrapping.length === 0) return { kind: 'unknown' }
  const keys = openAllWrappers(wrappers, [...wrapping, ...formerWrapping])
  return keys.length > 0 ? { kind: 'open', keys, hasOthers: hasOtherKeys(wrappers, keys) } : { kind: 'closed' }
}

/**
 * Whether the store has sessions or personal keys: without their data keys, users cannot be signed out, and their keys do not work.
 * Everything else is created again, except for audit events, which stay until their secret is back.
 */
export async function needsDataKeys(store: Pick<Store, 'newest' | 'list'>): Promise<boolean> {
  const pages = await Promise.all([
    store.newest({ limit: MAX_SEARCHED_SESSIONS }),
    store.list({ label: PERSONAL_KEY_LABEL, limit: 1 }),
  ])
  // A page can be empty without being the last.
  return pages.some(({ entries, next }) => entries.length > 0 || next !== undefined)
}

const STORE_KEY = 'data-keys'
const CENTURY_MS = 100 * 365 * 24 * 3_600_000
/** How many of the newest sessions are searched for those of other data keys, and how often. */
const MAX_SEARCHED_SESSIONS = 20
const SEARCH_INTERVAL_MS = 60_000

const CLOSED_REMEDY =
  'SECRET was replaced, or CLIENT_SECRET where SECRET is not set: append the previous secret after the new one in SECRET; ' +
  'or another Menshen uses this store with another secret: give each its own folder, or its own prefix in Redis. ' +
  'If the previous secret is lost, you cannot end the old sessions by user until they expire, and the old personal keys do not work'

export function createDataKeyring({ store, keys, now, report }: DataKeyringOptions): DataKeyring {
  let { wrapping, formerWrapping } = keys
  // Without a secret nothing could open them again, so they stay in this process.
  let own = wrapping.length === 0 ? newDataKeys() : undefined
  let isRenewed = false
  let known: { readonly dataKeys: DataKeys; readonly version: number } | undefined
  const reported = new Set<string>()
  /**
   * When to search next for sessions of other data keys. Present if none of our secrets opened the data keys while nothing needed
   * them: either that secret is out of use, or another instance uses it and has no session yet.
   */
  let searchAt: number | undefined

  function reportOnce(code: 'data_keys_closed' | 'newer_format', remedy?: string): void {
    if (!reported.has(code)) report(code, { record: STORE_KEY, ...(remedy !== undefined && { remedy }) })
    reported.add(code)
  }

  async function reportClosed(): Promise<void> {
    if (await needsDataKeys(store)) reportOnce('data_keys_closed', CLOSED_REMEDY)
    else searchAt = now() + SEARCH_INTERVAL_MS
  }

  async function searchForOtherKeys(dataKeys: DataKeys): Promise<void> {
    if (searchAt === undefined || now() < searchAt) return
    searchAt = now() + SEARCH_INTERVAL_MS
    const { entries } = await store.newest({ limit: MAX_SEARCHED_SESSIONS })
    if (entries.every(entry => summaryOf(entry, entry.key, dataKeys))) return
    searchAt = undefined
    reportOnce('data_keys_closed', CLOSED_REMEDY)
  }

  const toEntry = (wrappers: readonly Wrapper[]) => ({
    value: encodeWrappers(wrappers),
    expiresAt: now() + CENTURY_MS,
    labels: [],
  })

  /** A store that was emptied gets the keys that this process has. */
  async function create(): Promise<void> {
    const dataKeys = known?.dataKeys ?? newDataKeys()
    // If several instances try, one succeeds, and the others open its keys.
    await store.create(STORE_KEY, toEntry(renewWrappers([], wrapping, dataKeys, now())))
  }

  /** The keys in use from now on; `undefined` if another instance changed them at the same time. */
  async function open({ value, version }: StoredEntry): Promise<DataKeys | undefined> {
    const wrappers = decodeWrappers(value)
    if (!wrappers) reportOnce('newer_format')
    const opened = wrappers && openWrappers(wrappers, [...wrapping, ...formerWrapping])
    if (wrappers && !opened) await reportClosed()
    const dataKeys = opened ?? known?.dataKeys ?? newDataKeys()
    // Once per change of our secrets: instances with different lists would overwrite each other forever, and a secret that
    // others have removed must stay removed.
    const renewed = wrappers && !isRenewed ? renewWrappers(wrappers, wrapping, dataKeys, now()) : undefined
    const isChanged = wrappers && renewed && !sameWrappers(renewed, wrappers)
    if (isChanged && !(await store.replace(STORE_KEY, toEntry(renewed), version))) return undefined
    known = { dataKeys, version }
    isRenewed = true
    return dataKeys
  }

  async function load(): Promise<DataKeys> {
    // Every sign-in asks for the keys. If the store still holds the known version, nothing is read.
    if (known && isRenewed && store.isCurrent(STORE_KEY, known.version)) return known.dataKeys
    for (;;) {
      const stored = await store.read(STORE_KEY)
      if (stored && known?.version === stored.version && isRenewed) return known.dataKeys
      const opened = stored ? await open(stored) : await create()
      if (opened) return opened
    }
  }

  return {
    latest: () => own ?? known?.dataKeys,
    use(keys) {
      ;({ wrapping, formerWrapping } = keys)
      if (wrapping.length > 0) own = undefined
      isRenewed = false
      searchAt = undefined
    },
    async current() {
      if (own) return own
      const dataKeys = await load()
      if (searchAt !== undefined) await searchForOtherKeys(dataKeys)
      return dataKeys
    },
  }
}

// Wrappers of the data keys: one for each secret, the oldest first.

/** The data keys under one secret. */
interface Wrapper {
  /** Identifies the secret. */
  readonly id: string
  /** Identifies the data keys. */
  readonly set: string
  /** When the secret came into use. No two secrets have the same time, even if the clocks of instances differ. */
  readonly createdAt: number
  /** In base64. */
  readonly sealed: string
}

const FORMAT = 1
const KEY_BYTES = 32
/** A start with a wrong secret leaves a foreign wrapper behind. */
const MAX_FOREIGN_WRAPPERS = 8

const wrappersSchema = z.array(z.object({ id: z.string(), set: z.string(), createdAt: z.number(), sealed: z.base64() }))

const keySchema = z
  .base64()
  .transform(text => new Uint8Array(Buffer.from(text, 'base64')))
  .refine(key => key.length === KEY_BYTES)
const dataKeysSchema: z.ZodType<DataKeys> = z.object({ labels: keySchema, publicPart: keySchema })

export function newDataKeys(): DataKeys {
  return { labels: new Uint8Array(randomBytes(KEY_BYTES)), publicPart: new Uint8Array(randomBytes(KEY_BYTES)) }
}

function encodeWrappers(wrappers: readonly Wrapper[]): Buffer {
  return Buffer.concat([Buffer.of(FORMAT), encodeJson(wrappers)])
}

/** `undefined` if a later version of Menshen wrote them. */
function decodeWrappers(value: Uint8Array): Wrapper[] | undefined {
  if (isNewerFormat(value)) return undefined
  return decodeJson(wrappersSchema, Buffer.from(value.subarray(1)))?.sort(oldestFirst) ?? []
}

/** The data keys of the oldest wrapper that one of these keys opens. If two differ, more data depends on the older ones. */
function openWrappers(wrappers: readonly Wrapper[], keys: readonly WrappingKey[]): DataKeys | undefined {
  return wrappers
    .map(wrapper => keys.map(key => open(wrapper, key)).find(opened => opened !== undefined))
    .find(opened => opened !== undefined)
}

/** All data keys that one of these keys opens, the oldest first. */
function openAllWrappers(wrappers: readonly Wrapper[], keys: readonly WrappingKey[]): DataKeys[] {
  const opened = wrappers.flatMap(wrapper => keys.map(key => open(wrapper, key)).filter(each => each !== undefined))
  return [...new Map(opened.map(each => [idOfDataKeys(each), each])).values()]
}

/** The wrappers as they should be: one for each of our secrets, and the foreign ones that are still needed. */
function renewWrappers(
  wrappers: readonly Wrapper[],
  keys: readonly WrappingKey[],
  dataKeys: DataKeys,
  now: number,
): Wrapper[] {
  const [first] = keys
  const present = new Map(wrappers.map(wrapper => [wrapper.id, wrapper]))
  const newestAt = Math.max(0, ...wrappers.map(({ createdAt }) => createdAt))
  const firstAt = (first && present.get(first.id)?.createdAt) ?? Math.max(now, newestAt + 1)
  const ours = keys.map(key => {
    const wrapper = present.get(key.id)
    // The first of our secrets replaces the others, so that they are older.
    const createdAt = key === first ? firstAt : Math.min(wrapper?.createdAt ?? firstAt, firstAt - 1)
    const isRight = wrapper?.createdAt === createdAt && wrapper.set === idOfDataKeys(dataKeys) && open(wrapper, key)
    return isRight ? wrapper : wrap(key, dataKeys, createdAt)
  })
  return [...foreignWrappers(wrappers, keys, dataKeys, firstAt), ...ours].sort(oldestFirst)
}

/**
 * The wrappers of secrets that are not ours, except for those that our first secret has replaced (older wrappers of our data keys).
 * A newer wrapper is kept because its secret is about to replace ours; other data keys are kept because they may still be needed.
 */
function foreignWrappers(
  wrappers: readonly Wrapper[],
  keys: readonly WrappingKey[],
  dataKeys: DataKeys,
  firstAt: number,
): Wrapper[] {
  const isForeign = ({ id }: Wrapper) => !keys.some(key => key.id === id)
  const isReplaced = ({ set, createdAt }: Wrapper) => set === idOfDataKeys(dataKeys) && createdAt < firstAt
  return wrappers.filter(wrapper => isForeign(wrapper) && !isReplaced(wrapper)).slice(-MAX_FOREIGN_WRAPPERS)
}

function oldestFirst(one: Wrapper, other: Wrapper): number {
  return one.createdAt - other.createdAt
}

/** Whether a wrapper holds data keys that are not among these. */
function hasOtherKeys(wrappers: readonly Wrapper[], dataKeys: readonly DataKeys[]): boolean {
  const sets = dataKeys.map(idOfDataKeys)
  return wrappers.some(({ set }) => !sets.includes(set))
}

function sameWrappers(one: readonly Wrapper[], other: readonly Wrapper[]): boolean {
  return one.length === other.length && one.every((wrapper, n) => wrapper === other[n])
}

function wrap({ id, key }: WrappingKey, dataKeys: DataKeys, createdAt: number): Wrapper {
  const { labels, publicPart } = dataKeys
  const plain = encodeJson({ labels: base64(labels), publicPart: base64(publicPart) })
  return { id, set: idOfDataKeys(dataKeys), createdAt, sealed: base64(sealValue(key, plain, aadOf(id))) }
}

function open({ id, sealed }: Wrapper, key: WrappingKey): DataKeys | undefined {
  if (id !== key.id) return undefined
  return decodeJson(dataKeysSchema, unsealValue(key.key, Buffer.from(sealed, 'base64'), aadOf(id)))
}

/** An id of data keys that reveals nothing of them. */
export function idOfDataKeys({ labels, publicPart }: DataKeys): string {
  return createHash('sha256').update(labels).update(publicPart).digest('base64url').slice(0, 16)
}

function aadOf(id: string): string {
  return `data keys ${id}`
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}
