// The sealed part of a session's record: the session itself, which only its ticket opens.
//
// It is a list in JSON, its fields in a fixed order. That is read in half of the time that names and a schema take, and
// within a microsecond of what the leanest binary reader in JavaScript does.
import { z } from 'zod'
import type { UserInfo } from '../provider/user-facts.ts'
import { decodeJson, encodeJson, type RecordParts } from './record-format.ts'
import { seal, unseal } from './sealing.ts'
import type { Session, SessionData } from './session-record.ts'
import { sealingKey } from './ticket.ts'

export interface SealedPart {
  readonly session: Session
  /** Formerly in the public part alone. */
  readonly signedInAt?: number
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
  const opened = parts.seenAt === undefined ? formerSession(plain) : fromList(parseList(plain))
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

const userInfoSchema: z.ZodType<UserInfo> = z
  .object({
    sub: z.string(),
    ou_id: z.string(),
    nickname: z.string(),
    phone_number: z.string(),
    ou_name: z.string(),
    email: z.string(),
    username: z.string(),
  })
  .catchall(z.string())

const formerSchema: z.ZodType<Session> = z.object({
  isAuthenticated: z.literal(true),
  accessToken: z.string(),
  refreshToken: z.string().exactOptional(),
  tokenIssuedAt: z.number(),
  tokenExpiresIn: z.number(),
  userInfo: userInfoSchema,
  userRole: z.string(),
  provider: z.string().exactOptional(),
  providerSession: z.object({ issuer: z.string(), sid: z.string() }).exactOptional(),
  idToken: z.string().exactOptional(),
  groups: z.array(z.string()).exactOptional(),
})

function formerSession(plain: Buffer): Pick<SealedPart, 'session'> | undefined {
  const session = decodeJson(formerSchema, plain)
  return session && { session }
}
