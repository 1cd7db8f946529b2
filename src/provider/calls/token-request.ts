// Requests in which the client proves who it is, as the provider wants them: the names, the place of the parameters and the
// headers are those of the plan.
import { importPKCS8 } from 'jose'
import * as oauth from 'oauth4webapi'
import { MenshenError } from '../../errors.ts'
import type { Metadata } from '../oidc/metadata.ts'
import type { ProviderPlan, Texts } from '../plan.ts'
import type { BoundedFetch } from './bounded-fetch.ts'
import { algorithmOf } from './client-key.ts'
import type { ProviderConnection } from './provider-connection.ts'
import type { WholeAnswer } from './whole-answer.ts'

/** How a request is sent where it is not the standard's form. */
interface RequestShape {
  readonly method?: string
  readonly as: 'form' | 'json' | 'query'
  readonly names: Texts
  readonly headers: Texts
}

const STANDARD: RequestShape = { as: 'form', names: {}, headers: {} }

export async function askAsClient(
  { plan, now, fetch }: Pick<ProviderConnection, 'plan' | 'now' | 'fetch'>,
  known: Metadata,
  url: string,
  given: Texts,
  shape: RequestShape = STANDARD,
): Promise<WholeAnswer> {
  const params = new URLSearchParams(given)
  const proof = await proveClient(plan, known, now, params)
  return sendShaped(fetch, url, params, { ...shape, headers: { ...proof, ...shape.headers } })
}

function sendShaped(
  fetch: BoundedFetch,
  url: string,
  given: URLSearchParams,
  { method = 'POST', as, names, headers }: RequestShape,
): Promise<WholeAnswer> {
  // As in the authorization address: what is renamed to nothing is left out.
  const params = [...given]
    .map(([name, value]): [string, string] => [names[name] ?? name, value])
    .filter(([name]) => name)
  if (as === 'form') return fetch(url, { method, headers, body: new URLSearchParams(params) })
  if (as === 'json') {
    const body = JSON.stringify(Object.fromEntries(params))
    return fetch(url, { method, headers: { ...headers, 'content-type': 'application/json' }, body })
  }
  const target = new URL(url)
  for (const [name, value] of params) target.searchParams.set(name, value)
  return fetch(target.href, { method, headers })
}

/** For the two grants. `state` is the one that came back with the code. */
export function askForTokens(
  connection: ProviderConnection,
  known: Metadata,
  url: string,
  { redirect_uri, ...grant }: Texts,
  state?: string,
): Promise<WholeAnswer> {
  const { tokenRequest } = connection.plan
  const given = {
    ...grant,
    ...(redirect_uri !== undefined && tokenRequest.redirectUri && { redirect_uri }),
    ...(state !== undefined && tokenRequest.state && { state }),
  }
  return askAsClient(connection, known, url, given, tokenRequest)
}

/** Puts the proof into the parameters, or returns it as a header. */
async function proveClient(
  { id, clientId, clientAuth, clientSecret, clientKey }: ProviderPlan,
  { clientAuths, issuer }: Metadata,
  now: () => number,
  params: URLSearchParams,
): Promise<Texts> {
  const method = clientAuth ?? preferred(clientAuths)
  if (method === 'private_key_jwt' && clientKey) {
    const sign = await privateKeyJwt(clientKey.reveal(), issuer, now)
    await sign({ issuer: issuer ?? id }, { client_id: clientId }, params, new Headers())
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

/** Not a sign more than has to be is encoded: providers that do not decode at all would take it for another client. */
function basic(clientId: string, secret: string): string {
  const credentials = `${formEncoded(clientId)}:${formEncoded(secret)}`
  return `Basic ${Buffer.from(credentials).toString('base64')}`
}

/** RFC 6749, 2.3.1: as a value in a form. */
function formEncoded(text: string): string {
  return new URLSearchParams([['', text]]).toString().slice(1)
}

/** Basic is the standard's default; a provider that lists only post is asked that way. */
function preferred(supported: readonly string[] | undefined): 'basic' | 'post' {
  if (!supported || supported.includes('client_secret_basic')) return 'basic'
  return supported.includes('client_secret_post') ? 'post' : 'basic'
}

async function privateKeyJwt(pem: string, issuer: string | undefined, now: () => number): Promise<oauth.ClientAuth> {
  return oauth.PrivateKeyJwt(await importPKCS8(pem, algorithmOf(pem)), {
    [oauth.modifyAssertion](_header, payload) {
      const seconds = Math.floor(now() / 1000)
      Object.assign(payload, { iat: seconds, nbf: seconds, exp: seconds + 60, ...(issuer ? { aud: issuer } : {}) })
    },
  })
}
