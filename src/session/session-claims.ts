// The provider's claims of a user, at sign-in or after the last refresh, kept with the session. Roles are derived from them by the current configuration,
// so that a change of it counts for every session.
import { z } from 'zod'
import type { RoleConfig } from '../config/config-file.ts'
import type { TokenSet } from '../provider/token.ts'
import type { ExclusiveClaims, MappedUser } from '../provider/user.ts'
import { decodeJson, encodeJson, seal, unseal } from './sealing.ts'
import { sealingKey } from './ticket.ts'

export type Claims = Readonly<Record<string, unknown>>

/** The claims that are kept. */
export interface KeptClaims {
  readonly claims: Claims
  /** Names of claims that came and are not kept; `all` if it may be any name. */
  readonly lost: readonly string[] | 'all'
  /** The names of claims that one source alone has said: a refresh may not repeat them. */
  readonly sole?: ExclusiveClaims
}

const NOTHING_KEPT: KeptClaims = { claims: {}, lost: 'all' }

/** More than the claims of any user except a member of hundreds of groups. */
const MOST_BYTES = 16 * 1024
const MOST_BYTES_OF_NAMES = 4 * 1024

export const keptSchema: z.ZodType<KeptClaims> = z.object({
  claims: z.record(z.string(), z.unknown()),
  lost: z.union([z.array(z.string()), z.literal('all')]),
  sole: z
    .object({ id_token: z.array(z.string()).exactOptional(), token: z.array(z.string()).exactOptional() })
    .exactOptional(),
})

/** The claims that are kept, and the names of those without room. Claims that a role depends on come first. */
export function claimsToKeep(
  {
    claims,
    exclusiveClaims: sole,
    unknownClaims = [],
  }: Pick<MappedUser, 'claims' | 'exclusiveClaims' | 'unknownClaims'>,
  roles: readonly RoleConfig[],
  tokens: Pick<TokenSet, 'accessToken' | 'refreshToken' | 'idToken'>,
): { readonly kept: KeptClaims; readonly left: readonly string[] } {
  const paths = roles.flatMap(({ claim = {} }) => Object.keys(claim))
  const isNamed = (name: string) => paths.some(path => isWithin(path, name))
  const secrets: unknown[] = [tokens.accessToken, tokens.refreshToken, tokens.idToken]
  // A token response can be a source of claims. Tokens are kept in the session, and replaced by each refresh.
  const isSecret = (value: unknown) => typeof value === 'string' && secrets.includes(value)
  const said = Object.entries(claims).filter(([, value]) => value !== undefined)
  const hidden = [...unknownClaims, ...said.filter(([, value]) => isSecret(value)).map(([name]) => name)]
  const names = sole && bytesOf(sole) <= MOST_BYTES_OF_NAMES ? { sole } : {}
  const shown = said.filter(([, value]) => !isSecret(value))
  const all = Object.fromEntries(shown)
  if (bytesOf(all) <= MOST_BYTES) return { kept: { claims: all, lost: shortList(hidden), ...names }, left: [] }
  const entries = shown.map(([name, value]) => ({
    name,
    value,
    bytes: bytesOf({ [name]: value }),
    isNamed: isNamed(name),
  }))
  const kept: typeof entries = []
  let room = MOST_BYTES
  for (const entry of entries.sort((a, b) => Number(b.isNamed) - Number(a.isNamed) || a.bytes - b.bytes))
    if (entry.bytes <= room) {
      kept.push(entry)
      room -= entry.bytes
    }
  const left = entries.filter(entry => !kept.includes(entry)).map(({ name }) => name)
  return { kept: { claims: toClaims(kept), lost: shortList([...hidden, ...left]), ...names }, left }
}

function shortList(lost: readonly string[]): KeptClaims['lost'] {
  return lost.length === 0 || bytesOf(lost) <= MOST_BYTES_OF_NAMES ? lost : 'all'
}

function bytesOf(value: object): number {
  return Buffer.byteLength(JSON.stringify(value))
}

/** Of each token alone: a change of them says nothing about the user, and needs no write. */
const OF_A_TOKEN: ReadonlySet<string> = new Set(['iat', 'exp', 'nbf', 'jti', 'at_hash', 'nonce', 'expires_in'])

export function withoutTokenClaims(claims: Claims): Claims {
  return Object.fromEntries(Object.entries(claims).filter(([name]) => !OF_A_TOKEN.has(name)))
}

/** Whether the path may have had a claim that is not kept. */
export function isLost({ claims, lost }: KeptClaims, path: string): boolean {
  if (lost === 'all') return !Object.keys(claims).some(name => isWithin(path, name))
  return lost.some(name => isWithin(path, name))
}

function isWithin(path: string, name: string): boolean {
  return path === name || path.startsWith(`${name}.`)
}

function toClaims(entries: readonly { readonly name: string; readonly value: unknown }[]): Claims {
  return Object.fromEntries(entries.map(({ name, value }) => [name, value]))
}

/** Only the ticket opens them, like the session. `key` is the key of the record. */
export function sealClaims(claims: KeptClaims, ticket: string, key: string): Buffer {
  return seal(sealingKey(ticket), encodeJson(claims), aadOf(key))
}

/** Without claims, or with those of another record, all count as lost: nobody gets a role by what cannot be read. */
export function openClaims(sealed: Uint8Array, ticket: string, key: string): KeptClaims {
  return decodeJson(keptSchema, unseal(sealingKey(ticket), sealed, aadOf(key))) ?? NOTHING_KEPT
}

/** The `aad` of the claims: no other part of a record can replace them. */
function aadOf(key: string): string {
  return `${key} claims`
}
