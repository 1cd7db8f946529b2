// What the provider said of a user at sign-in, kept with the session. A role is derived from it by the roles of the moment, so
// that a change of the configuration counts for every session, and none is lost for good by a row that was missing once.
import { z } from 'zod'
import type { RoleConfig } from '../config/config-file.ts'
import type { TokenSet } from '../provider/token.ts'
import { decodeJson, encodeJson, seal, unseal } from './sealing.ts'

import { sealingKey } from './ticket.ts'

export type Claims = Readonly<Record<string, unknown>>

/** What is kept of the claims. */
export interface KeptClaims {
  readonly claims: Claims
  /** Names of those that were said and are not kept; `all` if any name may be one of them. */
  readonly lost: readonly string[] | 'all'
}

const NOTHING_KEPT: KeptClaims = { claims: {}, lost: 'all' }

/** More than providers say of anybody but a member of hundreds of groups. */
const MOST_BYTES = 16 * 1024
const MOST_BYTES_OF_NAMES = 4 * 1024

const keptSchema: z.ZodType<KeptClaims> = z.object({
  claims: z.record(z.string(), z.unknown()),
  lost: z.union([z.array(z.string()), z.literal('all')]),
})

/** What of the claims is kept, and which are left out because there is no room. Those that a role is given by come first. */
export function claimsToKeep(
  claims: Claims,
  roles: readonly RoleConfig[],
  tokens: Pick<TokenSet, 'accessToken' | 'refreshToken' | 'idToken'>,
): { readonly kept: KeptClaims; readonly left: readonly string[] } {
  const paths = roles.flatMap(({ claim = {} }) => Object.keys(claim))
  const isNamed = (name: string) => paths.some(path => isWithin(path, name))
  const secrets: unknown[] = [tokens.accessToken, tokens.refreshToken, tokens.idToken]
  // An answer with tokens in it can be a source of claims. They are kept already, and replaced by each refresh.
  const isSecret = (value: unknown) => typeof value === 'string' && secrets.includes(value)
  const said = Object.entries(claims).filter(([, value]) => value !== undefined)
  const hidden = said.filter(([, value]) => isSecret(value)).map(([name]) => name)
  const entries = said
    .filter(([, value]) => !isSecret(value))
    .map(([name, value]) => ({ name, value, bytes: encodeJson({ [name]: value }).length, isNamed: isNamed(name) }))
  if (entries.reduce((sum, { bytes }) => sum + bytes, 0) <= MOST_BYTES)
    return { kept: { claims: toClaims(entries), lost: hidden }, left: [] }
  const kept: typeof entries = []
  let room = MOST_BYTES
  for (const entry of entries.sort((a, b) => Number(b.isNamed) - Number(a.isNamed) || a.bytes - b.bytes))
    if (entry.bytes <= room) {
      kept.push(entry)
      room -= entry.bytes
    }
  const left = entries.filter(entry => !kept.includes(entry)).map(({ name }) => name)
  const lost = [...hidden, ...left]
  const isShort = encodeJson(lost).length <= MOST_BYTES_OF_NAMES
  return { kept: { claims: toClaims(kept), lost: isShort ? lost : 'all' }, left }
}

/** Whether a place may have had something that is not kept. */
export function isLost({ claims, lost }: KeptClaims, place: string): boolean {
  if (lost === 'all') return !Object.keys(claims).some(name => isWithin(place, name))
  return lost.some(name => isWithin(place, name))
}

function isWithin(place: string, name: string): boolean {
  return place === name || place.startsWith(`${name}.`)
}

function toClaims(entries: readonly { readonly name: string; readonly value: unknown }[]): Claims {
  return Object.fromEntries(entries.map(({ name, value }) => [name, value]))
}

/** Only the ticket opens them, like the session itself. `key` is that of the record. */
export function sealClaims(claims: KeptClaims, ticket: string, key: string): Buffer {
  return seal(sealingKey(ticket), encodeJson(claims), boundTo(key))
}

/** If there are none, or if they are not of this record, all are lost: nobody gets a role by what cannot be read. */
export function openClaims(sealed: Uint8Array, ticket: string, key: string): KeptClaims {
  return decodeJson(keptSchema, unseal(sealingKey(ticket), sealed, boundTo(key))) ?? NOTHING_KEPT
}

/** So that neither part of a record can take the place of the other. */
function boundTo(key: string): string {
  return `${key} claims`
}
