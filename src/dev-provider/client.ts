// The one application that is registered with this provider.

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'

export interface RegisteredClient {
  readonly id: string
  readonly secret: string
  readonly redirectUri: string
}

/** Whether the body carries the client's own credentials. */
export function isAuthenticated(client: RegisteredClient, form: Fields): boolean {
  const sameId = isSameSecret(form.get('client_id') ?? '', client.id)
  const sameSecret = isSameSecret(form.get('client_secret') ?? '', client.secret)
  return sameId && sameSecret
}

// Whether a form was sent by a page of this provider, by a page of another site, or by no page at all (a script).

export function senderOf(request: Request): 'own page' | 'foreign page' | 'script' {
  const site = request.headers.get('sec-fetch-site')
  if (site !== null) return site === 'same-origin' ? 'own page' : 'foreign page'
  const origin = request.headers.get('origin')
  if (origin === null) return 'script'
  return origin === `http://${request.headers.get('host')}` ? 'own page' : 'foreign page'
}

// Creates and compares secrets. A comparison takes the same time wherever the two differ.

export function newSecret(): string {
  return randomBytes(24).toString('base64url')
}

export function isSameSecret(given: string, expected: string): boolean {
  return timingSafeEqual(sha256(given), sha256(expected))
}

/** Whether the PKCE verifier is the one that the S256 challenge was made from. */
export function matchesChallenge(verifier: string, challenge: string): boolean {
  return isSameSecret(sha256(verifier).toString('base64url'), challenge)
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

// Reads request parameters. Each may be sent only once, and an empty one is treated as absent (RFC 6749, section 3).

export type Fields = ReadonlyMap<string, string>

/** Undefined if a parameter is repeated. */
export function readFields(params: URLSearchParams): Fields | undefined {
  const fields = new Map(params)
  if (fields.size !== params.size) return undefined
  for (const [name, value] of fields) if (value === '') fields.delete(name)
  return fields
}

/** Undefined if the body is not a form, repeats a parameter, or is cut short. */
export async function readFormFields(request: Request): Promise<Fields | undefined> {
  const [type = ''] = (request.headers.get('content-type') ?? '').split(';')
  if (type.trim().toLowerCase() !== 'application/x-www-form-urlencoded') return undefined
  const body = await request.text().catch(() => undefined)
  return body === undefined ? undefined : readFields(new URLSearchParams(body))
}
