// What the provider said of a user at sign-in, kept with the session. A role is derived from it by the roles of the moment, so
// that a change of the configuration counts for every session, and none is lost for good by a row that was missing once.
import { z } from 'zod'
import type { TokenSet } from '../provider/token-answer.ts'
import type { RoleConfig } from '../settings/config/config-file.ts'
import { decodeJson, encodeJson } from './record-format.ts'
import { seal, unseal } from './sealing.ts'
import { sealingKey } from './ticket.ts'

export type Claims = Readonly<Record<string, unknown>>

export const NO_CLAIMS: Claims = {}

/** More than providers say of anybody but a member of hundreds of groups. */
const MOST_BYTES = 16 * 1024

const claimsSchema: z.ZodType<Claims> = z.record(z.string(), z.unknown())

/** What of the claims is kept, and which are left out because there is no room. Those that a role is given by come first. */
export function claimsToKeep(
  claims: Claims,
  roles: readonly RoleConfig[],
  tokens: Pick<TokenSet, 'accessToken' | 'refreshToken' | 'idToken'>,
): { readonly kept: Claims; readonly left: readonly string[] } {
  const paths = roles.flatMap(({ claim = {} }) => Object.keys(claim))
  const isNamed = (name: string) => paths.some(path => path === name || path.startsWith(`${name}.`))
  const secrets: unknown[] = [tokens.accessToken, tokens.refreshToken, tokens.idToken]
  const entries = Object.entries(claims)
    // An answer with tokens in it can be a source of claims. They are kept already, and replaced by each refresh.
    .filter(([, value]) => value !== undefined && !(typeof value === 'string' && secrets.includes(value)))
    .map(([name, value]) => ({ name, value, bytes: encodeJson({ [name]: value }).length, isNamed: isNamed(name) }))
  if (entries.reduce((sum, { bytes }) => sum + bytes, 0) <= MOST_BYTES) return { kept: toClaims(entries), left: [] }
  const kept: typeof entries = []
  let room = MOST_BYTES
  for (const entry of entries.sort((a, b) => Number(b.isNamed) - Number(a.isNamed) || a.bytes - b.bytes))
    if (entry.bytes <= room) {
      kept.push(entry)
      room -= entry.bytes
    }
  return { kept: toClaims(kept), left: entries.filter(entry => !kept.includes(entry)).map(({ name }) => name) }
}

function toClaims(entries: readonly { readonly name: string; readonly value: unknown }[]): Claims {
  return Object.fromEntries(entries.map(({ name, value }) => [name, value]))
}

/** Only the ticket opens them, like the session itself. `key` is that of the record. */
export function sealClaims(claims: Claims, ticket: string, key: string): Buffer {
  return seal(sealingKey(ticket), encodeJson(claims), boundTo(key))
}

/** None if there are none, or if they are not of this record: nobody gets a role by what cannot be read. */
export function openClaims(sealed: Uint8Array | undefined, ticket: string, key: string): Claims {
  if (!sealed) return NO_CLAIMS
  return decodeJson(claimsSchema, unseal(sealingKey(ticket), sealed, boundTo(key))) ?? NO_CLAIMS
}

/** So that neither part of a record can take the place of the other. */
function boundTo(key: string): string {
  return `${key} claims`
}
