// An event of the audit trail: what is kept of it, how it is sealed for the store, and how it is found there without being opened.

import { createHmac } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { z } from 'zod'
import { type AuditedCode, EVENTS, type EventCode } from '../events.ts'
import type { DataKeys } from '../session/record.ts'
import { decodeJson, encodeJson, sealValue, unsealValue } from '../session/sealing.ts'
import type { TrailEvent } from '../stores/trail.ts'
import { atMost } from '../util/recent.ts'
import { safeJson } from '../util/safe-text.ts'

type Primitive = string | number | boolean

export interface AuditEvent {
  /** Unique: an event that was written twice is shown once. */
  readonly id: string
  /** Milliseconds since the epoch. */
  readonly time: number
  readonly event: string
  /** Named as in the log. */
  readonly fields: Readonly<Record<string, Primitive>>
}

/** What events can be searched by, from the rarest to the most frequent. */
export const TAG_KINDS = ['requestId', 'session', 'sub', 'user', 'event'] as const
export type TagKind = (typeof TAG_KINDS)[number]

const AAD = 'audit trail'
/** 72 bits: a match is checked again once it is open. */
const TAG_LENGTH = 12
/** A client that sends longer texts is trying to fill the trail. */
const MAX_TEXT_LENGTH = 500
const MAX_CACHED_TAGS = 1000

const eventSchema: z.ZodType<AuditEvent> = z.object({
  id: z.string(),
  time: z.number(),
  event: z.string(),
  fields: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
})

export function isAudited(code: EventCode): code is AuditedCode {
  return 'audited' in EVENTS[code]
}

export const AUDITED: readonly AuditedCode[] = (Object.keys(EVENTS) as EventCode[]).filter(isAudited)

/** The fields that are plain and short. A foreign error becomes its code or its name: its text may reveal too much. */
export function plainFields(fields: Readonly<Record<string, unknown>>): Record<string, Primitive> {
  const plain: Record<string, Primitive> = {}
  for (const [name, fact] of Object.entries(fields)) {
    const value = fact instanceof Error ? codeOf(fact) : fact
    if (typeof value === 'string') plain[name] = value.slice(0, MAX_TEXT_LENGTH).toWellFormed()
    else if (typeof value === 'boolean' || Number.isFinite(value)) plain[name] = value as boolean | number
  }
  return plain
}

function codeOf(error: Error): string {
  const { code } = error as NodeJS.ErrnoException
  return typeof code === 'string' ? code : error.name
}

/** Tags are cached: a user who causes thousands of events causes them under few names. */
export function createSealer(keys: DataKeys): (event: AuditEvent) => TrailEvent {
  const known = new LRUCache<string, string>({
    ...atMost(MAX_CACHED_TAGS),
    memoMethod: name => hashOf(name, keys),
  })
  const tagsOf = (event: AuditEvent, kind: TagKind) =>
    valuesOf(event, kind).map(value => known.memo(nameOf(kind, value)))
  return event => ({
    value: sealValue(keys.publicPart, encodeJson(event), AAD),
    tags: TAG_KINDS.flatMap(kind => tagsOf(event, kind)),
    // Events of one code make room for each other. The store need not know which code it is.
    kind: known.memo(nameOf('event', event.event)),
  })
}

/** `undefined` if it was sealed with other keys. */
export function openEvent({ value }: TrailEvent, keys: DataKeys): AuditEvent | undefined {
  return decodeJson(eventSchema, unsealValue(keys.publicPart, value, AAD))
}

export function tagOf(kind: TagKind, value: string, keys: DataKeys): string {
  return hashOf(nameOf(kind, value), keys)
}

function nameOf(kind: TagKind, value: string): string {
  return `audit ${kind} ${value}`
}

function hashOf(name: string, keys: DataKeys): string {
  return createHmac('sha256', keys.labels).update(name).digest('base64url').slice(0, TAG_LENGTH)
}

/** A user is found by what they did, and by what was done to them. */
export function valuesOf({ event, fields }: AuditEvent, kind: TagKind): string[] {
  const values = kind === 'event' ? [event] : kind === 'user' ? [fields.user, fields.byUser] : [fields[kind]]
  return values.filter(value => typeof value === 'string')
}

/** A line of AUDIT_FILE and of `menshen audit --json`. */
export function jsonLine(event: AuditEvent): string {
  return `${safeJson(auditLine(event))}\n`
}

/** An event as the log shows it. */
export function auditLine({ time, event, fields }: AuditEvent): object {
  const row = Object.hasOwn(EVENTS, event) ? EVENTS[event as EventCode] : undefined
  return { time: new Date(time).toISOString(), level: row?.level, event, ...fields }
}
