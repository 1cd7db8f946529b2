// Requests in which the client proves who it is, as the provider wants them: the names, the place of the parameters and the
// headers are those of the plan.
import { importPKCS8 } from 'jose'
import * as oauth from 'oauth4webapi'
import { MenshenError } from '../../errors.ts'
import type { Metadata } from '../oidc/metadata.ts'
import type { ProviderPlan, Texts } from '../plan.ts'
import type { BoundedFetch } from './bounded-fetch.ts'
import { algorithmFor, readClientKey } from './client-key.ts'
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
  const proof = await proveClient(plan, known, url, now, params)
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

/** Puts the proof into the parameters, or returns it as a header. `url` is where they go. */
async function proveClient(
  plan: ProviderPlan,
  known: Metadata,
  url: string,
  now: () => number,
  params: URLSearchParams,
): Promise<Texts> {
  const { id, clientId, clientSecret, clientKey } = plan
  const method = plan.clientAuth ?? preferred(known.clientAuths)
  if (method === 'private_key_jwt' && clientKey) {
    const sign = await privateKeyJwt(plan, known, url, now)
    await sign({ issuer: known.issuer ?? id }, { client_id: clientId }, params, new Headers())
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

async function privateKeyJwt(
  { clientKey, assertion }: ProviderPlan,
  known: Metadata,
  url: string,
  now: () => number,
): Promise<oauth.ClientAuth> {
  const clientsKey = readClientKey(clientKey?.reveal() ?? '')
  const { key, kid } = clientsKey
  const alg = algorithmFor(clientsKey, assertion.algorithm, known.assertionAlgorithms)
  const pkcs8 = key.export({ type: 'pkcs8', format: 'pem' }).toString()
  return oauth.PrivateKeyJwt(await importPKCS8(pkcs8, alg), {
    [oauth.modifyAssertion](header, payload) {
      const seconds = Math.floor(now() / 1000)
      const named = assertion.keyId ?? kid
      Object.assign(header, {
        alg,
        typ: 'JWT',
        ...(named === undefined ? {} : { kid: named }),
        ...(assertion.thumbprint === undefined ? {} : { 'x5t#S256': assertion.thumbprint }),
      })
      const times = { iat: seconds, nbf: seconds, exp: seconds + 60 }
      Object.assign(payload, { ...times, aud: assertionAudience(assertion.audience, known, url) })
    },
  })
}

/** The issuer alone, as RFC 7523 is about to say, unless the provider wants its token endpoint named. */
function assertionAudience(
  wanted: ProviderPlan['assertion']['audience'],
  { issuer, endpoints }: Metadata,
  url: string,
): string | string[] {
  const { token = url } = endpoints
  if (wanted === 'both' && issuer !== undefined) return [issuer, token]
  return wanted === 'issuer' && issuer !== undefined ? issuer : token
}
