// What a session is: the record of the specification, the public part that the console may read, and the entry that holds both.

import type { ProviderSession, TokenSet, UserInfo } from '../provider/answers.ts'
import type { Role } from '../settings/config-file.ts'
import type { Entry } from '../stores/store.ts'
import type { DerivedKeys } from './derived-keys.ts'
import { seal, unseal } from './sealing.ts'
import { recordKey, sealingKey } from './ticket.ts'

/** The specification's session record, key by key. */
export interface Session {
  readonly isAuthenticated: true
  readonly accessToken: string
  readonly refreshToken?: string
  readonly tokenIssuedAt: number
  readonly tokenExpiresIn: number
  readonly userInfo: UserInfo
  readonly userRole: Role
  readonly providerSession?: ProviderSession
}

/** What a developer sees of a session that is not theirs. */
export interface PublicPart {
  readonly username: string
  readonly nickname: string
  readonly userRole: Role
  readonly signedInAt: number
  readonly seenAt: number
}

/** Every session can be listed under this label. */
export const SESSION_LABEL = 'session'
/** Which of an entry's labels is the user's. */
const LABELS_OF_ALL = 3
export const SUB_LABEL = 1

function roleOf(userInfo: UserInfo): Role {
  return userInfo.username === 'admin' ? 'developer' : 'common'
}

export function newSession(tokens: TokenSet, userInfo: UserInfo): Session {
  return withTokens({ isAuthenticated: true, userInfo, userRole: roleOf(userInfo) }, tokens)
}

/** A refresh token that is not returned anew stays; so does the provider's session. */
export function withTokens(
  session: Omit<Session, 'accessToken' | 'tokenIssuedAt' | 'tokenExpiresIn'>,
  { accessToken, refreshToken, receivedAt, expiresIn, providerSession }: TokenSet,
): Session {
  return {
    ...session,
    accessToken,
    ...(refreshToken === undefined ? {} : { refreshToken }),
    tokenIssuedAt: receivedAt,
    tokenExpiresIn: expiresIn,
    ...(providerSession === undefined ? {} : { providerSession }),
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
  keys: DerivedKeys,
): Entry {
  const sealedPart = seal(sealingKey(ticket), Buffer.from(JSON.stringify(session)), recordKey(ticket))
  return {
    value: pack(sealPublicPart(publicPart, recordKey(ticket), keys), sealedPart),
    expiresAt: sessionEndsAt(session, publicPart.signedInAt, maxHours),
    labels: labelsOf(session, keys),
  }
}

function labelsOf({ userInfo, providerSession }: Session, keys: DerivedKeys): string[] {
  const labels = [SESSION_LABEL, keys.label('sub', userInfo.sub), keys.label('username', userInfo.username)]
  return providerSession ? [...labels, providerSessionLabel(providerSession, keys)] : labels
}

/** Whether it is known at which session of the provider it was opened. */
export function hasProviderSession({ labels }: Pick<Entry, 'labels'>): boolean {
  return labels.length > LABELS_OF_ALL
}

/** Two providers may use the same session id. */
export function providerSessionLabel({ issuer, sid }: ProviderSession, keys: DerivedKeys): string {
  return keys.label('sid', JSON.stringify([issuer, sid]))
}

/** `undefined` if the ticket does not open it. */
export function sessionOf(entry: Entry, ticket: string): Session | undefined {
  const plain = unseal(sealingKey(ticket), unpack(entry.value).sealedPart, recordKey(ticket))
  return plain && (JSON.parse(plain.toString()) as Session)
}

/** `undefined` if it was sealed under another client secret. */
export function publicPartOf(entry: Entry, key: string, keys: DerivedKeys): PublicPart | undefined {
  const plain = unseal(keys.publicPart, unpack(entry.value).publicPart, key)
  return plain && (JSON.parse(plain.toString()) as PublicPart)
}

/** The same session with another public part, without its ticket. */
export function withPublicPart(entry: Entry, publicPart: PublicPart, key: string, keys: DerivedKeys): Entry {
  return { ...entry, value: pack(sealPublicPart(publicPart, key, keys), unpack(entry.value).sealedPart) }
}

function sealPublicPart(publicPart: PublicPart, key: string, keys: DerivedKeys): Uint8Array {
  return seal(keys.publicPart, Buffer.from(JSON.stringify(publicPart)), key)
}

const LENGTH_BYTES = 4

function pack(publicPart: Uint8Array, sealedPart: Uint8Array): Uint8Array {
  const length = Buffer.alloc(LENGTH_BYTES)
  length.writeUInt32BE(publicPart.length)
  return Buffer.concat([length, publicPart, sealedPart])
}

function unpack(value: Uint8Array): { publicPart: Uint8Array; sealedPart: Uint8Array } {
  const end = LENGTH_BYTES + Buffer.from(value.buffer, value.byteOffset, LENGTH_BYTES).readUInt32BE()
  return { publicPart: value.subarray(LENGTH_BYTES, end), sealedPart: value.subarray(end) }
}
