// What a session is: the record of the specification, and the entry that holds it together with its public part.

import { createHmac } from 'node:crypto'
import { decodeJwt } from 'jose'
import { z } from 'zod'
import type { Role } from '../config/config-file.ts'
import type { ProviderSession } from '../provider/id-token.ts'
import type { TokenSet } from '../provider/token.ts'
import type { MappedUser, UserInfo } from '../provider/user.ts'
import type { Entry } from '../stores/store.ts'
import { decodeJson, encodeJson, packRecord, type RecordParts, seal, unpackRecord, unseal } from './sealing.ts'
import { recordKey, sealingKey } from './ticket.ts'

/** The specification's session record, key by key, and below them what is our own. */
export interface Session {
  readonly isAuthenticated: true
  readonly accessToken: string
  readonly refreshToken?: string
  readonly tokenIssuedAt: number
  readonly tokenExpiresIn: number
  readonly userInfo: UserInfo
  readonly userRole: Role
  /** Which of several providers; absent where there is one. */
  readonly provider?: string
  readonly providerSession?: ProviderSession
  /** For the sign-out through the browser. */
  readonly idToken?: string
  readonly groups?: readonly string[]
  /** What the application around us keeps with it. */
  readonly data?: SessionData
}

/** Of the application's own: whatever JSON can say. */
export type SessionData = Readonly<Record<string, unknown>>

/** Keys for what has to be read without a ticket. */
export interface DataKeys {
  /** Makes the names under which a user's sessions are listed. */
  readonly labels: Uint8Array
  /** Seals the public parts that the console lists. */
  readonly publicPart: Uint8Array
}

/** Every session can be listed under this label. */
export const SESSION_LABEL = 'session'
/** Which of an entry's labels is the user's. */
export const SUB_LABEL = 1
/** No other label begins like this. */
const PROVIDER_SESSION_PREFIX = 'sid.'
const SUBJECT_PREFIX = 'subject.'

/** `provider` is absent where there is one only. */
export interface SignedIn {
  readonly tokens: TokenSet
  readonly user: MappedUser
  readonly provider: string | undefined
  readonly origin?: SignInOrigin
}

export function newSession({ tokens, user, provider }: SignedIn, userRole: Role): Session {
  const { userInfo, groups } = user
  const session = {
    isAuthenticated: true as const,
    userInfo,
    userRole,
    ...(provider === undefined ? {} : { provider }),
    ...(groups.length > 0 ? { groups } : {}),
  }
  return withTokens(session, tokens)
}

/** A refresh token that is not returned anew stays; so does the provider's session. */
export function withTokens(
  session: Omit<Session, 'accessToken' | 'tokenIssuedAt' | 'tokenExpiresIn'>,
  { accessToken, refreshToken, receivedAt, expiresIn, providerSession, idToken }: TokenSet,
): Session {
  return {
    ...session,
    accessToken,
    ...(refreshToken === undefined ? {} : { refreshToken }),
    tokenIssuedAt: receivedAt,
    tokenExpiresIn: expiresIn,
    ...(providerSession === undefined ? {} : { providerSession }),
    ...(idToken === undefined ? {} : { idToken }),
  }
}

export function tokenExpiresAt(session: Session): number {
  return session.tokenIssuedAt + session.tokenExpiresIn * 1000
}

/** When the session ends if nothing refreshes it. */
export function sessionEndsAt(session: Session, signedInAt: number, maxHours: number): number {
  return Math.min(tokenExpiresAt(session), latestEnd(signedInAt, maxHours))
}

/** When it ends whatever refreshes it. */
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

/** The token expires within the lead, and there is something to refresh it with. */
export function isDue(session: Session, leadSeconds: number, now: number): boolean {
  return session.refreshToken !== undefined && tokenExpiresAt(session) - now <= leadSeconds * 1000
}

export function toEntry(
  ticket: string,
  session: Session,
  publicPart: PublicPart,
  maxHours: number,
  keys: DataKeys,
  claimsPart: Uint8Array,
): Entry {
  const key = recordKey(ticket)
  return {
    value: packRecord({
      seenAt: publicPart.seenAt,
      publicPart: sealPublicPart(publicPart, key, keys),
      claimsPart,
      sealedPart: sealSession(session, publicPart.signedInAt, ticket, key),
    }),
    expiresAt: sessionEndsAt(session, publicPart.signedInAt, maxHours),
    labels: labelsOf(session, keys),
    since: publicPart.signedInAt,
  }
}

function labelsOf({ userInfo, provider, providerSession, idToken }: Session, keys: DataKeys): string[] {
  const subject = subjectIn(idToken)
  return [
    SESSION_LABEL,
    userLabel({ sub: userInfo.sub, provider }, keys),
    labelOf('username', userInfo.username, keys),
    ...(providerSession ? [providerSessionLabel(providerSession, keys)] : []),
    ...(subject !== undefined && subject !== userInfo.sub ? [subjectLabel({ sub: subject, provider }, keys)] : []),
  ]
}

/** By which `sub` the provider itself knows the user. The id_token was checked when it came. */
function subjectIn(idToken: string | undefined): string | undefined {
  if (idToken === undefined) return undefined
  try {
    return decodeJwt(idToken).sub
  } catch {
    return undefined
  }
}

/** The same sub from two providers is two people. */
export interface UserId {
  readonly sub: string
  readonly provider?: string | undefined
}

export function userIdOf({ userInfo, provider }: Session): UserId {
  return { sub: userInfo.sub, provider }
}

export function userLabel({ sub, provider }: UserId, keys: DataKeys): string {
  return labelOf('sub', provider === undefined ? sub : JSON.stringify([provider, sub]), keys)
}

/**
 * Where `fields.sub` makes another `sub` of the user than the provider's own. It is a label of another kind: the same text can
 * be the one of one user and the other of another.
 */
export function subjectLabel({ sub, provider }: UserId, keys: DataKeys): string {
  return SUBJECT_PREFIX + labelOf('subject', JSON.stringify([provider ?? null, sub]), keys)
}

/** Whether the provider knows the user by another `sub` than we do. */
export function hasOwnSubject({ labels }: Pick<Entry, 'labels'>): boolean {
  return labels.some(label => label.startsWith(SUBJECT_PREFIX))
}

/** Whether it is known at which session of the provider it was opened. */
export function hasProviderSession({ labels }: Pick<Entry, 'labels'>): boolean {
  return labels.some(label => label.startsWith(PROVIDER_SESSION_PREFIX))
}

/** A name that sessions can be found by, and nobody can be recognised by. */
export function labelOf(kind: 'sub' | 'username' | 'sid' | 'subject', value: string, keys: DataKeys): string {
  return createHmac('sha256', keys.labels).update(`${kind} ${value}`).digest('base64url')
}

/** Two providers may use the same session id. */
export function providerSessionLabel({ issuer, sid }: ProviderSession, keys: DataKeys): string {
  return PROVIDER_SESSION_PREFIX + labelOf('sid', JSON.stringify([issuer, sid]), keys)
}

// The public part of a session: what a developer sees of it without its ticket. It is sealed with our own key.

/** Where somebody signed in from, as far as it is known. */
export interface SignInOrigin {
  readonly address?: string
  readonly userAgent?: string
}

export interface PublicPart extends SignInOrigin {
  readonly username: string
  readonly nickname: string
  readonly userRole: Role
  readonly provider?: string
  readonly signedInAt: number
  readonly seenAt: number
}

/** Longer than browsers need to name themselves. */
const LONGEST_USER_AGENT = 256

const publicPartSchema: z.ZodType<PublicPart> = z.object({
  username: z.string(),
  nickname: z.string(),
  userRole: z.string(),
  provider: z.string().exactOptional(),
  signedInAt: z.number(),
  seenAt: z.number(),
  address: z.string().exactOptional(),
  userAgent: z.string().exactOptional(),
})

interface SessionTimes {
  readonly signedInAt: number
  readonly seenAt: number
}

export function newPublicPart(session: Session, times: SessionTimes, origin: SignInOrigin = {}): PublicPart {
  const { userInfo, userRole, provider } = session
  const { username, nickname } = userInfo
  const { signedInAt, seenAt } = times
  const from = originOf(origin)
  return { username, nickname, userRole, ...(provider === undefined ? {} : { provider }), signedInAt, seenAt, ...from }
}

export function originOf({ address, userAgent }: SignInOrigin): SignInOrigin {
  return {
    ...(address === undefined ? {} : { address }),
    ...(userAgent === undefined ? {} : { userAgent: userAgent.slice(0, LONGEST_USER_AGENT) }),
  }
}

export function sealPublicPart(publicPart: PublicPart, key: string, keys: DataKeys): Buffer {
  return seal(keys.publicPart, encodeJson(publicPart), key)
}

/** `undefined` if it was sealed with other keys. */
export function publicPartOf(entry: Entry, key: string, keys: DataKeys): PublicPart | undefined {
  const parts = unpackRecord(entry.value)
  return parts && decodeJson(publicPartSchema, unseal(keys.publicPart, parts.publicPart, key))
}

/** The same session, seen at this moment, without its ticket; `undefined` if its format is none that we know. */
export function withSeenAt(
  entry: Entry,
  publicPart: PublicPart,
  seenAt: number,
  key: string,
  keys: DataKeys,
): Entry | undefined {
  const parts = unpackRecord(entry.value)
  if (!parts) return undefined
  const seen = { ...parts, seenAt, publicPart: sealPublicPart({ ...publicPart, seenAt }, key, keys) }
  return { ...entry, value: packRecord(seen) }
}

// The sealed part of a session's record: the session itself, which only its ticket opens.
//
// It is a list in JSON, its fields in a fixed order. That is read in half of the time that names and a schema take, and
// within a microsecond of what the leanest binary reader in JavaScript does.

export interface SealedPart {
  readonly session: Session
  readonly signedInAt: number
  /** How long it is written down. */
  readonly bytes: number
}

type Writable<T> = { -readonly [Field in keyof T]: T[Field] }

/** Among the mapped fields: the data of the application. No mapped field has this name. */
const DATA = ''

/** Of the specification's fields, before those that the configuration maps: their names and values in turn. */
const FIXED_FIELDS = 18

export function sealSession(session: Session, signedInAt: number, ticket: string, key: string): Buffer {
  return seal(sealingKey(ticket), encodeJson(toList(session, signedInAt)), key)
}

/** `undefined` if the ticket does not open it, or if there is no session in it. */
export function openSession(parts: RecordParts, ticket: string, key: string): SealedPart | undefined {
  const plain = unseal(sealingKey(ticket), parts.sealedPart, key)
  if (!plain) return undefined
  const opened = fromList(parseList(plain))
  return opened && { ...opened, bytes: plain.length }
}

function toList(session: Session, signedInAt: number): unknown[] {
  const { accessToken, refreshToken, tokenIssuedAt, tokenExpiresIn, userRole, provider, providerSession } = session
  const { sub, ou_id, nickname, phone_number, ou_name, email, username, ...further } = session.userInfo
  return [
    ...[signedInAt, tokenIssuedAt, tokenExpiresIn, accessToken, refreshToken, session.idToken],
    ...[userRole, provider, providerSession?.issuer, providerSession?.sid, session.groups],
    ...[sub, ou_id, nickname, phone_number, ou_name, email, username],
    ...Object.entries(further).flat(),
    ...(session.data === undefined ? [] : [DATA, session.data]),
  ]
}

function parseList(plain: Buffer): readonly unknown[] {
  try {
    const list: unknown = JSON.parse(plain.toString())
    return Array.isArray(list) ? list : []
  } catch {
    return []
  }
}

/** `undefined` if anything in it is not as it was written. What was absent is null. */
function fromList(list: readonly unknown[]): Omit<SealedPart, 'bytes'> | undefined {
  const [signedInAt, tokenIssuedAt, tokenExpiresIn, accessToken, refreshToken, idToken] = list
  const [, , , , , , userRole, provider, issuer, sid, groups] = list
  const userInfo = userInfoFrom(list)
  if (!isNumber(signedInAt) || !isNumber(tokenIssuedAt) || !isNumber(tokenExpiresIn)) return undefined
  if (!isText(accessToken) || !isText(userRole) || !userInfo) return undefined
  // In this order for every session: objects of one shape are the fastest to read, and the smallest.
  const session: Writable<Session> = {
    isAuthenticated: true,
    accessToken,
    tokenIssuedAt,
    tokenExpiresIn,
    userInfo,
    userRole,
  }
  if (isText(refreshToken)) session.refreshToken = refreshToken
  else if (refreshToken !== null) return undefined
  if (isText(provider)) session.provider = provider
  else if (provider !== null) return undefined
  if (isText(issuer) && isText(sid)) session.providerSession = { issuer, sid }
  else if (issuer !== null || sid !== null) return undefined
  if (isText(idToken)) session.idToken = idToken
  else if (idToken !== null) return undefined
  if (isTexts(groups)) session.groups = groups
  else if (groups !== null) return undefined
  if (hasData(list)) {
    const data = list.at(-1)
    if (!isData(data)) return undefined
    session.data = data
  }
  return { session, signedInAt }
}

function userInfoFrom(list: readonly unknown[]): UserInfo | undefined {
  const [, , , , , , , , , , , sub, ou_id, nickname, phone_number, ou_name, email, username] = list
  if (!isText(sub) || !isText(ou_id) || !isText(nickname) || !isText(phone_number)) return undefined
  if (!isText(ou_name) || !isText(email) || !isText(username)) return undefined
  const userInfo = { sub, ou_id, nickname, phone_number, ou_name, email, username }
  if (list.length === FIXED_FIELDS) return userInfo
  const further = list.slice(FIXED_FIELDS, hasData(list) ? -2 : undefined)
  if (!isTexts(further) || further.length % 2 > 0) return undefined
  const pairs = further.flatMap((name, n) => (n % 2 === 0 ? [[name, further[n + 1]] as const] : []))
  return { ...Object.fromEntries(pairs), ...userInfo }
}

function hasData(list: readonly unknown[]): boolean {
  return list.length > FIXED_FIELDS && list.at(-2) === DATA
}

function isData(value: unknown): value is SessionData {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every(isText)
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number'
}
