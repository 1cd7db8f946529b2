// The configuration of an identity provider: what menshen.config.ts can say, what a preset is made of, and what the plan of a
// provider has once presets and defaults are applied. All types come from one schema.

import { z } from 'zod'

export const CLIENT_AUTHS = [
  'post',
  'basic',
  'private_key_jwt',
  'tls_client_auth',
  'self_signed_tls_client_auth',
  'none',
] as const
/** Whether a capability of the provider is used: `auto` if the provider demands it. */
export const DEMAND_CHOICES = ['auto', 'on', 'off'] as const
/** Presets of providers inside whose app users are signed in already. */
export const APP_PRESETS = ['wecom', 'feishu', 'lark', 'dingtalk'] as const
export const ASSERTION_AUDIENCES = ['issuer', 'token_endpoint', 'both'] as const
export const ASSERTION_ALGORITHMS = [
  'RS256',
  'PS256',
  'ES256',
  'EdDSA',
  'Ed25519',
  'RS384',
  'PS384',
  'ES384',
  'RS512',
  'PS512',
  'ES512',
] as const
/** Whether tokens are revoked at sign-out. */
export const REVOKE_CHOICES = ['always', 'never'] as const
export const LOGOUT_STYLES = ['server', 'browser', 'none'] as const

/** A path in an answer: names with dots between them; a list means each of its elements. */
const place = z.string().min(1)
const texts = z.record(z.string(), z.string())
const address = z
  .string()
  .regex(/^(https?:\/\/|\{)/, 'expected an http or https address, for example "https://idp.example.com/token"')

/** For each path the values that are accepted; `null` is for an absent one. Without a path, everything would fit. */
export const accepted = z
  .record(place, z.array(z.union([z.string(), z.number(), z.boolean(), z.null()])).min(1))
  .refine(places => Object.keys(places).length > 0, 'expected at least one place with its values')

/** The first path that has a value; several in one pair of brackets are joined by a dash. */
const sources = z.array(z.union([place, z.array(place).min(2)]))

export const FIELDS = ['sub', 'username', 'nickname', 'email', 'phone_number', 'ou_id', 'ou_name', 'groups'] as const
export type Field = (typeof FIELDS)[number]

/** Claims of the assertion that have another meaning. */
const TAKEN_NAMES = ['role', 'provider', 'iss', 'aud', 'exp', 'nbf', 'iat', 'jti']

/** Those of specification 5.4, and others that the operator maps. */
const fields = z
  .object(Object.fromEntries(FIELDS.map(field => [field, sources.optional()])) as FieldShape)
  .catchall(sources)
  .superRefine((given, context) => {
    for (const field of Object.keys(given)) {
      const refuse = (message: string) => context.addIssue({ code: 'custom', path: [field], message })
      if (!/^[a-z]\w{0,39}$/i.test(field))
        refuse('expected a field of letters, digits and _, for example "employee_no"')
      if (TAKEN_NAMES.includes(field)) refuse('this name means something else; choose another')
    }
  })

const tokenRequest = z.strictObject({
  as: z.enum(['form', 'json', 'query']),
  names: texts,
  headers: texts,
  redirectUri: z.boolean(),
  state: z.boolean(),
})

const tokenAnswer = z.strictObject({
  /** Where the answer proper is; absent: at the top. */
  at: place.optional(),
  success: accepted,
  names: texts,
  lifetimeSeconds: z.int().min(60).optional(),
  /** Whether an answer without `token_type` is accepted. */
  tokenType: z.enum(['required', 'optional']),
})

/** A revocation that is not that of RFC 7009. */
const revocationRequest = z.strictObject({
  method: z.enum(['POST', 'DELETE']),
  as: z.enum(['form', 'query']),
  names: texts,
  /** Which one is revoked; without a refresh token it is the access token. */
  token: z.enum(['refresh_token', 'access_token']),
})

const userInfoRequest = z.strictObject({
  method: z.enum(['GET', 'POST']),
  token: z.union([z.literal('bearer'), z.strictObject({ header: z.string() }), z.strictObject({ query: z.string() })]),
  params: texts,
  headers: texts,
})

const userInfoAnswer = z.strictObject({ at: place.optional(), success: accepted })

const logout = z.strictObject({
  /** Absent: through the browser where the metadata has an address for it, else not at all. */
  style: z.enum(LOGOUT_STYLES).optional(),
  returnParam: z.string().min(1),
  params: texts,
  idTokenHint: z.boolean(),
})

/** A configuration with all defaults. What is optional here has none: absent is a value. */
const completeProvider = z.strictObject({
  preset: z.string().optional(),
  /** On the button. */
  name: z.string().min(1).max(60).optional(),
  /** Values of the variables in the preset's addresses: a realm, a tenant, a team. */
  vars: texts.optional(),

  issuer: address.optional(),
  /** Where the metadata is, if it is not below the issuer. */
  discoveryUrl: address.optional(),
  /** Other issuers that the provider names in its tokens. */
  alsoIssuers: z.array(z.string()),
  /** Other issuers in access tokens alone; `{tenantid}` is the tenant of the issuer. */
  accessTokenIssuers: z.array(z.string()),
  /** Whether `iss` comes with every callback (RFC 9207), where no metadata says so. */
  sendsIssuer: z.boolean(),
  authorizationUrl: address.optional(),
  tokenUrl: address.optional(),
  userInfoUrl: address.optional(),
  jwksUrl: address.optional(),
  logoutUrl: address.optional(),
  revocationUrl: address.optional(),
  introspectionUrl: address.optional(),
  /** Where authorization requests are pushed to, if the metadata does not say. */
  parUrl: address.optional(),

  clientId: z.string().min(1).optional(),
  clientSecret: z.string().min(1).optional(),
  clientSecretFile: z.string().min(1).optional(),
  /** For private_key_jwt and mutual TLS: PEM or JWK. */
  clientKeyFile: z.string().min(1).optional(),
  /** The name of that key at the provider (`kid`), where the key has none. */
  clientKeyId: z.string().min(1).optional(),
  /** The certificate of that key, in PEM: for mutual TLS, and for providers that identify keys by it (`x5t#S256`). */
  clientCertFile: z.string().min(1).optional(),
  /** `aud` of private_key_jwt. */
  clientAssertionAudience: z.enum(ASSERTION_AUDIENCES).optional(),
  clientAssertionAlgorithm: z.enum(ASSERTION_ALGORITHMS).optional(),
  /** Absent: what the metadata says. */
  clientAuth: z.enum(CLIENT_AUTHS).optional(),
  scope: z.string(),
  scopeSeparator: z.string().min(1),

  authorizationParams: texts,
  authorizationNames: texts,
  /** Added to the authorization address: `#wechat_redirect`. */
  authorizationFragment: z.string(),
  /** `suffixed` ends in `_idp`; `plain` is letters and digits alone, for providers that accept nothing else. */
  state: z.enum(['suffixed', 'plain']),
  stateCheck: z.enum(['suffix', 'bound']),
  pkce: z.boolean(),
  /** Pushed authorization requests (RFC 9126). */
  par: z.enum(DEMAND_CHOICES),
  /** Tokens that are bound to a key of the session (RFC 9449). */
  dpop: z.enum(DEMAND_CHOICES),
  /** The parameters in which the code may come back. */
  codeNames: z.array(z.string()).min(1),

  tokenRequest,
  tokenAnswer,
  refreshUrl: z.union([address, z.literal(false)]).optional(),
  /** Extras of a refresh; `$redirect_uri` is our own callback address. */
  refreshParams: texts,
  /** Errors by which this provider says that a code or a refresh token is dead, besides the usual ones. */
  refreshEnds: z.array(z.string()),
  /**
   * Whether a sign-out revokes the tokens, where the provider supports it. At some it ends the grant of the user on every device,
   * so it is `never` by default, unless `revocationUrl` is the operator's own.
   */
  revoke: z.enum(REVOKE_CHOICES).optional(),
  revocationRequest,
  /** The five minutes of specification 7.1, or at most half of a token's life. */
  refreshLead: z.enum(['fixed', 'half']),

  userInfoRequest,
  userInfoAnswer,
  userInfoFrom: z.array(z.enum(['userinfo', 'id_token', 'token', 'access_token'])).min(1),
  /** One more call with the same token: of the list in its answer, the first element that fits gives the e-mail address. */
  emailStep: z.strictObject({ url: address, where: accepted, take: place }).optional(),
  fields,
  /** What an answer has to say for its e-mail address to count; without it, the address is neither username nor e-mail. */
  emailVerified: accepted.optional(),
  /** `text`: a field of another type is an error, not turned into text. */
  fieldTypes: z.enum(['text', 'any']),
  require: accepted.optional(),
  /** What `typ` may be in an access token that a machine brings, besides `at+jwt` (RFC 9068). */
  accessTokenTypes: z.array(z.string()),

  logout,
})

/** What an operator or a preset says: any part of it. */
export const providerObject = completeProvider
  .extend({
    tokenRequest: tokenRequest.partial(),
    tokenAnswer: tokenAnswer.partial(),
    revocationRequest: revocationRequest.partial(),
    userInfoRequest: userInfoRequest.partial(),
    userInfoAnswer: userInfoAnswer.partial(),
    logout: logout.partial(),
  })
  .partial()

type FieldShape = { [F in Field]: z.ZodOptional<typeof sources> }

/** `F` are the fields of the user info that it maps. */
export type ProviderConfig<F extends string = string> = Omit<z.infer<typeof providerObject>, 'fields'> & {
  readonly fields?: { readonly [K in F]?: Sources | undefined } | undefined
}
export type CompleteProvider = z.infer<typeof completeProvider>
export type Accepted = z.infer<typeof accepted>
export type Sources = z.infer<typeof sources>
