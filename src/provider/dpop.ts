// DPoP (RFC 9449): tokens that are bound to a key. Each session has its own key, and every request with its tokens carries a
// proof: a JWT for this one request, signed with that key. A server can ask for a nonce in the proofs.

import { createPrivateKey, generateKeyPairSync, hash, type KeyObject, randomUUID } from 'node:crypto'
import { SignJWT } from 'jose'
import { getPath } from '../util/json-path.ts'
import { readAnswer, type WholeAnswer } from './fetch.ts'
import type { ProviderPlan } from './plan.ts'

export const PROOF_ALGORITHM = 'ES256'

/** A session's private key as it is stored: the `x`, `y` and `d` of its JWK, separated by dots. */
export type DpopKey = string

/** Token requests and user info have separate nonces, even at one address: they are two servers (RFC 9449, 8 and 9). */
type ServerRole = 'authorization' | 'resource'

export interface Dpop {
  /** Whether new tokens are bound: because of the setting, or because the provider has demanded it. */
  isOn(): boolean
  /** Whether a demand of the provider may be met. */
  mayBegin(): boolean
  /** From now on, the tokens of new sessions are bound. */
  begin(): void
  /** The provider has given a token that is not bound. */
  end(): void
  nonceOf(role: ServerRole, url: string): string | undefined
  /** Keeps the nonce of an answer, and returns it. */
  noteNonce(role: ServerRole, url: string, answer: WholeAnswer): string | undefined
}

/** More servers than any provider has. */
const MAX_SERVERS = 20

/** What one process knows about DPoP at one provider. Other processes learn it from their own first call. */
export function createDpop({ dpop }: Pick<ProviderPlan, 'dpop'>): Dpop {
  let isDemanded = false
  const nonces = new Map<string, string>()
  const serverOf = (role: ServerRole, url: string) => `${role} ${new URL(url).origin}`
  return {
    isOn: () => dpop === 'on' || isDemanded,
    mayBegin: () => dpop !== 'off',
    begin() {
      isDemanded = dpop === 'auto'
    },
    end() {
      isDemanded = false
    },
    nonceOf: (role, url) => nonces.get(serverOf(role, url)),
    noteNonce(role, url, answer) {
      const nonce = nonceIn(answer)
      if (nonce === undefined) return undefined
      const server = serverOf(role, url)
      if (nonces.has(server) || nonces.size < MAX_SERVERS) nonces.set(server, nonce)
      return nonce
    },
  }
}

/** The characters of a nonce (RFC 9449, 8.1). A value with any other character is ignored. */
const NONCE = /^[\x21\x23-\x5b\x5d-\x7e]{1,1024}$/

function nonceIn({ headers }: WholeAnswer): string | undefined {
  const given = headers.get('dpop-nonce') ?? ''
  return NONCE.test(given) ? given : undefined
}

export function newDpopKey(): DpopKey {
  const { x, y, d } = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' })
  return [x, y, d].join('.')
}

interface ProofOptions {
  readonly method: string
  readonly url: string
  readonly now: number
  readonly nonce?: string | undefined
  /** The access token that the request carries; absent for a token request. */
  readonly accessToken?: string | undefined
}

export async function dpopProof(key: DpopKey, { method, url, now, nonce, accessToken }: ProofOptions): Promise<string> {
  const { jwk, privateKey } = openKey(key)
  const { origin, pathname } = new URL(url)
  return new SignJWT({
    jti: randomUUID(),
    htm: method,
    // Without query and fragment (RFC 9449, 4.2).
    htu: origin + pathname,
    iat: Math.floor(now / 1000),
    ...(nonce !== undefined && { nonce }),
    ...(accessToken !== undefined && { ath: hash('sha256', accessToken, 'base64url') }),
  })
    .setProtectedHeader({ alg: PROOF_ALGORITHM, typ: 'dpop+jwt', jwk })
    .sign(privateKey)
}

function openKey(key: DpopKey): { jwk: Record<'kty' | 'crv' | 'x' | 'y', string>; privateKey: KeyObject } {
  const [x = '', y = '', d = ''] = key.split('.')
  const jwk = { kty: 'EC', crv: 'P-256', x, y }
  return { jwk, privateKey: createPrivateKey({ key: { ...jwk, d }, format: 'jwk' }) }
}

/** Sends the request with these additional headers. */
type SendWith = (headers: Record<string, string>) => Promise<WholeAnswer>

interface ProvenRequest {
  readonly method: string
  readonly url: string
  readonly now: () => number
}

// Token requests.

const NONCE_REQUIRED = 'use_dpop_nonce'
const PROOF_ERRORS: readonly unknown[] = [NONCE_REQUIRED, 'invalid_dpop_proof']

/**
 * A token request with a proof signed by `key`, or without a proof if there is no key. If the provider then demands a proof, the
 * request is repeated with a new key, if the setting allows it. If the server asks for another nonce, it is repeated once. The
 * returned key is the one that the last request used.
 */
export async function requestTokensWithProof(
  dpop: Dpop,
  request: ProvenRequest,
  given: DpopKey | undefined,
  send: SendWith,
): Promise<{ answer: WholeAnswer; key: DpopKey | undefined }> {
  const { url } = request
  const prove = async (key: DpopKey, nonce: string | undefined) => ({
    dpop: await dpopProof(key, { ...request, now: request.now(), nonce }),
  })
  const sendNoted = async (headers: Record<string, string>) => {
    const answer = await send(headers)
    return { answer, nonce: dpop.noteNonce('authorization', url, answer) }
  }
  let key = given
  let last = await sendNoted(key === undefined ? {} : await prove(key, dpop.nonceOf('authorization', url)))
  if (key === undefined) {
    if (!dpop.mayBegin() || !PROOF_ERRORS.includes(await errorOf(last.answer))) return { answer: last.answer, key }
    dpop.begin()
    key = newDpopKey()
    last = await sendNoted(await prove(key, last.nonce ?? dpop.nonceOf('authorization', url)))
  }
  // Uses the nonce of this response: another request may have received a different one since.
  if (last.nonce !== undefined && (await errorOf(last.answer)) === NONCE_REQUIRED)
    last = await sendNoted(await prove(key, last.nonce))
  return { answer: last.answer, key }
}

async function errorOf(answer: WholeAnswer): Promise<unknown> {
  return answer.status === 200 ? undefined : getPath((await readAnswer(answer)).body, 'error')
}

// Requests with a bound access token.

/** A request with an access token that is bound to `dpopKey`. It is repeated once if the server asks for another nonce. */
export async function requestWithBoundToken(
  dpop: Dpop,
  request: ProvenRequest,
  { accessToken, dpopKey }: { readonly accessToken: string; readonly dpopKey: DpopKey },
  send: SendWith,
): Promise<WholeAnswer> {
  const { url } = request
  const sendWithProof = async (nonce: string | undefined) => {
    const proof = await dpopProof(dpopKey, { ...request, now: request.now(), nonce, accessToken })
    const answer = await send({ authorization: `DPoP ${accessToken}`, dpop: proof })
    return { answer, nonce: dpop.noteNonce('resource', url, answer) }
  }
  const first = await sendWithProof(dpop.nonceOf('resource', url))
  const isWanted = first.answer.status === 401 && /\berror="?use_dpop_nonce\b/.test(challengeIn(first.answer))
  if (!isWanted || first.nonce === undefined) return first.answer
  return (await sendWithProof(first.nonce)).answer
}

function challengeIn({ headers }: WholeAnswer): string {
  return headers.get('www-authenticate') ?? ''
}
