// Keys of the OpenID provider of the tests, and tokens that are signed with them, rightly or not.
import { createHash, createHmac, createPublicKey } from 'node:crypto'
import { CompactSign, type CryptoKey, exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from 'jose'
import { takeRs256Pair } from '../rsa-keys.ts'

export interface SigningKey {
  readonly kid: string
  readonly alg: string
  readonly privateKey: CryptoKey
  readonly jwk: JWK
}

export async function newSigningKey(kid: string, alg = 'RS256'): Promise<SigningKey> {
  const { publicKey, privateKey } = alg === 'RS256' ? takeRs256Pair() : await generateKeyPair(alg)
  return { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } }
}

/** `undefined` in the header or the claims leaves it out. */
export function signWith(key: SigningKey, claims: JWTPayload, header: Record<string, unknown> = {}): Promise<string> {
  const { alg = key.alg, ...more } = withoutUndefined({ alg: key.alg, kid: key.kid, ...header })
  return new SignJWT(withoutUndefined(claims)).setProtectedHeader({ ...more, alg: String(alg) }).sign(key.privateKey)
}

/** Whatever the text is. */
export function signText({ alg, kid, privateKey }: SigningKey, payload: string): Promise<string> {
  return new CompactSign(Buffer.from(payload)).setProtectedHeader({ alg, kid }).sign(privateKey)
}

export function unsigned(claims: JWTPayload, header: object = { alg: 'none' }): string {
  return `${encoded(header)}.${encoded(withoutUndefined(claims))}.`
}

/** Signed with a secret: the client's, or the public key taken for one. */
export function signedWithSecret(claims: JWTPayload, secret: string, kid: string): string {
  const content = `${encoded({ alg: 'HS256', kid })}.${encoded(withoutUndefined(claims))}`
  return `${content}.${createHmac('sha256', secret).update(content).digest('base64url')}`
}

export function publicPem({ jwk }: SigningKey): string {
  return createPublicKey({ key: jwk, format: 'jwk' }).export({ type: 'spki', format: 'pem' }).toString()
}

export function leftHalf(accessToken: string): string {
  return createHash('sha256').update(accessToken).digest().subarray(0, 16).toString('base64url')
}

/** The same token with its signature spoilt. */
export function spoilt(token: string): string {
  const [head, claims, signature = ''] = token.split('.')
  const other = signature.startsWith('A') ? 'B' : 'A'
  return `${head}.${claims}.${other}${signature.slice(1)}`
}

const encoded = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')

function withoutUndefined(given: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
}
