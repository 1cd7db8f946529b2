// What a session is: the record of specification 6.1, and the entry that holds it together with its summary.

import { createHmac } from 'node:crypto'
import { decodeJwt } from 'jose'
import { z } from 'zod'
import type { Authentication } from '../access/conditions.ts'
import type { Role } from '../config/role-names.ts'
import type { DpopKey } from '../provider/dpop.ts'
import type { ProviderSession } from '../provider/id-token.ts'
import type { TokenSet } from '../provider/token.ts'
import type { MappedUser, UserInfo } from '../provider/user.ts'
import type { Entry } from '../stores/store.ts'
import { decodeJson, encodeJson, packRecord, type RecordParts, seal, unpackRecord, unseal } from './sealing.ts'
import { sealingKey } from './ticket.ts'

/** The record of specification 6.1, key by key, followed by our own fields. */
export interface Session {
  readonly isAuthenticated: true
  readonly accessToken: string
  readonly refreshToken?: string
  readonly tokenIssuedAt: number
  readonly tokenExpiresIn: number
  /** When the refresh token expires. Absent if the session ends with its access token. */
  readonly refreshEndsAt?: number
  readonly userInfo: UserInfo
  readonly userRole: Role
  /** The provider's id if there are several. */
  readonly provider?: string
  readonly providerSession?: ProviderSession
  /** For the sign-out in the browser. */
  readonly idToken?: string
  /** The key to which the tokens are bound. */
  readonly dpopKey?: DpopKey
  readonly groups?: readonly string[]
  /** How the user signed in at the provider, according to its id_token; absent without one. A refresh does not change it. */
  readonly authentication?: Authentication
  /** The device that the session is bound to, or may be. */
  readonly device?: DeviceBinding
  /** Data of the application that embeds Menshen. */
  readonly data?: SessionData
}

// The device that a session is bound to. The record only stores it; src/devices interprets it.

/** A session that may be bound: its browser has been asked to register a key. */
export interface OfferedDevice {
  readonly challenge: string
}

/** A session that is bound to a key. */
export interface BoundDevice {
  /** The session in the terms of the protocol. It is not a secret. */
  readonly id: string
  /** A point on P-256, as a JWK has it. */
  readonly x: string
  readonly y: string
  /** What the next proof signs. */
  readonly challenge: string
  /** The previous challenge, until a second proof has used it. */
  readonly previousChallenge?: string
  /** The random part of the last signature: another proof has another one, a copy of the last proof has the same. */
  readonly lastNonce?: string
  readonly cookie: BoundCookie
  readonly previousCookie?: BoundCookie
  /** The browser has shown the cookie, or has proved itself again: the ticket alone is not enough from then on. */
  readonly isSeen: boolean
}

export interface BoundCookie {
  readonly value: string
  readonly until: number
}

export type DeviceBinding = OfferedDevice | BoundDevice

export function isBound(device: DeviceBinding | undefined): device is BoundDevice {
  return device !== undefined && 'id' in device
}

/** Any JSON of the application. */
export type SessionData = Readonly<Record<string, unknown>>

/** Keys for the parts that are read without a ticket. */
export interface DataKeys {
  /** Makes the labels under which a user's sessions are listed. */
  readonly labels: Uint8Array
  /** Seals what is read without a ticket: summaries of sessions, the audit trail, personal keys. */
  readonly publicPart: Uint8Array
}

/** The label of every session. */
export const SESSION_LABEL = 'session'
/** The label of every personal key. */
export const PERSONAL_KEY_LABEL = 'personal-keys'
/** The index of the user's label in an entry. */
export const SUB_LABEL = 1
/** No other label begins with this. */
const PROVIDER_SESSION_PREFIX = 'sid.'
const SUBJECT_PREFIX = 'subject.'

/** `provider` is absent if there is only one. */
export interface SignInDetails {
  readonly tokens: TokenSet
  readonly user: MappedUser
  readonly provider: string | undefined
  readonly origin?: SignInOrigin
  /** Default: that of the tokens. */
  readonly authentication?: Authentication | undefined
  /** Present if the session may be bound to its device. */
  readonly device?: DeviceBinding | undefined
}

export function newSession(signedIn: SignInDetails, userRole: Role): Session {
  const { tokens, user, provider, authentication = tokens.authentication, device } = signedIn
  const { userInfo, groups } = user
  const session = {
    isAuthenticated: true as const,
    userInfo,
    userRole,
    ...(provider === undefined ? {} : { provider }),
    ...(groups.length > 0 ? { groups } : {}),
    ...(authentication ? { authentication } : {}),
    ...(device ? { device } : {}),
  }
  return withTokens(session, tokens)
}

/** A refresh token or provider session that the answer leaves out stays as it was. The key is that of the new tokens. */
export function withTokens(
  { dpopKey: _, refreshEndsAt: former, ...session }: Omit<Session, 'accessToken' | 'tokenIssuedAt' | 'tokenExpiresIn'>,
  { accessToken, refreshToken, receivedAt, expiresIn, refreshEndsAt, providerSession, idToken, dpopKey }: TokenSet,
): Session {
  const lasting = refreshToken ?? session.refreshToken
  const refreshEnd = refreshEndsAt ?? (refreshToken === undefined ? former : undefined)
  return {
    ...session,
    accessToken,
    ...(refreshToken === undefined ? {} : { refreshToken }),
    tokenIssuedAt: receivedAt,
    tokenExpiresIn: expiresIn,
    ...(lasting === undefined || refreshEnd === undefined ? {} : { refreshEndsAt: refreshEnd }),
    ...(providerSession === undefined ? {} : { providerSession }),
    ...(idToken === undefined ? {} : { idToken }),
    ...(dpopKey === undefined ? {} : { dpopKey }),
  }
}

export function withUser(session: Session, { userInfo, groups }: Pick<MappedUser, 'userInfo' | 'groups'>): Session {
  const { groups: _, ...rest } = session
  return { ...rest, userInfo, ...(groups.length > 0 ? { groups } : {}) }
}

export function tokenExpiresAt(session: Session): number {
  return session.tokenIssuedAt + session.tokenExpiresIn * 1000
}

/** When the session ends if nothing refreshes it: with its refresh token, or without one with its access token. */
export function sessionEndsAt(session: Session, signedInAt: number, maxHours: number): number {
  const tokensEnd = Math.max(tokenExpiresAt(session), session.refreshEndsAt ?? 0)
  return Math.min(tokensEnd, latestEnd(signedInAt, maxHours))
}

/** When it ends even if it is refreshed. */
export function latestEnd(signedInAt: number, maxHours: number): number {
  return signedInAt + maxHours * 3_600_000
}

export function sameTokens(one: Session, other: Session): boolean {
  return (
    one.accessToken === other.accessToken &&
    one.refreshToken === other.refreshToken &&
    one.tokenIssuedAt === other.tokenIssuedAt
  )
}

/** Whether the token expires within the lead and there is a refresh token. */
export function isDue(session: Session, leadSeconds: number, now: number): boolean {
  return session.refreshToken !== undefined && tokenExpiresAt(session) - now <= leadSeconds * 1000
}

/** A session as it is written. The summary and the claims are sealed already: most changes leave them as they were. */
export interface WritableSession extends Pick<RecordParts, 'summaryPart' | 'claimsPart'>, SessionTimes {
  readonly ticket: string
  /** The key of the record. */
  readonly key: string
  readonly session: Session
  readonly labels: readonly string[]
}

export function toEntry(writable: WritableSession, maxHours: number): Entry {
  const { ticket, key, session, labels, signedInAt, seenAt, summaryPart, claimsPart } = writable
  const sealedPart = sealSession(session, signedInAt, ticket, key)
  return {
    value: packRecord({ seenAt, summaryPart, claimsPart, sealedPart }),
    expiresAt: sessionEndsAt(session, signedInAt, maxHours),
    labels,
    since: signedInAt,
  }
}

export function labelsOf({ userInfo, provider, providerSession, idToken }: Session, keys: DataKeys): string[] {
  const subject = subjectIn(idToken)
  return [
    SESSION_LABEL,
    userLabel({ sub: userInfo.sub, provider }, keys),
    labelOf('username', userInfo.username, keys),
    ...(providerSession ? [providerSessionLabel(providerSession, keys)] : []),
    ...(subject !== undefined && subject !== userInfo.sub ? [providerSubLabel({ sub: subject, provider }, keys)] : []),
  ]
}

/** The user's `sub` at the provider. The id_token was checked when it was received. */
export function subjectIn(idToken: string | undefined): string | undefined {
  if (idToken === undefined) return undefined
  try {
    return decodeJwt(idToken).sub
  } catch {
    return undefined
  }
}

/** The same `sub` at two providers means two users. */
export interface UserId {
  readonly sub: string
  readonly provider?: string | undefined
}

export function userIdOf({ userInfo, provider }: Pick<Session, 'userInfo' | 'provider'>): UserId {
  return { sub: userInfo.sub, provider }
}

export function userLabel({ sub, provider }: UserId, keys: DataKeys): string {
  return labelOf('sub', provider === undefined ? sub : JSON.stringify([provider, sub]), keys)
}

/**
 * A label for users whose `sub` the configuration maps (`fields.sub`) to one that differs from the provider's. It is a separate kind
 * of label, because the same text can be our `sub` of one user and the provider's `sub` of another.
 */
export function providerSubLabel({ sub, provider }: UserId, keys: DataKeys): string {
  return SUBJECT_PREFIX + labelOf('subject', JSON.stringify([provider ?? null, sub]), keys)
}

/** Whether the user has a different `sub` at the provider. */
export function hasOwnSubject({ labels }: Pick<Entry, 'labels'>): boolean {
  return labels.some(label => label.startsWith(SUBJECT_PREFIX))
}

/** Whether the session of the provider is known. */
export function hasProviderSession({ labels }: Pick<Entry, 'labels'>): boolean {
  return labels.some(label => label.startsWith(PROVIDER_SESSION_PREFIX))
}

/** A keyed hash: sessions can be found by it, and no user can be identified by it. */
export function labelOf(kind: 'sub' | 'username' | 'sid' | 'subject', value: string, keys: DataKeys): string {
  // As UTF-8, halves of different surrogate pairs are the same bytes, so two users would be one.
  const text = value.isWellFormed() ? `${kind} ${value}` : `${kind}\0${JSON.stringify(value)}`
  return createHmac('sha256', keys.labels).update(text).digest('base64url')
}

/** Session ids of two issuers may be equal. */
export function providerSessionLabel({ issuer, sid }: ProviderSession, keys: DataKeys): string {
  return PROVIDER_SESSION_PREFIX + labelOf('sid', JSON.stringify([issuer, sid]), keys)
}

// The summary of a session: what the console shows without its ticket. It is sealed with the data keys.

/** Where a user signed in from, as far as it is known. */
export interface SignInOrigin {
  readonly address?: string
  readonly userAgent?: string
}

/** What the console lists of a session. Address and browser are those of the sign-in. */
export interface SessionSummary extends SignInOrigin {
  readonly username: string
  readonly nickname: string
  readonly userRole: Role
  readonly provider?: string
  readonly signedInAt: number
  /** The session is valid only on its device. */
  readonly isBound?: true
  /** From the head of the record: a request that changes nothing else need not seal the rest again. */
  readonly seenAt: number
}

/** Longer than the user agent of any browser. */
const MAX_USER_AGENT_LENGTH = 256

const summarySchema: z.ZodType<SessionSummary> = z.object({
  username: z.string(),
  nickname: z.string(),
  userRole: z.string(),
  provider: z.string().exactOptional(),
  signedInAt: z.number(),
  seenAt: z.number(),
  isBound: z.literal(true).exactOptional(),
  address: z.string().exactOptional(),
  userAgent: z.string().exactOptional(),
})

export interface SessionTimes {
  readonly signedInAt: number
  readonly seenAt: number
}

/** The part of a session that the summary contains. */
export type SummarizedSession = Pick<Session, 'userInfo' | 'userRole' | 'provider' | 'device'>

export function newSummary(session: SummarizedSession, times: SessionTimes, origin: SignInOrigin = {}): SessionSummary {
  const { userInfo, userRole, provider, device } = session
  const { username, nickname } = userInfo
  const { signedInAt, seenAt } = times
  return {
    ...{ username, nickname, userRole },
    ...(provider === undefined ? {} : { provider }),
    ...{ signedInAt, seenAt },
    ...(isBound(device) && { isBound: true }),
    ...boundedOrigin(origin),
  }
}

export function boundedOrigin({ address, userAgent }: SignInOrigin): SignInOrigin {
  return {
    ...(address === undefined ? {} : { address }),
    ...(userAgent === undefined ? {} : { userAgent: userAgent.slice(0, MAX_USER_AGENT_LENGTH) }),
  }
}

export function sealSummary(summary: SessionSummary, key: string, keys: DataKeys): Buffer {
  return seal(keys.publicPart, encodeJson(summary), key)
}

/** `undefined` if it was sealed with other keys. */
export function summaryOf(entry: Entry, key: string, keys: DataKeys): SessionSummary | undefined {
  const parts = unpackRecord(entry.value)
  const opened = parts && decodeJson(summarySchema, unseal(keys.publicPart, parts.summaryPart, key))
  return opened && { ...opened, seenAt: parts.seenAt }
}

/** The session with a new time of last use, made without its ticket; `undefined` if its format is unknown. */
export function withSeenAt(
  entry: Entry,
  summary: SessionSummary,
  seenAt: number,
  key: string,
  keys: DataKeys,
): Entry | undefined {
  const parts = unpackRecord(entry.value)
  if (!parts) return undefined
  const seen = { ...parts, seenAt, summaryPart: sealSummary({ ...summary, seenAt }, key, keys) }
  return { ...entry, value: packRecord(seen) }
}

// The sealed part of a session's record: the session, which only its ticket opens. It is JSON, for example:
//
//   {"signedInAt":1794900000000,"session":{"isAuthenticated":true,"accessToken":"at-1","refreshToken":"rt-1",
//    "tokenIssuedAt":1794900000000,"tokenExpiresIn":7200,"userInfo":{"sub":"7",…},"userRole":"common"}}
//
// Its format version is the first byte of the whole record (sealing.ts).

interface SealedPart {
  readonly session: Session
  readonly signedInAt: number
  /** The length of the serialized session. */
  readonly bytes: number
}

export function sealSession(session: Session, signedInAt: number, ticket: string, key: string): Buffer {
  return seal(sealingKey(ticket), encodeJson({ signedInAt, session }), key)
}

/** `undefined` if the ticket does not open it, or if it is not a session. */
export function openSession(
  { sealedPart }: Pick<RecordParts, 'sealedPart'>,
  ticket: string,
  key: string,
): SealedPart | undefined {
  const plain = unseal(sealingKey(ticket), sealedPart, key)
  const opened = plain && parse(plain)
  return matches(opened, SEALED) && plain ? { ...opened, bytes: plain.length } : undefined
}

function parse(plain: Buffer): unknown {
  try {
    return JSON.parse(plain.toString())
  } catch {
    return undefined
  }
}

// The schema of the sealed part, as a table of checks: opening a record takes 22 µs with them and 25 µs with zod (10,000 records
// of 440 bytes; 12 µs are decryption).

type Check = (value: unknown) => boolean
/** One check per field. A check of an optional field accepts `undefined`. */
type Checks<T> = { readonly [Field in keyof T]-?: Check }

const isText: Check = value => typeof value === 'string'
const isNumber: Check = value => typeof value === 'number'
const isTexts: Check = value => Array.isArray(value) && value.every(isText)
const isAny: Check = () => true
const optional =
  (check: Check): Check =>
  value =>
    value === undefined || check(value)

/** Whether it is an object whose fields pass their checks. A field without a check must pass `others`. */
function matches<T>(value: unknown, checks: Checks<T>, others?: Check): value is T {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const fields = value as Readonly<Record<string, unknown>>
  for (const name in checks) if (!checks[name](fields[name])) return false
  for (const name in fields) if (!Object.hasOwn(checks, name) && !others?.(fields[name])) return false
  return true
}

const USER_INFO: Checks<UserInfo> = {
  sub: isText,
  ou_id: isText,
  nickname: isText,
  phone_number: isText,
  ou_name: isText,
  email: isText,
  username: isText,
}

const PROVIDER_SESSION: Checks<ProviderSession> = { issuer: isText, sid: isText }

const AUTHENTICATION: Checks<Authentication> = {
  time: optional(isNumber),
  acr: optional(isText),
  amr: optional(isTexts),
  promptedAt: optional(isNumber),
  failed: optional(isText),
}

const COOKIE: Checks<BoundCookie> = { value: isText, until: isNumber }
const OFFERED_DEVICE: Checks<OfferedDevice> = { challenge: isText }
const BOUND_DEVICE: Checks<BoundDevice> = {
  id: isText,
  x: isText,
  y: isText,
  challenge: isText,
  previousChallenge: optional(isText),
  lastNonce: optional(isText),
  cookie: value => matches(value, COOKIE),
  previousCookie: optional(value => matches(value, COOKIE)),
  isSeen: value => typeof value === 'boolean',
}

const SESSION: Checks<Session> = {
  isAuthenticated: value => value === true,
  accessToken: isText,
  refreshToken: optional(isText),
  tokenIssuedAt: isNumber,
  tokenExpiresIn: isNumber,
  refreshEndsAt: optional(isNumber),
  userInfo: value => matches(value, USER_INFO, isText),
  userRole: isText,
  provider: optional(isText),
  providerSession: optional(value => matches(value, PROVIDER_SESSION)),
  idToken: optional(isText),
  dpopKey: optional(isText),
  groups: optional(isTexts),
  authentication: optional(value => matches(value, AUTHENTICATION)),
  // A device that cannot be read makes the session unreadable: it must not be treated as one that is not bound.
  device: optional(value => matches(value, BOUND_DEVICE) || matches(value, OFFERED_DEVICE)),
  data: optional(value => matches(value, {}, isAny)),
}

const SEALED: Checks<Omit<SealedPart, 'bytes'>> = { signedInAt: isNumber, session: value => matches(value, SESSION) }

/**
 * Without OpenID Connect the user proved who they are when they signed in here. An id_token without `auth_time` leaves the time
 * unknown: the provider may have signed the user in without asking.
 */
export function authenticationOf({ session, signedInAt }: { session: Session; signedInAt: number }): Authentication {
  return session.authentication ?? { time: signedInAt }
}
