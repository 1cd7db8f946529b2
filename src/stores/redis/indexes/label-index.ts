// The indexes that entries are listed by, one for each label. An index is a sorted set whose members are in the order of
// their keys:
//
//   key, a zero byte, 16 digits of expiry, 8 characters of generation
//
// In a cluster no step can change a record and its indexes together. So a record is added to its indexes before it is written and
// removed after it is gone, and a member counts only while the record has its label. A generation is new for each attempt
// to write: whoever loses takes back its own members and nobody else's. What a crash leaves behind is dropped
// when its expiry has passed, whatever became of the record.

import { hash, randomBytes } from 'node:crypto'
import type { Entry } from '../../store.ts'
import { GENERATION_LENGTH, type Indexed } from '../redis-record.ts'

export const TIME_DIGITS = 16
const TAIL_LENGTH = TIME_DIGITS + GENERATION_LENGTH

export interface Member {
  readonly text: string
  readonly key: string
  readonly expiresAt: number
  readonly generation: string
}

export function newGeneration(): string {
  return randomBytes(6).toString('base64url')
}

/** Labels of any length and content, in names of a fixed length. */
export function indexName(label: string): string {
  return `menshen:label:${hash('sha256', label, 'base64url')}`
}

export function indexesOf({ labels }: Entry): string[] {
  return [...new Set(labels.map(indexName))]
}

export function memberOf({ key, generation, expiresAt }: Pick<Indexed, 'key' | 'generation' | 'expiresAt'>): string {
  return `${key}\0${digitsOf(expiresAt)}${generation}`
}

/** A time in texts that are in its order. */
export function digitsOf(time: number): string {
  return String(Math.min(Math.max(Math.ceil(time), 0), Number.MAX_SAFE_INTEGER)).padStart(TIME_DIGITS, '0')
}

export function readMember(text: string): Member {
  const tail = text.slice(-TAIL_LENGTH)
  return {
    text,
    key: text.slice(0, -TAIL_LENGTH - 1),
    expiresAt: Number(tail.slice(0, TIME_DIGITS)),
    generation: tail.slice(TIME_DIGITS),
  }
}

/** The start of the members whose keys come after `key`. */
export function startAfter(key: string | undefined): string {
  return key === undefined ? '-' : `(${key}\x01`
}

export function isIndexedAlike(one: Entry, other: Entry): boolean {
  const places = ({ expiresAt, since, labels }: Entry) => JSON.stringify([expiresAt, since, labels])
  return places(one) === places(other)
}
