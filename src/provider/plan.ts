// What is known of a provider from the preset, the configuration and the environment together.

import { readFileSync } from 'node:fs'
import type {
  Accepted,
  AssertionAudience,
  ClientAuth,
  Field,
  ProviderConfig,
  Sources,
} from '../config/provider-config.ts'
import { Secret } from '../config/secret.ts'
import type { Settings } from '../config/settings.ts'
import { likelyMeantOf } from '../config/suggestions.ts'
import { MenshenError, type ProblemDraft, refuseIf, type SettingName, sentence, setting } from '../errors.ts'
import { callbackPathOf, OWN_PATHS } from '../paths.ts'
import { algorithmFor, readClientKey, thumbprintOf } from './client-key.ts'
import { dropUndefined, fillIn, mergeConfig, type Preset, type ProviderKind } from './presets/preset.ts'
import { PRESETS } from './presets/presets.ts'

/** What of the environment speaks of the provider. */
export type ProviderSettings = Pick<
  Settings,
  | 'AUTH_URL'
  | 'CLIENT_ID'
  | 'CLIENT_SECRET'
  | 'CLIENT_KEY_FILE'
  | 'CLIENT_AUTH'
  | 'CLIENT_KEY_ID'
  | 'CLIENT_CERT_FILE'
  | 'CLIENT_ASSERTION_AUDIENCE'
  | 'CLIENT_ASSERTION_ALGORITHM'
  | 'SCOPE'
  | 'PROVIDER'
  | 'PROVIDER_NAME'
  | 'PROVIDER_VARS'
  | 'ISSUER'
  | 'ISSUER_REQUIRED'
  | 'JWKS_URL'
  | 'STATE_CHECK'
  | 'PKCE'
  | 'LOGOUT_STYLE'
  | 'LOGOUT_URL'
  | 'REVOKE'
>

export const ONLY_PROVIDER = 'default'

/** The one provider of the setting PROVIDER and the configuration's `provider`. */
export function planProvider(given: ProviderConfig | string | undefined, settings: ProviderSettings): ProviderPlan {
  const config = typeof given === 'object' ? given : {}
  const name = settings.PROVIDER ?? (typeof given === 'string' ? given : config.preset)
  const inConfig = typeof given === 'string' ? 'provider' : 'provider.preset'
  const preset = presetNamed(name ?? 'idaas', settings.PROVIDER === undefined ? inConfig : setting('PROVIDER'))
  return plan(ONLY_PROVIDER, mergeConfig(config, fromEnvironment(settings)), preset, settings)
}

/** One of the configuration's `providers`: the environment says nothing of them. */
export function planNamedProvider(id: string, config: ProviderConfig): ProviderPlan {
  return plan(id, config, presetNamed(config.preset ?? 'oauth2', `providers.${id}.preset`), {})
}

/** `where` the name stands. */
function presetNamed(name: string, where: string | SettingName): Preset & { readonly preset: string } {
  const preset = Object.hasOwn(PRESETS, name) ? PRESETS[name] : undefined
  if (preset) return { ...preset, preset: name }
  const names = Object.keys(PRESETS)
  const likely = likelyMeantOf(name, names)
  const expected = `expected one of ${names.join(', ')}.`
  const remedy = likely === undefined ? expected : `did you mean ${likely}? Otherwise ${expected}`
  const source = typeof where === 'string' ? { path: where } : { setting: where.setting }
  throw new MenshenError('bad_settings', [
    { ...source, message: sentence`${where} is "${name.slice(0, 40)}"; ${remedy}`, example: likely ?? 'oidc' },
  ])
}

function fromEnvironment(settings: ProviderSettings): ProviderConfig {
  return dropUndefined({
    name: settings.PROVIDER_NAME,
    vars: settings.PROVIDER_VARS,
    issuer: settings.ISSUER,
    sendsIssuer: settings.ISSUER_REQUIRED || undefined,
    jwksUrl: settings.JWKS_URL,
    clientId: settings.CLIENT_ID,
    clientAuth: settings.CLIENT_AUTH,
    clientKeyId: settings.CLIENT_KEY_ID,
    clientAssertionAudience: settings.CLIENT_ASSERTION_AUDIENCE,
    clientAssertionAlgorithm: settings.CLIENT_ASSERTION_ALGORITHM,
    scope: settings.SCOPE,
    stateCheck: settings.STATE_CHECK,
    pkce: settings.PKCE === undefined ? undefined : settings.PKCE === 'S256',
    logoutUrl: settings.LOGOUT_URL?.startsWith('/') ? `{auth_url}${settings.LOGOUT_URL}` : settings.LOGOUT_URL,
    revoke: settings.REVOKE,
    logout: settings.LOGOUT_STYLE && { style: settings.LOGOUT_STYLE },
  })
}

interface Credentials {
  readonly AUTH_URL?: string | undefined
  readonly CLIENT_SECRET?: Secret | undefined
  readonly CLIENT_KEY_FILE?: Secret | undefined
  readonly CLIENT_CERT_FILE?: Secret | undefined
}

function plan(id: string, config: ProviderConfig, preset: Preset & { preset: string }, env: Credentials): ProviderPlan {
  const given = mergeConfig(preset, config)
  const open = new Set<string>()
  const vars = varsOf(preset, given, env.AUTH_URL)
  const fill = (text: string | undefined) => text && fillIn(text, vars, open)
  const fillAll = (texts: Texts = {}): Texts =>
    Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, fillIn(text, vars, open)]))
  // One spelling of a name, so that a header of the operator takes the place of ours.
  const fillHeaders = (texts: Texts = {}): Texts =>
    fillAll(Object.fromEntries(Object.entries(texts).map(([name, text]) => [name.toLowerCase(), text])))

  refuseOwnParams(id, given)
  const clientSecret = env.CLIENT_SECRET ?? secretOf(id, given)
  const clientKey = env.CLIENT_KEY_FILE ?? (given.clientKeyFile ? readSecret(id, given.clientKeyFile) : undefined)
  const clientCert = env.CLIENT_CERT_FILE ?? (given.clientCertFile ? readSecret(id, given.clientCertFile) : undefined)
  // Whoever has nothing but a key means to use it, whatever the preset's usual way is.
  const clientAuth = config.clientAuth ?? (clientKey && !clientSecret ? 'private_key_jwt' : preset.clientAuth)
  const endpoints: Endpoints = {
    authorization: fill(given.authorizationUrl),
    token: fill(given.tokenUrl),
    refresh: given.refreshUrl ? fill(given.refreshUrl) : undefined,
    userInfo: fill(given.userInfoUrl),
    jwks: fill(given.jwksUrl),
    logout: fill(given.logoutUrl),
    revocation: fill(given.revocationUrl),
    introspection: fill(given.introspectionUrl),
  }
  const { tokenRequest = {}, tokenAnswer = {}, revocationRequest = {}, logout = {} } = given
  const { userInfoRequest = {}, userInfoAnswer = {}, scopeSeparator: separator = ' ' } = given
  return {
    id,
    callbackPath: id === ONLY_PROVIDER ? OWN_PATHS.callback : callbackPathOf(id),
    preset: preset.preset,
    kind: preset.kind,
    name: given.name,
    issuer: fill(given.issuer),
    discoveryUrl: fill(given.discoveryUrl),
    alsoIssuers: given.alsoIssuers ?? [],
    accessTokenIssuers: given.accessTokenIssuers ?? [],
    sendsIssuer: given.sendsIssuer ?? false,
    endpoints,
    httpsOnly: false,
    clientId: given.clientId ?? '',
    clientSecret,
    clientKey,
    clientAuth,
    assertion: assertionOf(config, preset, clientKey, clientCert),
    authorization: {
      scope: (given.scope ?? '').split(/\s+/).filter(Boolean).join(separator),
      params: fillAll(given.authorizationParams),
      names: given.authorizationNames ?? {},
      fragment: given.authorizationFragment ?? '',
    },
    state: given.state ?? 'suffixed',
    stateCheck: given.stateCheck ?? 'bound',
    pkce: given.pkce ?? false,
    codeNames: given.codeNames ?? ['code'],
    tokenRequest: {
      as: tokenRequest.as ?? 'form',
      names: tokenRequest.names ?? {},
      headers: fillHeaders(tokenRequest.headers),
      redirectUri: tokenRequest.redirectUri ?? true,
      state: tokenRequest.state ?? false,
    },
    tokenAnswer: {
      at: tokenAnswer.at,
      success: tokenAnswer.success ?? {},
      names: tokenAnswer.names ?? {},
      lifetimeSeconds: tokenAnswer.lifetimeSeconds,
      tokenType: tokenAnswer.tokenType ?? 'optional',
    },
    refreshParams: fillAll(given.refreshParams),
    refreshEnds: given.refreshEnds ?? [],
    refreshLead: given.refreshLead ?? 'half',
    refreshes: given.refreshUrl !== false,
    revoke: given.revoke ?? (config.revocationUrl ? 'always' : 'never'),
    revocationRequest: {
      method: revocationRequest.method ?? 'POST',
      as: revocationRequest.as ?? 'form',
      names: revocationRequest.names ?? {},
      token: revocationRequest.token ?? 'refresh_token',
    },
    userInfoRequest: {
      method: userInfoRequest.method ?? 'GET',
      token: userInfoRequest.token ?? 'bearer',
      params: fillAll(userInfoRequest.params),
      headers: fillHeaders(userInfoRequest.headers),
    },
    userInfoAnswer: { at: userInfoAnswer.at, success: userInfoAnswer.success ?? {} },
    userInfoFrom: given.userInfoFrom ?? ['userinfo', 'id_token', 'token'],
    emailStep: given.emailStep && { ...given.emailStep, url: fillIn(given.emailStep.url, vars, open) },
    fields: fieldsOf(given, place => fillIn(place, vars, new Set())),
    emailVerified: emailVerifiedOf(preset, given, vars),
    fieldTypes: given.fieldTypes ?? 'any',
    require: given.require ?? {},
    accessTokenTypes: (given.accessTokenTypes ?? []).map(type => type.toLowerCase()),
    logout: {
      style: logout.style,
      returnParam: logout.returnParam ?? 'post_logout_redirect_uri',
      params: fillAll(logout.params),
      idTokenHint: logout.idTokenHint ?? false,
    },
    missing: missingOf(
      id,
      { ...given, clientAuth },
      endpoints,
      { issuer: given.issuer, clientSecret, clientKey },
      preset.kind,
      open,
    ),
  }
}

/** What protects a sign-in is ours to say; `request` and `request_uri` would take the place of all of it. */
const OWN_PARAMS = [
  'state',
  'nonce',
  'redirect_uri',
  'response_type',
  'code_challenge',
  'code_challenge_method',
  'request',
  'request_uri',
]

function refuseOwnParams(id: string, { authorizationParams = {}, authorizationNames = {} }: ProviderConfig): void {
  const where = `${id === ONLY_PROVIDER ? 'provider' : `providers.${id}`}.authorizationParams`
  const ours = new Set(OWN_PARAMS.flatMap(name => [name, authorizationNames[name] ?? name]))
  const problems = Object.entries(authorizationParams).flatMap(([name, value]): ProblemDraft[] => {
    const sent = authorizationNames[name] ?? name
    const path = `${where}.${name}`
    if (ours.has(name) || ours.has(sent))
      return [{ path, message: `${path} is not for you to set: Menshen sends it itself; expected other parameters.` }]
    if (sent === 'response_mode' && value !== 'query') {
      const message = `${where}.response_mode is "${value}"; expected "query", which is the default.`
      return [{ path, message, example: 'query' }]
    }
    return []
  })
  refuseIf(problems)
}

/** A key that cannot be used is refused here, and not when the first user comes back from the provider. */
function assertionOf(
  config: ProviderConfig,
  preset: ProviderConfig,
  clientKey: Secret | undefined,
  clientCert: Secret | undefined,
): ProviderPlan['assertion'] {
  const key = clientKey && readClientKey(clientKey.reveal())
  const { clientAssertionAlgorithm: wanted, clientAssertionAudience, clientKeyId } = config
  const usual = preset.clientAssertionAlgorithm
  if (key && wanted) algorithmFor(key, wanted, undefined)
  return {
    audience: clientAssertionAudience ?? preset.clientAssertionAudience ?? 'issuer',
    keyId: clientKeyId,
    // The preset's is meant for RSA.
    algorithm: wanted ?? (usual && key?.algorithms.includes(usual) ? usual : undefined),
    thumbprint: key && clientCert && thumbprintOf(clientCert.reveal(), key),
  }
}

/** OpenID Connect has a claim for it (Core 5.1). OAuth 2.0 has none: there an address counts unless it is denied. */
function emailVerifiedOf({ kind, openTenants = [] }: Preset, given: ProviderConfig, { tenant = '' }: Texts): Accepted {
  const accepted = given.emailVerified ?? { email_verified: kind === 'oidc' ? [true] : [true, null] }
  if (!openTenants.includes(tenant)) return accepted
  const said = Object.entries(accepted).map(([place, values]) => [place, values.filter(value => value !== null)])
  return Object.fromEntries(said)
}

function fieldsOf({ fields = {} }: ProviderConfig, fill: (place: string) => string): ProviderPlan['fields'] {
  const none: Sources = []
  const filled = Object.entries(dropUndefined(fields)).map(([field, sources]) => [
    field,
    sources.map(source => (typeof source === 'string' ? fill(source) : source.map(fill))),
  ])
  return {
    sub: none,
    username: none,
    nickname: none,
    email: none,
    phone_number: none,
    ou_id: none,
    ou_name: none,
    groups: none,
    ...Object.fromEntries(filled),
  }
}

/** As the environment calls them where it can say them, else as the configuration does. */
function missingOf(
  id: string,
  { clientId, clientAuth }: ProviderConfig,
  endpoints: Endpoints,
  have: { issuer: string | undefined; clientSecret: Secret | undefined; clientKey: Secret | undefined },
  kind: ProviderKind,
  open: ReadonlySet<string>,
): string[] {
  const named = (environment: string, key: string) => (id === ONLY_PROVIDER ? environment : `providers.${id}.${key}`)
  const where = id === ONLY_PROVIDER ? 'provider' : `providers.${id}`
  const missing: string[] = []
  for (const name of open)
    missing.push(name === 'auth_url' ? named('AUTH_URL', 'vars.auth_url') : `${where}.vars.${name}`)
  if (kind === 'oidc' && !have.issuer) missing.push(`${where}.issuer`)
  if (kind !== 'oidc') {
    if (!endpoints.authorization) missing.push(`${where}.authorizationUrl`)
    if (!endpoints.token) missing.push(`${where}.tokenUrl`)
  }
  if (!clientId) missing.push(named('CLIENT_ID', 'clientId'))
  if (clientAuth === 'private_key_jwt' && !have.clientKey) missing.push(named('CLIENT_KEY_FILE', 'clientKeyFile'))
  if (clientAuth !== 'private_key_jwt' && clientAuth !== 'none' && !have.clientSecret)
    missing.push(named('CLIENT_SECRET', 'clientSecret'))
  return missing
}

/** What fills the holes: the operator's words, else the preset's defaults, which can have holes of their own. */
function varsOf({ variables = {} }: Preset, given: ProviderConfig, authUrl: string | undefined): Texts {
  const { clientId = '', scope = '' } = given
  const vars = Object.fromEntries(Object.entries(given.vars ?? {}).map(([name, text]) => [name, withoutSlash(text)]))
  const said: Texts = { ...vars, ...(authUrl && { auth_url: authUrl }), client_id: clientId, scope }
  const isElsewhere = said.auth_url !== undefined && said.auth_url !== variables.auth_url?.default
  const defaults = Object.entries(variables).flatMap(([name, variable]) => {
    const isPublic = /^https?:/.test(variable.default ?? '')
    const text = isElsewhere && isPublic ? variable.elsewhere : variable.default
    return text === undefined ? [] : [[name, fillIn(text, said, new Set())]]
  })
  return { ...Object.fromEntries(defaults), ...said }
}

/** An address to which a path is added, as AUTH_URL is. */
function withoutSlash(text: string): string {
  return /^https?:/i.test(text) ? text.replace(/\/+$/, '') : text
}

function secretOf(id: string, { clientSecret, clientSecretFile }: ProviderConfig): Secret | undefined {
  if (clientSecret) return new Secret(clientSecret)
  return clientSecretFile ? readSecret(id, clientSecretFile) : undefined
}

function readSecret(id: string, file: string): Secret {
  try {
    const text = readFileSync(file, 'utf8').trim()
    if (text) return new Secret(text)
  } catch {
    // Said below.
  }
  throw new MenshenError('bad_settings', `The provider ${id} names ${file}, which cannot be read or is empty.`)
}

// Everything that is known about one provider before it is called.

export interface ProviderPlan {
  /** Which of several it is; part of who a user is. */
  readonly id: string
  /** Where it sends the browser back: the path of our redirect address. */
  readonly callbackPath: string
  readonly preset: string
  readonly kind: ProviderKind
  readonly name: string | undefined
  /** Settings without which nobody can sign in. */
  readonly missing: readonly string[]

  readonly issuer: string | undefined
  /** Where the metadata is; absent: below the issuer. */
  readonly discoveryUrl: string | undefined
  readonly alsoIssuers: readonly string[]
  readonly accessTokenIssuers: readonly string[]
  readonly sendsIssuer: boolean
  readonly endpoints: Endpoints
  /** Nothing in its metadata may lead to plain http, but on this machine. */
  readonly httpsOnly: boolean

  readonly clientId: string
  readonly clientSecret: Secret | undefined
  readonly clientKey: Secret | undefined
  /** Absent: what the metadata says. */
  readonly clientAuth: ClientAuth | undefined
  /** What the proof of private_key_jwt looks like. */
  readonly assertion: {
    readonly audience: AssertionAudience
    /** Before the key's own. */
    readonly keyId: string | undefined
    /** Absent: by the key and the metadata. */
    readonly algorithm: string | undefined
    /** Of the certificate, for `x5t#S256`. */
    readonly thumbprint: string | undefined
  }

  readonly authorization: {
    readonly scope: string
    readonly params: Texts
    readonly names: Texts
    readonly fragment: string
  }
  readonly state: 'suffixed' | 'plain'
  readonly stateCheck: 'suffix' | 'bound'
  readonly pkce: boolean
  readonly codeNames: readonly string[]

  readonly tokenRequest: {
    readonly as: 'form' | 'json' | 'query'
    readonly names: Texts
    readonly headers: Texts
    readonly redirectUri: boolean
    readonly state: boolean
  }
  readonly tokenAnswer: AnswerPlan & {
    readonly names: Texts
    readonly lifetimeSeconds: number | undefined
    readonly tokenType: 'required' | 'optional'
  }
  readonly refreshParams: Texts
  readonly refreshEnds: readonly string[]
  readonly refreshLead: 'fixed' | 'half'
  /** False: tokens are never refreshed. */
  readonly refreshes: boolean

  /** Whether a sign-out revokes the tokens. */
  readonly revoke: 'always' | 'never'
  readonly revocationRequest: {
    readonly method: 'POST' | 'DELETE'
    readonly as: 'form' | 'query'
    readonly names: Texts
    readonly token: 'refresh_token' | 'access_token'
  }

  readonly userInfoRequest: {
    readonly method: 'GET' | 'POST'
    readonly token: 'bearer' | { readonly header: string } | { readonly query: string }
    readonly params: Texts
    readonly headers: Texts
  }
  readonly userInfoAnswer: AnswerPlan
  readonly userInfoFrom: readonly UserInfoSource[]
  readonly emailStep: ProviderConfig['emailStep']
  /** Ours, and what else the operator wants to know. */
  readonly fields: Readonly<Record<Field, Sources>> & Readonly<Record<string, Sources>>
  /** What an answer has to say for its e-mail address to count; nothing: every address does. */
  readonly emailVerified: Accepted
  readonly fieldTypes: 'text' | 'any'
  readonly require: Accepted

  /** What the type of an access token may be besides the standard's. */
  readonly accessTokenTypes: readonly string[]

  readonly logout: {
    /** Absent: through the browser where the metadata has an address for it, else not at all. */
    readonly style: 'server' | 'browser' | 'none' | undefined
    readonly returnParam: string
    readonly params: Texts
    readonly idTokenHint: boolean
  }
}

export interface AnswerPlan {
  /** Where the answer proper is; absent: at the top. */
  readonly at: string | undefined
  readonly success: Accepted
}

export interface Endpoints {
  readonly authorization?: string | undefined
  readonly token?: string | undefined
  readonly refresh?: string | undefined
  readonly userInfo?: string | undefined
  readonly jwks?: string | undefined
  readonly logout?: string | undefined
  readonly revocation?: string | undefined
  readonly introspection?: string | undefined
}

export type UserInfoSource = 'userinfo' | 'id_token' | 'token' | 'access_token'
export type Texts = Readonly<Record<string, string>>
