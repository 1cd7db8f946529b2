// Requests in which the client authenticates. The plan sets the method, the names, the headers and where the parameters go.

import { randomUUID } from 'node:crypto'
import { SignJWT } from 'jose'
import { MenshenError } from '../errors.ts'
import { algorithmFor, readClientKey } from './client-key.ts'
import type { ProviderConnection } from './connection.ts'
import type { Metadata } from './discovery.ts'
import type { BoundedFetch, WholeAnswer } from './fetch.ts'
import { assertTls, usesMutualTls } from './mutual-tls.ts'
import type { ProviderPlan, Texts } from './plan.ts'

/** How a request is sent if it differs from the standard form. */
interface RequestShape {
  readonly method?: string
  readonly as: 'form' | 'json' | 'query'
  readonly names: Texts
  readonly headers: Texts
}

const STANDARD: RequestShape = { as: 'form', names: {}, headers: {} }

export async function requestAsClient(
  { plan, now, fetch }: Pick<ProviderConnection, 'plan' | 'now' | 'fetch'>,
  known: Metadata,
  url: string,
  given: Texts,
  shape: RequestShape = STANDARD,
): Promise<WholeAnswer> {
  const params = new URLSearchParams(given)
  const credentials = await authenticateClient(plan, known, url, now, params)
  return sendShaped(fetch, url, params, { ...shape, headers: { ...credentials, ...shape.headers } })
}

function sendShaped(
  fetch: BoundedFetch,
  url: string,
  given: URLSearchParams,
  { method = 'POST', as, names, headers }: RequestShape,
): Promise<WholeAnswer> {
  const params = renamed(given, names)
  if (as === 'form') return fetch(url, { method, headers, body: params })
  if (as === 'json') {
    const body = JSON.stringify(Object.fromEntries(params))
    return fetch(url, { method, headers: { ...headers, 'content-type': 'application/json' }, body })
  }
  const target = new URL(url)
  for (const [name, value] of params) target.searchParams.set(name, value)
  return fetch(target.href, { method, headers })
}

/** As in the authorization address, a parameter that is renamed to an empty name is left out. */
function renamed(given: URLSearchParams, names: Texts): URLSearchParams {
  if (Object.keys(names).length === 0) return given
  const params = [...given].map(([name, value]): [string, string] => [names[name] ?? name, value])
  return new URLSearchParams(params.filter(([name]) => name))
}

/** Adds the client's credentials to the parameters, or returns them as a header. `url` is where they are sent. */
async function authenticateClient(
  plan: ProviderPlan,
  known: Metadata,
  url: string,
  now: () => number,
  params: URLSearchParams,
): Promise<Texts> {
  const { clientId, clientSecret, clientKey } = plan
  const method = plan.clientAuth ?? preferredClientAuth(known.clientAuths)
  if (method === 'private_key_jwt' && clientKey) {
    params.set('client_id', clientId)
    params.set('client_assertion_type', 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer')
    params.set('client_assertion', await clientAssertion(plan, known, url, now()))
    return {}
  }
  if (usesMutualTls({ clientAuth: method })) {
    assertTls(url)
    params.set('client_id', clientId)
    return {}
  }
  if (method === 'none') {
    params.set('client_id', clientId)
    return {}
  }
  if (!clientSecret) throw new MenshenError('bad_settings', 'the client has no secret')
  if (method !== 'post') return { authorization: basic(clientId, clientSecret.reveal()) }
  params.set('client_id', clientId)
  params.set('client_secret', clientSecret.reveal())
  return {}
}

/** Encodes no more than necessary, because providers that do not decode would see another client. */
function basic(clientId: string, secret: string): string {
  const credentials = `${formEncoded(clientId)}:${formEncoded(secret)}`
  return `Basic ${Buffer.from(credentials).toString('base64')}`
}

/** Encodes a value as in a form (RFC 6749, 2.3.1). */
function formEncoded(text: string): string {
  return new URLSearchParams([['', text]]).toString().slice(1)
}

/** Basic is the standard's default; post is used if the provider lists it and does not list basic. */
export function preferredClientAuth(supported: readonly string[] | undefined): 'basic' | 'post' {
  if (!supported || supported.includes('client_secret_basic')) return 'basic'
  return supported.includes('client_secret_post') ? 'post' : 'basic'
}

/** The JWT with which a client authenticates (`private_key_jwt`, RFC 7523). */
async function clientAssertion(
  { clientId, clientKey, assertion }: ProviderPlan,
  known: Metadata,
  url: string,
  now: number,
): Promise<string> {
  const signer = readClientKey(clientKey?.reveal() ?? '')
  const alg = algorithmFor(signer, assertion.algorithm, known.assertionAlgorithms)
  const kid = assertion.keyId ?? signer.kid
  const seconds = Math.floor(now / 1000)
  return new SignJWT({
    iss: clientId,
    sub: clientId,
    aud: assertionAudience(assertion.audience, known, url),
    jti: randomUUID(),
    iat: seconds,
    nbf: seconds,
    exp: seconds + 60,
  })
    .setProtectedHeader({
      alg,
      typ: 'JWT',
      ...(kid === undefined ? {} : { kid }),
      ...(assertion.thumbprint === undefined ? {} : { 'x5t#S256': assertion.thumbprint }),
    })
    .sign(signer.key)
}

/** Only the issuer, as the revised RFC 7523 is about to require, unless the provider wants its token endpoint named. */
function assertionAudience(
  wanted: ProviderPlan['assertion']['audience'],
  { issuer, endpoints }: Metadata,
  url: string,
): string | string[] {
  const { token = url } = endpoints
  if (wanted === 'both' && issuer !== undefined) return [issuer, token]
  return wanted === 'issuer' && issuer !== undefined ? issuer : token
}
