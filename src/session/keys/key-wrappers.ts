// Wrappers of the data keys: one for each secret, in the order in which the secrets came into use.
import { createHash, randomBytes } from 'node:crypto'
import { z } from 'zod'
import { decodeJson, encodeJson, isNewerFormat, sealValue, unsealValue } from '../record-format.ts'
import type { DataKeys } from '../session-record.ts'
import type { WrappingKey } from './derived-keys.ts'

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
/** Of secrets that are not ours: a start with a wrong one leaves one behind. */
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

/** `undefined` if a newer version has written them. */
export function decodeWrappers(value: Uint8Array): Wrapper[] | undefined {
  if (isNewerFormat(value)) return undefined
  return decodeJson(wrappersSchema, Buffer.from(value.subarray(1))) ?? []
}

/** What the oldest wrapper holds that one of these keys opens; should two differ, more was made with the older keys. */
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

/** Whether some secret has data keys that are none of these. */
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

/** The first one's is the last: it came into use after the others. */
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
  return { id, set: setOf(dataKeys), sealed: base64(sealValue(key, plain, sealingPlace(id))) }
}

function open({ id, sealed }: Wrapper, key: WrappingKey): DataKeys | undefined {
  if (id !== key.id) return undefined
  return decodeJson(dataKeysSchema, unsealValue(key.key, Buffer.from(sealed, 'base64'), sealingPlace(id)))
}

/** Tells data keys apart, and nothing of them. */
function setOf({ labels, publicPart }: DataKeys): string {
  return createHash('sha256').update(labels).update(publicPart).digest('base64url').slice(0, 16)
}

function sealingPlace(id: string): string {
  return `data keys ${id}`
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}
