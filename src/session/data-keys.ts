// The data keys: made once and kept in the store, wrapped under each of our secrets. So a secret can be replaced without
// relabelling or resealing anything.

import { createHash, randomBytes } from 'node:crypto'
import { z } from 'zod'
import type { Report } from '../events.ts'
import type { Store, Stored } from '../stores/store.ts'
import type { DerivedKeys, WrappingKey } from './derived-keys.ts'
import { decodeJson, encodeJson, isNewerFormat, sealValue, unsealValue } from './sealing.ts'
import type { DataKeys } from './session-record.ts'

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
 * The data keys of a store, read without changing it. Empty if none of our secrets opens them. New ones if the store has none
 * yet, and so nothing that they would have to open. Several, the oldest first, after a start with another secret.
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

const STORE_KEY = 'data-keys'
const CENTURY_MS = 100 * 365 * 24 * 3_600_000

export function createDataKeyring({ store, keys, now, report }: DataKeyringOptions): DataKeyring {
  let { wrapping, formerWrapping } = keys
  // Without a secret nothing could open them again, so they stay in this process.
  let own = wrapping.length === 0 ? newDataKeys() : undefined
  let isRenewed = false
  let known: { readonly dataKeys: DataKeys; readonly version: number } | undefined
  const told = new Set<string>()

  function tellOnce(code: 'data_keys_closed' | 'newer_format'): void {
    if (!told.has(code)) report(code, { record: STORE_KEY })
    told.add(code)
  }

  const toEntry = (wrappers: readonly Wrapper[]) => ({
    value: encodeWrappers(wrappers),
    expiresAt: now() + CENTURY_MS,
    labels: [],
  })

  /** A store that was emptied gets the keys that this process has. */
  async function create(): Promise<void> {
    const dataKeys = known?.dataKeys ?? newDataKeys()
    // Of all instances that try, one succeeds, and the others open its keys.
    await store.create(STORE_KEY, toEntry(renewWrappers([], wrapping, dataKeys)))
  }

  /** The keys in use from now on; `undefined` if another instance changed them at the same time. */
  async function open({ value, version }: Stored): Promise<DataKeys | undefined> {
    const wrappers = decodeWrappers(value)
    if (!wrappers) tellOnce('newer_format')
    const opened = wrappers && openWrappers(wrappers, [...wrapping, ...formerWrapping])
    if (wrappers && !opened) tellOnce('data_keys_closed')
    const dataKeys = opened ?? known?.dataKeys ?? newDataKeys()
    // Once for each change of our secrets: instances with different lists would overwrite each other for ever, and a secret
    // that others have removed must stay removed.
    const renewed = wrappers && !isRenewed ? renewWrappers(wrappers, wrapping, dataKeys) : undefined
    const isChanged = wrappers && renewed && !sameWrappers(renewed, wrappers)
    if (isChanged && !(await store.replace(STORE_KEY, toEntry(renewed), version))) return undefined
    known = { dataKeys, version }
    isRenewed = true
    return dataKeys
  }

  return {
    latest: () => own ?? known?.dataKeys,
    use(keys) {
      ;({ wrapping, formerWrapping } = keys)
      if (wrapping.length > 0) own = undefined
      isRenewed = false
    },
    async current() {
      if (own) return own
      // Every sign-in asks for the keys. If the store still holds the known version, nothing is read.
      if (known && isRenewed && store.holds(STORE_KEY, known.version)) return known.dataKeys
      for (;;) {
        const stored = await store.read(STORE_KEY)
        if (stored && known?.version === stored.version && isRenewed) return known.dataKeys
        const opened = stored ? await open(stored) : await create()
        if (opened) return opened
      }
    },
  }
}

// Wrappers of the data keys: one for each secret, in the order in which the secrets came into use.

/** The data keys under one secret. */
export interface Wrapper {
  /** Of the secret. */
  readonly id: string
  /** Of the data keys. */
  readonly set: string
  /** In base64. */
  readonly sealed: string
}

const FORMAT = 1
const KEY_BYTES = 32
/** Wrappers of secrets that are not ours: a start with a wrong secret leaves one behind. */
const MOST_STRANGERS = 8

const wrappersSchema = z.array(z.object({ id: z.string(), set: z.string(), sealed: z.base64() }))

const keySchema = z
  .base64()
  .transform(text => new Uint8Array(Buffer.from(text, 'base64')))
  .refine(key => key.length === KEY_BYTES)
const dataKeysSchema: z.ZodType<DataKeys> = z.object({ labels: keySchema, publicPart: keySchema })

export function newDataKeys(): DataKeys {
  return { labels: new Uint8Array(randomBytes(KEY_BYTES)), publicPart: new Uint8Array(randomBytes(KEY_BYTES)) }
}

export function encodeWrappers(wrappers: readonly Wrapper[]): Buffer {
  return Buffer.concat([Buffer.of(FORMAT), encodeJson(wrappers)])
}

/** `undefined` if a later version of Menshen wrote them. */
export function decodeWrappers(value: Uint8Array): Wrapper[] | undefined {
  if (isNewerFormat(value)) return undefined
  return decodeJson(wrappersSchema, Buffer.from(value.subarray(1))) ?? []
}

/** The data keys of the oldest wrapper that one of these keys opens. If two differ, more was made with the older ones. */
export function openWrappers(wrappers: readonly Wrapper[], keys: readonly WrappingKey[]): DataKeys | undefined {
  return wrappers
    .map(wrapper => keys.map(key => open(wrapper, key)).find(opened => opened !== undefined))
    .find(opened => opened !== undefined)
}

/** All data keys that one of these keys opens, the oldest first. */
export function openAllWrappers(wrappers: readonly Wrapper[], keys: readonly WrappingKey[]): DataKeys[] {
  const opened = wrappers.flatMap(wrapper => keys.map(key => open(wrapper, key)).filter(each => each !== undefined))
  return [...new Map(opened.map(each => [setOf(each), each])).values()]
}

/**
 * The wrappers as they should be: one for each of our secrets, and those of other secrets (strangers) that are still needed.
 * A stranger is removed if it is older than the wrapper of our first secret and holds our data keys: its secret was replaced
 * by ours. A newer one stays, because its secret is about to replace ours. One with other data keys stays too, because
 * somebody may still need those.
 */
export function renewWrappers(
  wrappers: readonly Wrapper[],
  keys: readonly WrappingKey[],
  dataKeys: DataKeys,
): Wrapper[] {
  const set = setOf(dataKeys)
  const firstAt = wrappers.findIndex(({ id }) => id === keys[0]?.id)
  const end = firstAt < 0 ? wrappers.length : firstAt
  const older = strangers(wrappers.slice(0, end), keys).filter(wrapper => wrapper.set !== set)
  return [...older, ...wrapForAll(wrappers, keys, dataKeys), ...strangers(wrappers.slice(end), keys)]
}

/** Whether a wrapper holds data keys that are not among these. */
export function hasOtherKeys(wrappers: readonly Wrapper[], dataKeys: readonly DataKeys[]): boolean {
  const sets = dataKeys.map(setOf)
  return wrappers.some(({ set }) => !sets.includes(set))
}

export function sameWrappers(one: readonly Wrapper[], other: readonly Wrapper[]): boolean {
  return one.length === other.length && one.every((wrapper, n) => wrapper === other[n])
}

function strangers(wrappers: readonly Wrapper[], keys: readonly WrappingKey[]): Wrapper[] {
  return wrappers.filter(({ id }) => !keys.some(key => key.id === id)).slice(-MOST_STRANGERS)
}

/** The wrapper of the first key is the last: it came into use after the others. */
function wrapForAll(wrappers: readonly Wrapper[], keys: readonly WrappingKey[], dataKeys: DataKeys): Wrapper[] {
  const [first, ...rest] = keys
  return [...rest, ...(first ? [first] : [])].map(key => {
    const present = wrappers.find(({ id }) => id === key.id)
    const isRight = present && present.set === setOf(dataKeys) && open(present, key) !== undefined
    return isRight ? present : wrap(key, dataKeys)
  })
}

function wrap({ id, key }: WrappingKey, dataKeys: DataKeys): Wrapper {
  const { labels, publicPart } = dataKeys
  const plain = encodeJson({ labels: base64(labels), publicPart: base64(publicPart) })
  return { id, set: setOf(dataKeys), sealed: base64(sealValue(key, plain, aadOf(id))) }
}

function open({ id, sealed }: Wrapper, key: WrappingKey): DataKeys | undefined {
  if (id !== key.id) return undefined
  return decodeJson(dataKeysSchema, unsealValue(key.key, Buffer.from(sealed, 'base64'), aadOf(id)))
}

/** An id of data keys that reveals nothing of them. */
function setOf({ labels, publicPart }: DataKeys): string {
  return createHash('sha256').update(labels).update(publicPart).digest('base64url').slice(0, 16)
}

function aadOf(id: string): string {
  return `data keys ${id}`
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}
