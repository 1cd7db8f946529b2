// The plan of a provider: everything that is known about it before it is called. Settings override the configuration, the
// configuration overrides the preset, and the preset overrides the defaults of provider-fields.ts. Then variables are filled in:
//
//   preset github       tokenUrl '{auth_url}/login/oauth/access_token', userInfoUrl '{api_url}/user', scope 'read:user user:email',
//                       variables auth_url 'https://github.com' and api_url 'https://api.github.com', elsewhere '{auth_url}/api/v3'
//   configuration       provider: { preset: 'github', scope: 'read:user' }
//   setting             AUTH_URL=https://ghe.example.com
//   plan                endpoints.token 'https://ghe.example.com/login/oauth/access_token', authorization.scope 'read:user',
//                       endpoints.userInfo 'https://ghe.example.com/api/v3/user'

import { problemAt } from '../config/issue-text.ts'
import {
  type Accepted,
  type CompleteProvider,
  DEFAULTS,
  type EndpointName,
  type PlannedKey,
  type ProviderConfig,
  type Sources,
  type UserField,
} from '../config/provider.ts'
import { FIELD_ROWS, type FieldPath, type FieldSettingName, settingFor } from '../config/provider-fields.ts'
import { Secret } from '../config/secret.ts'
import { revealReference, type SecretReference } from '../config/secret-references.ts'
import type { Settings } from '../config/settings.ts'
import { closestName } from '../config/suggestions.ts'
import { MenshenError, type Problem, refuseIf } from '../errors.ts'
import { callbackPathOf, DEFAULT_SIGN_IN_PATHS } from '../paths.ts'
import { type Phrase, phrase, phrasedProblem, quoted } from '../text/text.ts'
import { readSmallText, SmallFileError } from '../util/small-file.ts'
import { algorithmFor, readClientKey, thumbprintOf } from './client-key.ts'
import { type ClientCertificate, certificateOf, usesMutualTls } from './mutual-tls.ts'
import { dropUndefined, fillIn, mergeConfig, type Preset, type ProviderKind } from './presets/preset.ts'
import { PRESETS } from './presets/presets.ts'

/** The fields of the configuration have their variables filled in. */
export interface ProviderPlan extends Readonly<Pick<CompleteProvider, PlannedKey>> {
  /** Which of several providers it is; part of a user's identity. */
  readonly id: string
  /** The path of our redirect address. */
  readonly callbackPath: string
  readonly preset: string
  readonly kind: ProviderKind
  /** The name shown to users: the operator's name, otherwise the preset's in the language of the reader. */
  readonly label: Phrase | undefined
  /** Settings without which no user can sign in. */
  readonly missing: readonly string[]

  readonly endpoints: Endpoints
  /** The metadata must not lead to plain http, except on this machine. */
  readonly httpsOnly: boolean

  readonly clientId: string
  readonly clientSecret: Secret | undefined
  readonly clientKey: Secret | undefined
  /** How private_key_jwt is signed. */
  readonly assertion: {
    readonly audience: NonNullable<ProviderConfig['clientAssertionAudience']>
    /** Replaces the key's own id. */
    readonly keyId: string | undefined
    /** Absent: the key and the metadata decide. */
    readonly algorithm: string | undefined
    /** The thumbprint of the certificate, for `x5t#S256`. */
    readonly thumbprint: string | undefined
  }

  /** With mutual TLS: the certificate that the client presents to the provider. */
  readonly certificate: ClientCertificate | undefined

  readonly authorization: {
    readonly scope: string
    readonly params: Texts
    readonly names: Texts
    readonly fragment: string
  }
  /** False: tokens are never refreshed. */
  readonly refreshes: boolean
  /** Whether a sign-out revokes the tokens. */
  readonly revoke: NonNullable<ProviderConfig['revoke']>
  /** Where to find the fields of the user: those of the specification, and the operator's additional ones. */
  readonly fields: Readonly<Record<UserField, Sources>> & Readonly<Record<string, Sources>>
  /** The values by which an answer verifies its e-mail address; empty: every address is trusted. */
  readonly emailVerified: Accepted
  readonly require: Accepted
  /** Anyone can have an account there: a public service, or one with several tenants. */
  readonly admitsAnyone: boolean
}

export type Endpoints = { readonly [name in EndpointName]?: string | undefined }

export type UserInfoSource = CompleteProvider['userInfoFrom'][number]
export type Texts = Readonly<Record<string, string>>

/** The settings that fill fields of the provider. */
export type ProviderSettings = Pick<Settings, FieldSettingName>

export const ONLY_PROVIDER = 'default'

/** The only provider, from the setting PROVIDER and the configuration's `provider`. */
export function planProvider(given: ProviderConfig | string | undefined, settings: ProviderSettings): ProviderPlan {
  const config = typeof given === 'object' ? given : {}
  const name = settings.PROVIDER ?? (typeof given === 'string' ? given : config.preset)
  const inConfig = typeof given === 'string' ? 'provider' : 'provider.preset'
  const whole = mergeConfig(config, fromEnvironment(settings))
  const preset = presetNamed(
    name ?? (isOnlyIssuer(whole) ? 'oidc' : 'idaas'),
    settings.PROVIDER === undefined ? { path: inConfig } : { setting: 'PROVIDER' },
  )
  return plan(ONLY_PROVIDER, whole, preset, settings)
}

/** Without an address to send browsers to, an issuer is useful only with OpenID Connect. */
function isOnlyIssuer({ issuer, vars, authorizationUrl }: ProviderConfig): boolean {
  return issuer !== undefined && vars?.auth_url === undefined && authorizationUrl === undefined
}

/** One of the configuration's `providers`. No settings apply to it. */
export function planNamedProvider(id: string, config: ProviderConfig): ProviderPlan {
  const name = config.preset ?? (isOnlyIssuer(config) ? 'oidc' : 'oauth2')
  return plan(id, config, presetNamed(name, { path: `providers.${id}.preset` }), {})
}

/** `where` is the setting or the path that has the name. */
function presetNamed(name: string, where: Pick<Problem, 'setting' | 'path'>): Preset & { readonly preset: string } {
  const preset = Object.hasOwn(PRESETS, name) ? PRESETS[name] : undefined
  if (preset) return { ...preset, preset: name }
  const names = Object.keys(PRESETS)
  const likely = closestName(name, names)
  const values = { name: where.setting ?? where.path ?? '', preset: name.slice(0, 40), known: names }
  throw new MenshenError('bad_settings', [
    phrasedProblem(
      { ...where, example: likely ?? 'oidc' },
      likely === undefined ? phrase('config.preset', values) : phrase('config.preset_likely', { ...values, likely }),
    ),
  ])
}

/** The fields that settings fill. Secrets are left to the plan: a setting contains the secret, a field the path of its file. */
function fromEnvironment(settings: ProviderSettings): ProviderConfig {
  let config: ProviderConfig = {}
  for (const [path, { setting }] of FIELD_ROWS) {
    if (!setting || setting.secret) continue
    const value = settings[setting.name as FieldSettingName]
    const given = value === undefined || !setting.toField ? value : setting.toField(value as never)
    const [key, part] = path.split('.') as [string, string?]
    if (given !== undefined) config = mergeConfig(config, { [key]: part === undefined ? given : { [part]: given } })
  }
  return config
}

/** Where the operator configures a field: by its setting, or by its path in the configuration. */
function fieldName(id: string, path: FieldPath): string {
  return (id === ONLY_PROVIDER && settingFor(path)) || `${configPath(id)}.${path}`
}

export function configPath(id: string): string {
  return id === ONLY_PROVIDER ? 'provider' : `providers.${id}`
}

/** `callback` is CALLBACK_PATH. */
export function callbackFor(id: string, callback: string): string {
  return id === ONLY_PROVIDER ? callback : callbackPathOf(callback, id)
}

type Credentials = Partial<Pick<Settings, 'CLIENT_SECRET' | 'CLIENT_KEY_FILE' | 'CLIENT_CERT_FILE'>>

function plan(id: string, config: ProviderConfig, named: Preset & { preset: string }, env: Credentials): ProviderPlan {
  const vars = varsOf(named, mergeConfig(mergeConfig(DEFAULTS, named), config))
  const { preset, dropped } = withoutPublicService(named, config, vars)
  const given = mergeConfig(mergeConfig(DEFAULTS, preset), config)
  const open = new Set<string>()
  const fill = (text: string | undefined) => text && fillIn(text, vars, open)
  const fillAll = (texts: Texts): Record<string, string> =>
    Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, fillIn(text, vars, open)]))
  // One spelling of each name, so that an operator's header replaces ours.
  const fillHeaders = (texts: Readonly<Record<string, string | SecretReference>>): Record<string, string> =>
    Object.fromEntries(
      Object.entries(texts).map(([name, value]) => [
        name.toLowerCase(),
        typeof value === 'string' ? fillIn(value, vars, open) : revealReference(value),
      ]),
    )

  refuseOwnParams(id, given)
  const clientSecret = env.CLIENT_SECRET ?? secretOf(id, given)
  const clientKey =
    env.CLIENT_KEY_FILE ?? (given.clientKeyFile ? readSecret(id, 'clientKeyFile', given.clientKeyFile) : undefined)
  const clientCert =
    env.CLIENT_CERT_FILE ?? (given.clientCertFile ? readSecret(id, 'clientCertFile', given.clientCertFile) : undefined)
  // An operator who has a key and no secret means to use the key, whatever the preset says.
  const clientAuth = config.clientAuth ?? (clientKey && !clientSecret ? 'private_key_jwt' : preset.clientAuth)
  const endpoints: Endpoints = Object.fromEntries(
    ENDPOINT_KEYS.map(([key, name]) => [name, given[key] ? fill(given[key]) : undefined]),
  )
  return {
    ...(Object.fromEntries(PLANNED_KEYS.map(key => [key, given[key]])) as Pick<CompleteProvider, PlannedKey>),
    id,
    callbackPath: callbackFor(id, DEFAULT_SIGN_IN_PATHS.callback),
    preset: preset.preset,
    kind: preset.kind,
    label: given.name === undefined ? undefined : quoted(given.name, config.name ?? preset.nameZh),
    issuer: fill(given.issuer),
    discoveryUrl: fill(given.discoveryUrl),
    endpoints,
    httpsOnly: false,
    clientId: given.clientId ?? '',
    clientSecret,
    clientKey,
    clientAuth,
    assertion: assertionOf(config, preset, clientKey, clientCert),
    certificate: usesMutualTls({ clientAuth }) ? certificateOf(clientKey, clientCert) : undefined,
    authorization: {
      scope: given.scope.split(/\s+/).filter(Boolean).join(given.scopeSeparator),
      params: fillAll(given.authorizationParams),
      names: given.authorizationNames,
      fragment: given.authorizationFragment,
    },
    tokenRequest: { ...given.tokenRequest, headers: fillHeaders(given.tokenRequest.headers) },
    refreshParams: fillAll(given.refreshParams),
    refreshes: given.refreshUrl !== false,
    revoke: given.revoke ?? (config.revocationUrl ? 'always' : 'never'),
    userInfoRequest: {
      ...given.userInfoRequest,
      params: fillAll(given.userInfoRequest.params),
      headers: fillHeaders(given.userInfoRequest.headers),
    },
    emailStep: emailStepOf(given, { ...vars, user_info_url: endpoints.userInfo }, open),
    fields: fieldsOf(given, path => fillIn(path, vars, new Set())),
    emailVerified: emailVerifiedOf(preset, given, vars),
    require: given.require ?? {},
    admitsAnyone: admitsAnyone(preset, endpoints.authorization ?? fill(given.issuer), vars),
    accessTokenTypes: given.accessTokenTypes.map(type => type.toLowerCase()),
    logout: { ...given.logout, params: fillAll(given.logout.params) },
    missing: [
      ...missingOf(id, { ...given, clientAuth }, endpoints, { clientSecret, clientKey }, preset.kind, open),
      ...(dropped.includes('userInfoUrl') ? [fieldName(id, 'userInfoUrl')] : []),
    ],
  }
}

/** The fields that the plan has under their own names. */
const PLANNED_KEYS = FIELD_ROWS.filter(
  ([, { schema, isConverted, endpoint }]) => schema && !isConverted && endpoint === undefined,
).map(([key]) => key as PlannedKey)

type EndpointKey = `${EndpointName}Url`
/** The fields with addresses of endpoints, and the endpoints' names. */
const ENDPOINT_KEYS = FIELD_ROWS.flatMap(([key, { endpoint }]) =>
  endpoint === undefined ? [] : [[key as EndpointKey, endpoint as EndpointName] as const],
)

/** Addresses that issue codes and tokens. */
const ISSUING_URLS = ['authorizationUrl', 'tokenUrl', 'refreshUrl'] as const
/** Addresses that get codes, tokens or the client secret. */
const RECEIVING_URLS = FIELD_ROWS.filter(([, { receives }]) => receives).map(([key]) => key as EndpointKey)

/**
 * The preset without its addresses at the public service, if the operator's own server issues the codes and tokens, which must
 * not go to the public one. Addresses that a sign-in needs are then missing.
 */
function withoutPublicService<P extends Preset>(preset: P, config: ProviderConfig, vars: Texts) {
  const publicOrigins = Object.values(preset.variables ?? {}).map(variable => urlOrigin(variable.default))
  const isPublic = (text: string | false | undefined) => {
    const origin = text ? urlOrigin(fillIn(text, vars, new Set())) : undefined
    return origin !== undefined && publicOrigins.includes(origin)
  }
  const isOwnServer = ISSUING_URLS.some(key => config[key] && !isPublic(config[key]))
  const dropped = isOwnServer ? RECEIVING_URLS.filter(key => config[key] === undefined && isPublic(preset[key])) : []
  return { preset: { ...preset, ...Object.fromEntries(dropped.map(key => [key, undefined])) }, dropped }
}

function urlOrigin(text: string | undefined): string | undefined {
  return text && URL.canParse(text) ? new URL(text).origin : undefined
}

/** A step whose address is derived from the user info address is left out without one. */
function emailStepOf(
  { emailStep }: ProviderConfig,
  vars: Readonly<Record<string, string | undefined>>,
  open: Set<string>,
): ProviderPlan['emailStep'] {
  if (!emailStep || (vars.user_info_url === undefined && emailStep.url.includes('{user_info_url}'))) return undefined
  return { ...emailStep, url: fillIn(emailStep.url, vars, open) }
}

/** Whether every account of a public service can sign in there. */
function admitsAnyone({ isPublic, variables, openTenants = [] }: Preset, address: string | undefined, vars: Texts) {
  const isDefault = urlOrigin(address) === urlOrigin(variables?.auth_url?.default)
  return isDefault && (isPublic === true || openTenants.includes(vars.tenant ?? ''))
}

/** Parameters that protect a sign-in. `request` and `request_uri` would replace all of them. */
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
  const where = `${configPath(id)}.authorizationParams`
  const ours = new Set(OWN_PARAMS.flatMap(name => [name, authorizationNames[name] ?? name]))
  const problems = Object.entries(authorizationParams).flatMap(([name, value]): Problem[] => {
    const sent = authorizationNames[name] ?? name
    const path = `${where}.${name}`
    if (ours.has(name) || ours.has(sent)) return [phrasedProblem({ path }, phrase('config.own_parameter', { path }))]
    if (sent === 'response_mode' && value !== 'query') {
      const problem = phrase('config.response_mode', { path: `${where}.response_mode`, value })
      return [phrasedProblem({ path, example: 'query' }, problem)]
    }
    return []
  })
  refuseIf(problems)
}

/** Refuses a key that cannot be used, before the first user comes back from the provider. */
function assertionOf(
  config: ProviderConfig,
  preset: ProviderConfig,
  clientKey: Secret | undefined,
  clientCert: Secret | undefined,
): ProviderPlan['assertion'] {
  const key = clientKey && readClientKey(clientKey.reveal())
  const { clientAssertionAlgorithm: configured, clientAssertionAudience, clientKeyId } = config
  const ofPreset = preset.clientAssertionAlgorithm
  if (key && configured) algorithmFor(key, configured, undefined)
  return {
    audience: clientAssertionAudience ?? preset.clientAssertionAudience ?? 'issuer',
    keyId: clientKeyId,
    // The preset's algorithm is meant for RSA.
    algorithm: configured ?? (ofPreset && key?.algorithms.includes(ofPreset) ? ofPreset : undefined),
    thumbprint: key && clientCert && thumbprintOf(clientCert.reveal(), key),
  }
}

/** OpenID Connect has a claim for it (Core 5.1). OAuth 2.0 has none: there an address is trusted unless it is denied. */
function emailVerifiedOf({ kind, openTenants = [] }: Preset, given: ProviderConfig, { tenant = '' }: Texts): Accepted {
  const accepted = given.emailVerified ?? { email_verified: kind === 'oidc' ? [true] : [true, null] }
  if (!openTenants.includes(tenant)) return accepted
  const explicit = Object.entries(accepted).map(([path, values]) => [path, values.filter(value => value !== null)])
  return Object.fromEntries(explicit)
}

function fieldsOf({ fields }: CompleteProvider, fill: (path: string) => string): ProviderPlan['fields'] {
  const filled = Object.entries(dropUndefined(fields)).map(([field, sources]) => [
    field,
    sources.map(source => (typeof source === 'string' ? fill(source) : source.map(fill))),
  ])
  return Object.fromEntries(filled)
}

/** What is missing: settings by their names in the environment, everything else by its path in the configuration. */
function missingOf(
  id: string,
  { clientId, clientAuth, issuer }: ProviderConfig,
  endpoints: Endpoints,
  { clientSecret, clientKey }: Pick<ProviderPlan, 'clientSecret' | 'clientKey'>,
  kind: ProviderKind,
  open: ReadonlySet<string>,
): string[] {
  const where = configPath(id)
  const missing = [...open].map(name =>
    name === 'auth_url' ? fieldName(id, 'vars.auth_url') : `${where}.vars.${name}`,
  )
  if (kind === 'oidc' && !issuer) missing.push(`${where}.issuer`)
  if (kind !== 'oidc') {
    if (!endpoints.authorization) missing.push(`${where}.authorizationUrl`)
    if (!endpoints.token) missing.push(`${where}.tokenUrl`)
  }
  if (!clientId) missing.push(fieldName(id, 'clientId'))
  if (clientAuth === 'private_key_jwt' && !clientKey) missing.push(fieldName(id, 'clientKeyFile'))
  const needsSecret = clientAuth !== 'private_key_jwt' && clientAuth !== 'none' && !usesMutualTls({ clientAuth })
  if (needsSecret && !clientSecret) missing.push(fieldName(id, 'clientSecret'))
  return missing
}

/** The values of variables: the operator's, else the preset's defaults, which can contain variables too. */
function varsOf({ variables = {} }: Preset, given: ProviderConfig): Texts {
  const { clientId = '', scope = '' } = given
  const vars = Object.fromEntries(Object.entries(given.vars ?? {}).map(([name, text]) => [name, withoutSlash(text)]))
  const own: Texts = { ...vars, client_id: clientId, scope }
  const isElsewhere = own.auth_url !== undefined && own.auth_url !== variables.auth_url?.default
  const defaults = Object.entries(variables).flatMap(([name, variable]) => {
    const isPublic = /^https?:/.test(variable.default ?? '')
    const text = isElsewhere && isPublic ? variable.elsewhere : variable.default
    return text === undefined ? [] : [[name, fillIn(text, own, new Set())]]
  })
  return { ...Object.fromEntries(defaults), ...own }
}

/** For an address to which a path is added, such as AUTH_URL. */
function withoutSlash(text: string): string {
  return /^https?:/i.test(text) ? text.replace(/\/+$/, '') : text
}

function secretOf(id: string, { clientSecret, clientSecretFile }: ProviderConfig): Secret | undefined {
  if (typeof clientSecret === 'object') return new Secret(revealReference(clientSecret))
  if (clientSecret) return new Secret(clientSecret)
  if (!clientSecretFile) return undefined
  const secret = readSecret(id, 'clientSecretFile', clientSecretFile)
  if (!/[\r\n]/.test(secret.reveal())) return secret
  const problem = phrase('config.secret_lines', { source: clientSecretFile })
  throw new MenshenError('bad_settings', [problemAt(undefined, `${configPath(id)}.clientSecretFile`, problem)])
}

const MAX_SECRET_BYTES = 64 * 1024

function readSecret(id: string, key: string, file: string): Secret {
  let isMissing = false
  try {
    const text = readSmallText(file, MAX_SECRET_BYTES).trim()
    if (text) return new Secret(text)
  } catch (error) {
    if (!(error instanceof SmallFileError)) throw error
    // Reported below.
    isMissing = error.reason === 'ENOENT'
  }
  const path = `${configPath(id)}.${key}`
  const problem = phrase(isMissing ? 'config.secret_file_missing' : 'config.secret_file', { path, file })
  throw new MenshenError('bad_settings', [phrasedProblem({ path }, problem)])
}

/** The addresses that get tokens, codes or the client secret, as far as the plan has them. Metadata can name others. */
export function receivingAddresses({ kind, endpoints, emailStep, logout, revoke }: ProviderPlan): string[] {
  const { token, refresh, userInfo, introspection, par, revocation } = endpoints
  const signOut = logout.style === 'server' || (kind === 'oidc' && logout.idTokenHint) ? endpoints.logout : undefined
  const revoking = revoke === 'always' ? revocation : undefined
  const all = [token, refresh, userInfo, emailStep?.url, introspection, par, revoking, signOut]
  return [...new Set(all.filter(address => address !== undefined))]
}

/**
 * Whether a session with a refresh token continues after its access token has expired. The specification of `idaas` ends the
 * session with the token.
 */
export function outlivesToken({ preset }: Partial<Pick<ProviderPlan, 'preset'>>): boolean {
  return preset !== 'idaas'
}
