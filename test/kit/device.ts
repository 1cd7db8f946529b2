// A browser that binds its sessions to a key of its device, as Chromium does (Device Bound Session Credentials).

import { type CryptoKey, exportJWK, generateKeyPair, type JWK, type JWTHeaderParameters, SignJWT } from 'jose'
import type { Client, Options, Response } from './client.ts'

export const BOUND_COOKIE = '__Host-menshen_bound'
export const TICKET_COOKIE = '__Host-menshen_session'

export interface Device {
  readonly jwk: JWK
  /** A proof over this challenge. Each has another signature. */
  sign(challenge: string, header?: Partial<JWTHeaderParameters>): Promise<string>
  /** Registers the key, as the answer to a sign-in asks. */
  register(client: Client, signedIn: Response): Promise<Response>
  /** Asks for a new cookie; without a challenge without a proof. */
  refresh(client: Client, id: string, challenge?: string, options?: Options): Promise<Response>
}

export async function createDevice(): Promise<Device> {
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true })
  const jwk = await exportJWK(publicKey)
  const sign: Device['sign'] = (challenge, header) => signProof(privateKey, { jti: challenge }, header)
  return {
    jwk,
    sign,
    async register(client, signedIn) {
      return sendProof(client, await sign(registrationChallenge(signedIn), { jwk }))
    },
    async refresh(client, id, challenge, options) {
      const proof = challenge === undefined ? {} : { 'secure-session-response': await sign(challenge) }
      const headers = { 'sec-secure-session-id': id, ...proof, ...options?.headers }
      return client.post('/_menshen/dbsc/refresh', '', { headers })
    },
  }
}

export function signProof(
  key: CryptoKey | Uint8Array,
  payload: Record<string, unknown>,
  header: Partial<JWTHeaderParameters> = {},
): Promise<string> {
  return new SignJWT(payload).setProtectedHeader({ alg: 'ES256', typ: 'dbsc+jwt', ...header }).sign(key)
}

/** A registration with this proof. */
export function sendProof(client: Client, proof: string, options: Options = {}): Promise<Response> {
  const headers = { 'secure-session-response': proof, ...options.headers }
  return client.post('/_menshen/dbsc/register', '', { headers })
}

/** The challenge that comes with the answer to a sign-in. */
export function registrationChallenge({ headers }: Response): string {
  const value = String(headers['secure-session-registration'])
  const [, challenge] = /^\(ES256\);path="\/_menshen\/dbsc\/register";challenge="([\w-]+)"$/.exec(value) ?? []
  if (challenge === undefined) throw new Error(`the sign-in asks for no registration: ${value}`)
  return challenge
}

/** The challenge for the next proof, and the session that it is of. */
export function nextChallenge({ headers }: Response): { challenge: string; id: string } {
  const value = String(headers['secure-session-challenge'])
  const [, challenge, id] = /^"([\w-]+)";id="([\w-]+)"$/.exec(value) ?? []
  if (challenge === undefined || id === undefined) throw new Error(`there is no challenge: ${value}`)
  return { challenge, id }
}
