// Token requests as the provider wants them: oauth4webapi makes the grant and proves who the client is; then the names,
// the place of the parameters and the headers become those of the plan.
import { importPKCS8 } from 'jose'
import * as oauth from 'oauth4webapi'
import { MenshenError } from '../../errors.ts'
import type { Metadata } from '../oidc/metadata.ts'
import type { ProviderPlan, Texts } from '../plan.ts'
import type { BoundedFetch } from './bounded-fetch.ts'
import { algorithmOf } from './client-key.ts'

/** What oauth4webapi sends. */
interface FormRequest {
  readonly method: string
  readonly body: URLSearchParams
  readonly headers: Texts
}

/** How a request is sent where it is not the standard's form. */
interface RequestShape {
  readonly method?: string
  readonly as: 'form' | 'json' | 'query'
  readonly names: Texts
  readonly headers: Texts
}

/** A `fetch` for oauth4webapi that sends what it is given in the provider's own form. */
export function shapedFetch(
  fetch: BoundedFetch,
  shape: RequestShape,
  adjust: (params: URLSearchParams) => void = () => {},
): BoundedFetch {
  return (url, init) => {
    const { body, headers: given, ...request } = init as FormRequest
    adjust(body)
    const method = shape.method ?? request.method
    // As in the authorization address: what is renamed to nothing is left out.
    const params = [...body]
      .map(([name, value]): [string, string] => [shape.names[name] ?? name, value])
      .filter(([name]) => name)
    const headers = { ...given, ...shape.headers }
    if (shape.as === 'form') return fetch(url, { method, headers, body: new URLSearchParams(params) })
    const { 'content-type': _, ...withoutType } = headers
    if (shape.as === 'json')
      return fetch(url, {
        method,
        headers: { ...withoutType, 'content-type': 'application/json' },
        body: JSON.stringify(Object.fromEntries(params)),
      })
    const target = new URL(url)
    for (const [name, value] of params) target.searchParams.set(name, value)
    return fetch(target.href, { method, headers: withoutType })
  }
}

/** For the two grants. `state` is the one that came back with the code. */
export function tokenFetch(fetch: BoundedFetch, { tokenRequest }: ProviderPlan, state?: string): BoundedFetch {
  return shapedFetch(fetch, tokenRequest, params => {
    if (!tokenRequest.redirectUri) params.delete('redirect_uri')
    if (tokenRequest.state && state !== undefined) params.set('state', state)
  })
}

export async function clientAuthentication(
  { clientAuth, clientSecret, clientKey }: ProviderPlan,
  { clientAuths, issuer }: Metadata,
  now: () => number,
): Promise<oauth.ClientAuth> {
  const method = clientAuth ?? preferred(clientAuths)
  if (method === 'none') return oauth.None()
  if (method === 'private_key_jwt' && clientKey) return privateKeyJwt(clientKey.reveal(), issuer, now)
  if (!clientSecret) throw new MenshenError('bad_settings', 'the client has no secret')
  return method === 'post' ? oauth.ClientSecretPost(clientSecret.reveal()) : basic(clientSecret.reveal())
}

/** oauth4webapi encodes dashes and dots as well, which providers that do not decode at all would take for another client. */
function basic(secret: string): oauth.ClientAuth {
  return (_server, { client_id }, _body, headers) => {
    const credentials = `${formEncoded(client_id)}:${formEncoded(secret)}`
    headers.set('authorization', `Basic ${Buffer.from(credentials).toString('base64')}`)
  }
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
