// What menshen.config.ts can say about an identity provider. A preset is data in this very shape.
import { z } from 'zod'

export const CLIENT_AUTHS = ['post', 'basic', 'private_key_jwt', 'none'] as const
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

/** Where something is in an answer: names with dots between them, through lists into each of their elements. */
const place = z.string().min(1)
const texts = z.record(z.string(), z.string())
const address = z
  .string()
  .regex(/^(https?:\/\/|\{)/, 'expected an http or https address, for example "https://idp.example.com/token"')

/** For each place the values that it may have; `null` stands for nothing there. Without a place, everything would fit. */
export const accepted = z
  .record(place, z.array(z.union([z.string(), z.number(), z.boolean(), z.null()])).min(1))
  .refine(places => Object.keys(places).length > 0, 'expected at least one place with its values')

/** The first place that has something; several in one pair of brackets are joined by a dash. */
const sources = z.array(z.union([place, z.array(place).min(2)]))

export const FIELDS = ['sub', 'username', 'nickname', 'email', 'phone_number', 'ou_id', 'ou_name', 'groups'] as const
export type Field = (typeof FIELDS)[number]

/** Claims of the assertion that say something else. */
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

export const providerObject = z.strictObject({
  preset: z.string().optional(),
  /** On the button. */
  name: z.string().min(1).max(60).optional(),
  /** What the preset's addresses leave open: a realm, a tenant, a team. */
  vars: texts.optional(),

  issuer: address.optional(),
  /** Where the metadata is, if it is not below the issuer. */
  discoveryUrl: address.optional(),
  /** Other names that the provider uses for itself in its tokens. */
  alsoIssuers: z.array(z.string()).optional(),
  /** Other names that it uses for itself in access tokens alone; `{tenantid}` is the tenant of the issuer. */
  accessTokenIssuers: z.array(z.string()).optional(),
  /** Whether `iss` comes with every callback (RFC 9207), where no metadata says so. */
  sendsIssuer: z.boolean().optional(),
  authorizationUrl: address.optional(),
  tokenUrl: address.optional(),
  userInfoUrl: address.optional(),
  jwksUrl: address.optional(),
  logoutUrl: address.optional(),
  revocationUrl: address.optional(),
  introspectionUrl: address.optional(),

  clientId: z.string().min(1).optional(),
  clientSecret: z.string().min(1).optional(),
  clientSecretFile: z.string().min(1).optional(),
  /** For private_key_jwt: PEM or JWK. */
  clientKeyFile: z.string().min(1).optional(),
  /** By which name the provider knows that key (`kid`), where the key does not say it. */
  clientKeyId: z.string().min(1).optional(),
  /** The certificate of that key, for providers that tell keys apart by it (`x5t#S256`). */
  clientCertFile: z.string().min(1).optional(),
  /** `aud` of private_key_jwt. */
  clientAssertionAudience: z.enum(ASSERTION_AUDIENCES).optional(),
  clientAssertionAlgorithm: z.enum(ASSERTION_ALGORITHMS).optional(),
  clientAuth: z.enum(CLIENT_AUTHS).optional(),
  scope: z.string().optional(),
  scopeSeparator: z.string().min(1).optional(),

  authorizationParams: texts.optional(),
  authorizationNames: texts.optional(),
  /** Behind the authorization address: `#wechat_redirect`. */
  authorizationFragment: z.string().optional(),
  /** `suffixed` ends in `_idp`; `plain` is letters and digits alone, for providers that take nothing else. */
  state: z.enum(['suffixed', 'plain']).optional(),
  stateCheck: z.enum(['suffix', 'bound']).optional(),
  pkce: z.boolean().optional(),
  /** Under which names the code may come back. */
  codeNames: z.array(z.string()).min(1).optional(),

  tokenRequest: z
    .strictObject({
      as: z.enum(['form', 'json', 'query']).optional(),
      names: texts.optional(),
      headers: texts.optional(),
      redirectUri: z.boolean().optional(),
      state: z.boolean().optional(),
    })
    .optional(),
  tokenAnswer: z
    .strictObject({
      at: place.optional(),
      success: accepted.optional(),
      names: texts.optional(),
      lifetimeSeconds: z.int().min(60).optional(),
      /** Whether an answer without `token_type` will do. */
      tokenType: z.enum(['required', 'optional']).optional(),
    })
    .optional(),
  refreshUrl: z.union([address, z.literal(false)]).optional(),
  /** Extras of a refresh; `$redirect_uri` is our own callback address. */
  refreshParams: texts.optional(),
  /** Errors by which this provider says that a code or a refresh token is dead, besides the usual ones. */
  refreshEnds: z.array(z.string()).optional(),
  /**
   * Whether a sign-out revokes the tokens, where the provider takes that. At some it ends the grant of the user on every device,
   * so it is `never` where nothing is said, unless `revocationUrl` is the operator's own.
   */
  revoke: z.enum(REVOKE_CHOICES).optional(),
  /** Where the revocation at sign-out is not the standard's (RFC 7009). */
  revocationRequest: z
    .strictObject({
      method: z.enum(['POST', 'DELETE']).optional(),
      as: z.enum(['form', 'query']).optional(),
      names: texts.optional(),
      /** Which one dies; without a refresh token it is the access token. */
      token: z.enum(['refresh_token', 'access_token']).optional(),
    })
    .optional(),
  /** The five minutes of specification 7.1, or at most half of a token's life. */
  refreshLead: z.enum(['fixed', 'half']).optional(),

  userInfoRequest: z
    .strictObject({
      method: z.enum(['GET', 'POST']).optional(),
      token: z
        .union([z.literal('bearer'), z.strictObject({ header: z.string() }), z.strictObject({ query: z.string() })])
        .optional(),
      params: texts.optional(),
      headers: texts.optional(),
    })
    .optional(),
  userInfoAnswer: z.strictObject({ at: place.optional(), success: accepted.optional() }).optional(),
  userInfoFrom: z
    .array(z.enum(['userinfo', 'id_token', 'token', 'access_token']))
    .min(1)
    .optional(),
  /** One more call with the same token: of the list that it answers, the first element that fits gives the e-mail address. */
  emailStep: z.strictObject({ url: address, where: accepted, take: place }).optional(),
  fields: fields.optional(),
  /** What an answer has to say for its e-mail address to count; without it, the address is neither username nor e-mail. */
  emailVerified: accepted.optional(),
  /** `text`: a field of another type is an error, not turned into text. */
  fieldTypes: z.enum(['text', 'any']).optional(),
  require: accepted.optional(),
  /** What `typ` may be in an access token that a machine brings, besides `at+jwt` (RFC 9068). */
  accessTokenTypes: z.array(z.string()).optional(),

  logout: z
    .strictObject({
      style: z.enum(LOGOUT_STYLES).optional(),
      returnParam: z.string().min(1).optional(),
      params: texts.optional(),
      idTokenHint: z.boolean().optional(),
    })
    .optional(),
})

type FieldShape = { [F in Field]: z.ZodOptional<typeof sources> }

/** `F` are the fields of the user info that it maps. */
export type ProviderConfig<F extends string = string> = Omit<z.infer<typeof providerObject>, 'fields'> & {
  readonly fields?: { readonly [K in F]?: Sources | undefined } | undefined
}
export type Accepted = z.infer<typeof accepted>
export type Sources = z.infer<typeof sources>
export type AssertionAudience = (typeof ASSERTION_AUDIENCES)[number]
export type ClientAuth = (typeof CLIENT_AUTHS)[number]
