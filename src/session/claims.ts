// The provider's claims about a user, at sign-in or after the last refresh, kept with the session. The current configuration derives
// roles from them, so that a change to it applies to every session.
import { z } from 'zod'
import type { RoleConfig } from '../config/file.ts'
import type { TokenSet } from '../provider/token.ts'
import type { ExclusiveClaims, MappedUser } from '../provider/user.ts'
import { decodeJson, encodeJson, seal, unseal } from './sealing.ts'
import { sealingKey } from './ticket.ts'

export type Claims = Readonly<Record<string, unknown>>

/** The claims that are stored with a session. */
export interface StoredClaims {
  readonly claims: Claims
  /** Names of claims that the provider sent and that are not stored; `all` if it may be any name. */
  readonly unknownClaims: readonly string[] | 'all'
  /** The names of claims that only one source has sent: a refresh may leave them out. */
  readonly exclusiveClaims?: ExclusiveClaims
}

const NO_CLAIMS: StoredClaims = { claims: {}, unknownClaims: 'all' }

/** More than the claims of any user except a member of hundreds of groups. */
const MAX_CLAIMS_BYTES = 16 * 1024
const MAX_NAMES_BYTES = 4 * 1024

export const storedClaimsSchema: z.ZodType<StoredClaims> = z.object({
  claims: z.record(z.string(), z.unknown()),
  unknownClaims: z.union([z.array(z.string()), z.literal('all')]),
  exclusiveClaims: z
    .object({ id_token: z.array(z.string()).exactOptional(), token: z.array(z.string()).exactOptional() })
    .exactOptional(),
})

/** The claims to store, and the names of those that do not fit. Claims that a role depends on come first. */
export function selectClaims(
  { claims, exclusiveClaims, unknownClaims = [] }: Pick<MappedUser, 'claims' | 'exclusiveClaims' | 'unknownClaims'>,
  roles: readonly RoleConfig[],
  tokens: Pick<TokenSet, 'accessToken' | 'refreshToken' | 'idToken'>,
): { readonly storedClaims: StoredClaims; readonly droppedClaims: readonly string[] } {
  const paths = roles.flatMap(({ claim = {} }) => Object.keys(claim))
  const isNamed = (name: string) => paths.some(path => isWithin(path, name))
  const secrets: unknown[] = [tokens.accessToken, tokens.refreshToken, tokens.idToken]
  // A token response can be a source of claims. Tokens are stored in the session, and replaced by each refresh.
  const isSecret = (value: unknown) => typeof value === 'string' && secrets.includes(value)
  const sent = Object.entries(claims).filter(([, value]) => value !== undefined)
  const hidden = [...unknownClaims, ...sent.filter(([, value]) => isSecret(value)).map(([name]) => name)]
  const names = exclusiveClaims && bytesOf(exclusiveClaims) <= MAX_NAMES_BYTES ? { exclusiveClaims } : {}
  const shown = sent.filter(([, value]) => !isSecret(value))
  const all = Object.fromEntries(shown)
  if (bytesOf(all) <= MAX_CLAIMS_BYTES)
    return { storedClaims: { claims: all, unknownClaims: shortList(hidden), ...names }, droppedClaims: [] }
  const entries = shown.map(([name, value]) => ({
    name,
    value,
    bytes: bytesOf({ [name]: value }),
    isNamed: isNamed(name),
  }))
  const kept = new Set<(typeof entries)[number]>()
  let room = MAX_CLAIMS_BYTES
  for (const entry of entries.sort((a, b) => Number(b.isNamed) - Number(a.isNamed) || a.bytes - b.bytes))
    if (entry.bytes <= room) {
      kept.add(entry)
      room -= entry.bytes
    }
  const droppedClaims = entries.filter(entry => !kept.has(entry)).map(({ name }) => name)
  const unknown = shortList([...hidden, ...droppedClaims])
  return { storedClaims: { claims: toClaims([...kept]), unknownClaims: unknown, ...names }, droppedClaims }
}

function shortList(names: readonly string[]): StoredClaims['unknownClaims'] {
  return names.length === 0 || bytesOf(names) <= MAX_NAMES_BYTES ? names : 'all'
}

function bytesOf(value: object): number {
  return Buffer.byteLength(JSON.stringify(value))
}

/** Claims about a token. A change to them is not a change to the user, and needs no write. */
const TOKEN_CLAIMS: ReadonlySet<string> = new Set(['iat', 'exp', 'nbf', 'jti', 'at_hash', 'nonce', 'expires_in'])

export function withoutTokenClaims(claims: Claims): Claims {
  return Object.fromEntries(Object.entries(claims).filter(([name]) => !TOKEN_CLAIMS.has(name)))
}

/** Whether the provider may have sent a claim at this path that is not stored. */
export function isUnknownClaim({ claims, unknownClaims }: StoredClaims, path: string): boolean {
  const names = namesAbove(path)
  if (unknownClaims === 'all') return !names.some(name => Object.hasOwn(claims, name))
  return names.some(name => unknownClaims.includes(name))
}

/** The names of claims that can have a value at the path: the path, and its part before each dot. A user can have thousands of claims. */
function namesAbove(path: string): string[] {
  const names = [path]
  for (let dot = path.indexOf('.'); dot >= 0; dot = path.indexOf('.', dot + 1)) names.push(path.slice(0, dot))
  return names
}

function isWithin(path: string, name: string): boolean {
  return path === name || path.startsWith(`${name}.`)
}

function toClaims(entries: readonly { readonly name: string; readonly value: unknown }[]): Claims {
  return Object.fromEntries(entries.map(({ name, value }) => [name, value]))
}

/** Only the ticket opens them, like the session. `key` is the key of the record. */
export function sealClaims(claims: StoredClaims, ticket: string, key: string): Buffer {
  return seal(sealingKey(ticket), encodeJson(claims), aadOf(key))
}

/** If claims are missing or belong to another record, all are unknown: unreadable claims never give a user a role. */
export function openClaims(sealed: Uint8Array, ticket: string, key: string): StoredClaims {
  return decodeJson(storedClaimsSchema, unseal(sealingKey(ticket), sealed, aadOf(key))) ?? NO_CLAIMS
}

/** The `aad` of the claims: no other part of a record can replace them. */
function aadOf(key: string): string {
  return `${key} claims`
}
