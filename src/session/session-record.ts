// What a session is: the record of the specification, and the entry that holds it together with its public part.

import { createHmac } from 'node:crypto'
import { decodeJwt } from 'jose'
import type { ProviderSession } from '../provider/oidc/provider-session.ts'
import type { TokenSet } from '../provider/token-answer.ts'
import type { UserFacts, UserInfo } from '../provider/user-facts.ts'
import type { Role } from '../settings/config/config-file.ts'
import type { Entry } from '../stores/store.ts'
import { type PublicPart, type SignInOrigin, sealPublicPart } from './public-part.ts'
import { packRecord } from './record-format.ts'
import { sealSession } from './sealed-part.ts'
import { recordKey } from './ticket.ts'

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
  readonly facts: UserFacts
  readonly provider: string | undefined
  readonly origin?: SignInOrigin
}

export function newSession({ tokens, facts, provider }: SignedIn, userRole: Role): Session {
  const { userInfo, groups } = facts
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
  claimsPart?: Uint8Array,
): Entry {
  const key = recordKey(ticket)
  return {
    value: packRecord({
      seenAt: publicPart.seenAt,
      publicPart: sealPublicPart(publicPart, key, keys),
      ...(claimsPart && { claimsPart }),
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
