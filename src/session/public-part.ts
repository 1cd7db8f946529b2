// The public part of a session: what a developer sees of it without its ticket. It is sealed with our own key.

import { z } from 'zod'
import type { Role } from '../settings/config/config-file.ts'
import type { Entry } from '../stores/store.ts'
import { decodeJson, encodeJson, packRecord, unpackRecord } from './record-format.ts'
import { seal, unseal } from './sealing.ts'
import type { DataKeys, Session } from './session-record.ts'

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
  const seen = { ...parts, publicPart: sealPublicPart({ ...publicPart, seenAt }, key, keys) }
  const value = packRecord(parts.seenAt === undefined ? seen : { ...seen, seenAt })
  return { ...entry, since: publicPart.signedInAt, value }
}
