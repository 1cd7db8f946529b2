// oidc-provider, the certified provider of npm, inside the test's own process: with its own pages, its own checks and its
// own memory. It remembers what the gateway asked it.
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createSecureServer, type ServerOptions } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { ClientMetadata, Configuration } from 'oidc-provider'
import { takeRsaPair } from '../rsa-keys.ts'
import { createCallLog } from './call-log.ts'

// It says at every turn, and rightly, that such a configuration is nothing for production.
Object.assign(console, { info: () => {}, warn: () => {} })
const { Provider, errors } = await import('oidc-provider')

export interface LiveOptions {
  /** BASE_URL of the gateway that is its client. */
  readonly gateway: string
  /** A free one unless it has to be known before. */
  readonly port?: number
  /** 127.0.0.1 unless another name leads to it. */
  readonly host?: string
  /** Of its issuer, as `/realms/office`. */
  readonly path?: string
  readonly configuration?: Configuration
  /** It speaks https with these, and asks for a certificate. */
  readonly tls?: ServerOptions
  /** One more client. */
  readonly registered?: ClientMetadata
  /** It exchanges tokens for these audiences (RFC 8693), which it leaves to whoever configures it. */
  readonly audiences?: readonly string[]
}

export type OidcProvider = Awaited<ReturnType<typeof startOidcProvider>>

export const TOKEN_SECONDS = 60
/** The refresh lead is half of a token's life. */
export const DUE_SECONDS = TOKEN_SECONDS / 2 + 1
export const ALICE = { username: 'alice', password: 'any' }
export const BOB = { username: 'bob', password: 'any' }

const PEOPLE: Record<string, object> = {
  alice: {
    name: 'Alice Example',
    preferred_username: 'alice',
    email: 'alice@example.test',
    email_verified: true,
    groups: ['admins', 'staff'],
  },
  bob: { name: 'Bob Example', preferred_username: 'bob', email: 'bob@example.test', email_verified: false, groups: [] },
}

export function newSigningKey(alg: 'RS256' | 'ES256', kid: string = alg) {
  const { privateKey } = alg === 'RS256' ? takeRsaPair() : generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { ...privateKey.export({ format: 'jwk' }), kid, use: 'sig', alg }
}

/** One way of each kind in which a client can prove itself; only whoever encodes the first one's secret gets in. */
export const CLIENTS = {
  basic: { id: 'gw-basic', secret: 'basic secret+/:%&=?', method: 'client_secret_basic' },
  post: { id: 'gw-post', secret: 'post secret+/:%&', method: 'client_secret_post' },
  key: { id: 'gw-key', secret: undefined, method: 'private_key_jwt' },
  /** Gets its user info as a JWT. */
  signed: { id: 'gw-signed', secret: 'signed-secret', method: 'client_secret_basic' },
  none: { id: 'gw-none', secret: undefined, method: 'none' },
} as const

const CLIENT_KEY = takeRsaPair()
export const CLIENT_KEY_PEM = CLIENT_KEY.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
const OWN_KEYS = [newSigningKey('RS256'), newSigningKey('ES256')]

export async function startOidcProvider(options: LiveOptions) {
  const { gateway, port = 0, host = '127.0.0.1', path = '', configuration = {}, tls, registered, audiences } = options
  const calls = createCallLog()
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    calls.note(request)
    // As a framework does that mounts it below a path.
    if (path) Object.assign(request, { originalUrl: request.url, url: request.url?.slice(path.length) })
    return answer(request, response)
  }
  const server = (tls ? createSecureServer(tls, listener) : createServer(listener)).listen(port, '127.0.0.1')
  await once(server, 'listening')
  const issuer = `${tls ? 'https' : 'http'}://${host}:${(server.address() as AddressInfo).port}${path}`
  const { clients = [], features, ...more } = usual(gateway)
  const provider = new Provider(issuer, {
    clients: [...clients, ...(registered ? [{ ...registration(gateway, CLIENTS.none), ...registered }] : [])],
    ...more,
    ...configuration,
    features: { ...features, ...configuration.features } as NonNullable<Configuration['features']>,
  } as Configuration)
  if (audiences) exchangeTokens(provider, audiences)
  const failures: unknown[] = []
  provider.on('server_error', (_, error) => failures.push(error))
  provider.on('backchannel.error', (_, error) => failures.push(error))
  const revoked: string[] = []
  provider.on('access_token.destroyed', () => revoked.push('access token'))
  provider.on('refresh_token.destroyed', () => revoked.push('refresh token'))
  const grants = new Set<string>()
  provider.on('grant.saved', ({ jti }) => grants.add(jti))
  const answer = provider.callback()

  return {
    issuer,
    /** For one more address of it. */
    listener,
    /** What went wrong inside of it, and on its way to the gateway. */
    failures,
    calls,
    /** What it has made worthless. */
    revoked,
    /** Where a user ends the session at the provider itself. */
    signOutPage: `${issuer}/session/end`,
    /** As an administrator would: what users have agreed to counts no more. */
    async withdrawGrants(): Promise<void> {
      for (const id of grants) await (await provider.Grant.find(id))?.destroy()
    },
    async close(): Promise<void> {
      server.close()
      server.closeAllConnections()
    },
  }
}

export const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'

function exchangeTokens(provider: InstanceType<typeof Provider>, audiences: readonly string[]): void {
  const names = ['audience', 'resource', 'scope', 'subject_token', 'subject_token_type', 'requested_token_type']
  provider.registerGrantType(
    TOKEN_EXCHANGE,
    async context => {
      const { client } = context.oidc
      const params: Record<string, unknown> = context.oidc.params ?? {}
      const { audience, scope, subject_token, subject_token_type, requested_token_type } = params
      const subject = await provider.AccessToken.find(String(subject_token))
      if (!subject || !client || subject.clientId !== client.clientId) throw new errors.InvalidGrant('subject_token')
      if (subject_token_type !== ACCESS_TOKEN || requested_token_type !== ACCESS_TOKEN)
        throw new errors.InvalidRequest('token type')
      if (!audiences.includes(String(audience))) throw new errors.InvalidTarget()
      const { accountId, grantId } = subject
      const token = new provider.AccessToken({ accountId, grantId, client, gty: 'token_exchange', scope } as never)
      context.body = {
        access_token: await token.save(),
        issued_token_type: ACCESS_TOKEN,
        token_type: 'Bearer',
        expires_in: token.expiration,
      }
    },
    names,
  )
}

function usual(gateway: string): Configuration {
  return {
    clients: Object.values(CLIENTS).map(client => registration(gateway, client)),
    jwks: { keys: OWN_KEYS },
    cookies: { keys: ['for the tests alone'] },
    enabledJWA: { idTokenSigningAlgValues: ['RS256', 'ES256'] },
    scopes: ['openid', 'offline_access', 'profile', 'email', 'groups'],
    claims: {
      openid: ['sub'],
      profile: ['name', 'preferred_username'],
      email: ['email', 'email_verified'],
      groups: ['groups'],
    },
    features: {
      devInteractions: { enabled: true },
      backchannelLogout: { enabled: true },
      clientCredentials: { enabled: true },
      introspection: { enabled: true },
      jwtUserinfo: { enabled: true },
      revocation: { enabled: true },
      rpInitiatedLogout: { enabled: true },
    },
    pkce: { required: () => true },
    rotateRefreshToken: true,
    // The gateway's clock runs ahead of ours when a test makes a token due.
    clockTolerance: 2 * TOKEN_SECONDS,
    ttl: { AccessToken: TOKEN_SECONDS, IdToken: 3600, RefreshToken: 86_400, Session: 86_400, Grant: 86_400 },
    // It would not send anything to a private address, and a test's gateway has no other.
    fetch: (url, init) => fetch(url, { ...init, ...{ dispatcher: undefined } }),
    renderError: (context, { error, error_description }) => {
      context.body = `${error}: ${error_description}`
    },
    findAccount: (_, id) => {
      const claims = Object.hasOwn(PEOPLE, id) ? PEOPLE[id] : undefined
      return claims && { accountId: id, claims: () => ({ sub: id, ...claims }) }
    },
  }
}

function registration(gateway: string, { id, secret, method }: (typeof CLIENTS)[keyof typeof CLIENTS]): ClientMetadata {
  return {
    client_id: id,
    ...(secret && { client_secret: secret }),
    token_endpoint_auth_method: method,
    ...(method === 'private_key_jwt' && {
      jwks: { keys: [{ ...CLIENT_KEY.publicKey.export({ format: 'jwk' }), use: 'sig' }] },
    }),
    ...(method === 'client_secret_post' && { id_token_signed_response_alg: 'ES256' }),
    ...(id === 'gw-signed' && { userinfo_signed_response_alg: 'RS256' }),
    redirect_uris: [`${gateway}/callback`],
    post_logout_redirect_uris: [`${gateway}/login`],
    backchannel_logout_uri: `${gateway}/_menshen/backchannel-logout`,
    backchannel_logout_session_required: true,
    grant_types: ['authorization_code', 'refresh_token', ...(method === 'none' ? [] : ['client_credentials'])],
    response_types: ['code'],
  }
}
