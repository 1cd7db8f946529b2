// The shape of an identity provider: one row per field. The schema of `provider` and `providers` in the configuration, the settings
// that fill a field, the defaults and the type of the plan all come from these rows.
//
// A row in use, `par`:
//   schema    what menshen.config.ts and a preset can write: `par: 'on'`
//   setting   PAR=on does the same for a single provider; with `providers` the error about PAR names `providers.<id>.par`
//   default   `plan.par` is 'auto' where neither the preset nor the operator sets it

import { z } from 'zod'
import { type Phrase, phrase } from '../text/text.ts'
import { issueText } from './issue-text.ts'
import type { Row } from './kinds.ts'
import * as kind from './kinds.ts'
import type { Secret } from './secret.ts'
import { secretReference } from './secret-references.ts'

interface FieldOptions<V> {
  /** Applies where neither the preset nor the operator has a value. Without it, absent is a value. */
  readonly default?: DeepReadonly<V>
  /** The setting that fills it for a single provider. It applies after a reload. */
  readonly setting?: FieldSetting<V>
  /** The field is the address of this endpoint, which has this name in `endpoints` of the plan. */
  readonly endpoint?: string
  /** This endpoint gets codes, tokens or the client secret. */
  readonly receives?: true
  /** The plan has the field only in a converted form. */
  readonly isConverted?: true
}

type FieldSetting<V> = Omit<Row<unknown>, 'check' | 'type' | 'reloads'> & {
  readonly name: string
  readonly type: 'string' | 'number' | 'boolean'
} & (
    | { readonly check: z.ZodType<V | Secret, string>; readonly toField?: never }
    /** Converts the setting to the value of the field, if they differ. */
    | { readonly check: z.ZodType<unknown, string>; readonly toField: (value: never) => V | undefined }
  )

type DeepReadonly<T> = T extends readonly (infer E)[]
  ? readonly DeepReadonly<E>[]
  : T extends object
    ? { readonly [K in keyof T]: DeepReadonly<T[K]> }
    : T

function field<S extends z.ZodType, const O extends FieldOptions<z.infer<S>>>(schema: S, options: O) {
  return { schema, ...options }
}

/** A field of several parts. The configuration may set any of them; the others come from the preset or the default. */
function group<S extends z.ZodRawShape, const O extends FieldOptions<z.infer<z.ZodObject<S>>>>(
  complete: z.ZodObject<S, z.core.$strict>,
  options: O,
) {
  return { schema: complete.partial(), complete, ...options }
}

/** A group for a request, whose headers can be secrets. */
function request<S extends z.ZodRawShape, const O extends FieldOptions<z.infer<z.ZodObject<S>>>>(
  complete: z.ZodObject<S, z.core.$strict>,
  options: O,
) {
  return {
    schema: complete.partial().extend({ headers: secretTexts.optional().describe('Extra headers.') }),
    complete,
    ...options,
  }
}

/** A part of another field that has its own setting. */
function part<const O extends { readonly setting: FieldSetting<string> }>(options: O) {
  return options
}

// The choices.

export const CLIENT_AUTHS = [
  'post',
  'basic',
  'private_key_jwt',
  'tls_client_auth',
  'self_signed_tls_client_auth',
  'none',
] as const
/** Whether a capability of the provider is used: `auto` if the provider demands it. */
const DEMAND_CHOICES = ['auto', 'on', 'off'] as const
/** Presets of providers in whose app users are already signed in. */
export const APP_PRESETS = ['wecom', 'feishu', 'lark', 'dingtalk'] as const
const ASSERTION_AUDIENCES = ['issuer', 'token_endpoint', 'both'] as const
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
const STATE_CHECKS = ['suffix', 'bound'] as const
/** Whether tokens are revoked at sign-out. */
const REVOKE_CHOICES = ['always', 'never'] as const
const LOGOUT_STYLES = ['server', 'browser', 'none'] as const

// The types of values.

const text = z.string().min(1)
/** `${NAME}` would be taken as the secret itself. */
const secretText = text.refine(
  given => !/^\$\{\w+\}$/.test(given),
  // biome-ignore lint/suspicious/noTemplateCurlyInString: what operators of other products write
  issueText(phrase('config.data_reference_dollar', { given: '${NAME}', expected: '{ env: NAME }' })),
)
const texts = z.record(z.string(), z.string())
/** Headers, of which some can be secrets. */
const secretTexts = z.record(z.string(), z.union([z.string(), secretReference]))
/** A path in an answer: names with dots between them; a list means each of its elements. */
const path = z.string().min(1)
const address = z.string().regex(/^(https?:\/\/|\{)/, issueText(phrase('config.provider_address')))

/** The accepted values, keyed by path; `null` accepts an absent value. Without a path, everything would fit. */
export const accepted = z
  .record(path, z.array(z.union([z.string(), z.number(), z.boolean(), z.null()])).min(1))
  .refine(paths => Object.keys(paths).length > 0, issueText(phrase('config.at_least_one_path')))
  .meta({ minProperties: 1 })

/** The parts of a response whose useful content is not at the top, or which reports errors with status 200. */
const answer = {
  at: path.optional().describe('The path of the actual response; absent if it is at the top.'),
  success: accepted.describe(
    'What a successful response has: accepted values, keyed by path. `null` accepts an absent value.',
  ),
}

/** The first path that has a value; several in one pair of brackets are joined by a dash. */
export const sources = z.array(z.union([path, z.array(path).min(2)]))

/** The user's fields of specification 5.4, and `groups`. */
export const USER_FIELDS = [
  'sub',
  'username',
  'nickname',
  'email',
  'phone_number',
  'ou_id',
  'ou_name',
  'groups',
] as const

/** Claims of the assertion that already have a meaning. */
const RESERVED_CLAIMS = ['role', 'provider', 'iss', 'aud', 'exp', 'nbf', 'iat', 'jti']

/** The fields of the user: those above, and others that the operator maps. */
const userFields = z
  .object(
    Object.fromEntries(
      USER_FIELDS.map(name => [name, sources.optional().describe(`The paths of \`${name}\`, in order.`)]),
    ) as {
      [F in (typeof USER_FIELDS)[number]]: z.ZodOptional<typeof sources>
    },
  )
  .catchall(sources)
  .superRefine((given, context) => {
    for (const name of Object.keys(given)) {
      const refuse = (given: Phrase) => context.addIssue({ code: 'custom', path: [name], message: issueText(given) })
      if (!/^[a-z]\w{0,39}$/i.test(name)) refuse(phrase('config.field_name'))
      if (RESERVED_CLAIMS.includes(name)) refuse(phrase('config.field_taken'))
    }
  })

// The fields. A setting appears in docs/settings.md in the order of the rows.

export const SIGN_IN_FIELDS = {
  preset: field(z.string(), {
    isConverted: true,
    setting: {
      name: 'PROVIDER',
      ...kind.text('the name of a preset', 'oidc', 40),
      defaultNote: '`idaas`',
      description:
        'The identity provider: `idaas` is the one of the specification, `oidc` is any provider with discovery at `AUTH_URL`, `oauth2` makes no assumptions. [Many more](providers.md) have their own preset.',
      descriptionZh:
        '使用哪个身份认证平台：`idaas` 是规范中的平台；`oidc` 适用于 `AUTH_URL` 支持自动发现的平台；`oauth2` 不做任何假设；[更多平台](providers.md)有各自的名称。',
    },
  }),
  /** The name on the button. */
  name: field(text.max(60), {
    setting: {
      name: 'PROVIDER_NAME',
      ...kind.text('a name of at most 60 characters', '企业账号', 60),
      defaultNote: 'the preset’s, in the language of the page',
      description: 'The name on the button: `使用 <name> 登录`, `Continue with <name>`.',
      descriptionZh: '登录按钮上的名称：`使用 <name> 登录`、`Continue with <name>`。',
    },
  }),
  /** Values of the variables in the preset's addresses: a realm, a tenant, a team. */
  vars: field(texts, {
    isConverted: true,
    setting: {
      name: 'PROVIDER_VARS',
      ...kind.assignments,
      description: 'Values for the variables in the preset’s addresses, such as a realm or a tenant.',
      descriptionZh: '预设地址中需要填写的部分，例如 realm 或租户。',
    },
  }),
  'vars.auth_url': part({
    setting: {
      name: 'AUTH_URL',
      ...kind.address,
      description: 'The address of the identity provider, to which its paths are added.',
      descriptionZh: '身份认证平台的地址，其后接各个路径。',
    },
  }),

  clientId: field(text, {
    isConverted: true,
    setting: {
      name: 'CLIENT_ID',
      ...kind.text('the identifier that the provider gave to this application', 'my-application'),
      description: 'The OAuth client identifier.',
      descriptionZh: 'OAuth 客户端标识。',
    },
  }),
  clientSecret: field(z.union([secretText, secretReference]), {
    isConverted: true,
    setting: {
      name: 'CLIENT_SECRET',
      ...kind.secret,
      description: 'The OAuth client secret. It leaves the server only in requests to the provider.',
      descriptionZh: 'OAuth 客户端密钥，只会随请求发送给身份认证平台。',
    },
  }),
  clientSecretFile: field(text, {
    isConverted: true,
    setting: {
      name: 'CLIENT_SECRET_FILE',
      ...kind.secretLineFile,
      description: 'Reads the client secret from a file instead.',
      descriptionZh: '从文件读取客户端密钥。',
    },
  }),
  /** If absent, the metadata decides. */
  clientAuth: field(z.enum(CLIENT_AUTHS), {
    setting: {
      name: 'CLIENT_AUTH',
      ...kind.oneOf(CLIENT_AUTHS, 'basic'),
      defaultNote: 'the preset’s',
      description:
        'How the client authenticates to the provider: with its secret, a signature, or its certificate ([mutual TLS](providers.md#fapi-20)).',
      descriptionZh: '客户端向身份认证平台证明自己的方式：密钥、签名或证书（[双向 TLS](providers.md#fapi-20)）。',
    },
  }),
  /** For private_key_jwt and mutual TLS: PEM or JWK. */
  clientKeyFile: field(text, {
    isConverted: true,
    setting: {
      name: 'CLIENT_KEY_FILE',
      ...kind.secretFile,
      example: '/run/secrets/client_key.pem',
      description:
        'The private key for `private_key_jwt` or for the mutual TLS certificate: PEM or JWK, not encrypted. It can replace the client secret.',
      descriptionZh:
        '`private_key_jwt` 或双向 TLS 证书使用的私钥，PEM 或 JWK 格式，不能加密。没有客户端密钥时，只用此私钥证明身份。',
    },
  }),
  /** The name of that key at the provider (`kid`), where the key has none. */
  clientKeyId: field(text, {
    isConverted: true,
    setting: {
      name: 'CLIENT_KEY_ID',
      ...kind.text('the name of a key', 'key-2026', 200),
      defaultNote: 'the key’s own, if it is a JWK',
      description: 'The `kid` of the `private_key_jwt` key at the provider.',
      descriptionZh: '身份认证平台用来识别 `private_key_jwt` 密钥的 `kid`。',
    },
  }),
  /** The certificate of that key, in PEM: for mutual TLS, and for providers that identify keys by it (`x5t#S256`). */
  clientCertFile: field(text, {
    isConverted: true,
    setting: {
      name: 'CLIENT_CERT_FILE',
      ...kind.secretFile,
      example: '/run/secrets/client_cert.pem',
      description:
        'The certificate of that key, in PEM. Mutual TLS presents it to the provider; with `private_key_jwt` its thumbprint is sent as `x5t#S256`, which Microsoft Entra requires.',
      descriptionZh:
        '该私钥的证书，PEM 格式。双向 TLS 会向平台出示此证书；使用 `private_key_jwt` 时，其指纹会作为 `x5t#S256` 发送，Microsoft Entra 需要该值。',
    },
  }),
  /** `aud` of private_key_jwt. */
  clientAssertionAudience: field(z.enum(ASSERTION_AUDIENCES), {
    isConverted: true,
    setting: {
      name: 'CLIENT_ASSERTION_AUDIENCE',
      ...kind.oneOf(ASSERTION_AUDIENCES, 'token_endpoint'),
      defaultNote: '`token_endpoint` for `entra` and `okta`, else `issuer`',
      description: 'The `aud` of `private_key_jwt`: the issuer, the token endpoint, or both.',
      descriptionZh: '`private_key_jwt` 中 `aud` 的值：issuer、令牌端点，或两者都写。',
    },
  }),
  clientAssertionAlgorithm: field(z.enum(ASSERTION_ALGORITHMS), {
    isConverted: true,
    setting: {
      name: 'CLIENT_ASSERTION_ALGORITHM',
      ...kind.oneOf(ASSERTION_ALGORITHMS, 'PS256'),
      defaultNote: 'by the key and what the provider accepts; `PS256` for `entra`',
      description: 'The signature algorithm of `private_key_jwt`.',
      descriptionZh: '`private_key_jwt` 的签名算法。',
    },
  }),

  /** The address to which the browser is sent to sign in. */
  authorizationUrl: field(address, { endpoint: 'authorization' }),
  scope: field(z.string(), {
    default: '',
    isConverted: true,
    setting: {
      name: 'SCOPE',
      ...kind.text('scopes, separated by spaces', 'openid profile email'),
      defaultNote: 'the preset’s',
      description: 'The requested scope.',
      descriptionZh: '申请的权限范围（scope）。',
    },
  }),
  /** What separates the scopes in the request. `scope` always has spaces. */
  scopeSeparator: field(text, { default: ' ', isConverted: true }),
  /** Extra parameters of the authorization request. */
  authorizationParams: field(texts, { default: {}, isConverted: true }),
  /** Other names for parameters of the authorization request, keyed by the usual name; a parameter with an empty name is omitted. */
  authorizationNames: field(texts, { default: {}, isConverted: true }),
  /** Added to the authorization address: `#wechat_redirect`. */
  authorizationFragment: field(z.string(), { default: '', isConverted: true }),
  /** `suffixed` ends in `_idp`; `plain` has only letters and digits, for providers that accept nothing else. */
  state: field(z.enum(['suffixed', 'plain']), { default: 'suffixed' }),
  stateCheck: field(z.enum(STATE_CHECKS), {
    default: 'bound',
    setting: {
      name: 'STATE_CHECK',
      ...kind.oneOf(['suffix', 'bound'], 'bound'),
      defaultNote: '`suffix` for `idaas`, else `bound`',
      description:
        '`suffix` checks only the end of the state, as the specification says; `bound` requires the state of an attempt that the same browser started, once. Recommended: `bound`.',
      descriptionZh:
        '`suffix` 按规范只检查 state 的后缀；`bound` 还会与同一浏览器发起的登录比对，且只能使用一次。建议使用 `bound`。',
    },
  }),
  pkce: field(z.boolean(), {
    default: false,
    setting: {
      name: 'PKCE',
      ...kind.oneOf(['off', 'S256'], 'S256'),
      defaultNote: '`off` for `idaas`, else what the provider is known to support',
      description:
        '`S256` adds PKCE to the authorization and token requests, if the provider supports it. Like `bound`, it requires an attempt that the same browser started.',
      descriptionZh:
        '`S256` 在授权请求和令牌请求中加入 PKCE（需要平台支持）。与 `bound` 一样，要求登录由同一浏览器发起。',
      toField: (value: 'off' | 'S256') => value === 'S256',
    },
  }),
  /** Pushed authorization requests (RFC 9126). */
  par: field(z.enum(DEMAND_CHOICES), {
    default: 'auto',
    setting: {
      name: 'PAR',
      ...kind.oneOf(DEMAND_CHOICES, 'on'),
      defaultNote: '`auto`',
      description:
        'Pushed authorization requests (RFC 9126): all parameters go from server to server, and the browser carries only a reference. `auto` uses them if the metadata has `require_pushed_authorization_requests`.',
      descriptionZh:
        '推送授权请求（PAR，RFC 9126）：所有参数由服务器直接发给平台，浏览器只携带一个引用。`auto` 在平台元数据含有 `require_pushed_authorization_requests` 时使用。',
    },
  }),
  /** The endpoint for pushed authorization requests, if the metadata has none. */
  parUrl: field(address, { endpoint: 'par', receives: true }),
  /** Tokens that are bound to a key of the session (RFC 9449). */
  dpop: field(z.enum(DEMAND_CHOICES), {
    default: 'auto',
    setting: {
      name: 'DPOP',
      ...kind.oneOf(DEMAND_CHOICES, 'on'),
      defaultNote: '`auto`',
      description:
        'Binds the tokens of each session to a key (RFC 9449), so that a stolen token cannot be used. `auto` does so once the provider requires it. `on` cannot be combined with `FORWARD_ACCESS_TOKEN`.',
      descriptionZh:
        '把每个会话的令牌与该会话专用的密钥绑定（DPoP，RFC 9449），令牌被窃取后也无法使用。`auto` 从平台提出要求时开始使用。`on` 不能与 `FORWARD_ACCESS_TOKEN` 同时使用。',
    },
  }),
  /** The parameters in which the code may come back. */
  codeNames: field(z.array(z.string()).min(1), { default: ['code'] }),

  /** The token endpoint. */
  tokenUrl: field(address, { endpoint: 'token', receives: true }),
  /** A token request that differs from the standard. */
  tokenRequest: request(
    z.strictObject({
      as: z.enum(['form', 'json', 'query']).describe('How the parameters are sent.'),
      names: texts.describe('Other names for parameters, keyed by the usual name.'),
      headers: texts,
      redirectUri: z.boolean().describe('Whether `redirect_uri` is sent.'),
      state: z.boolean().describe('Whether the state is repeated in the request.'),
    }),
    { default: { as: 'form', names: {}, headers: {}, redirectUri: true, state: false } },
  ),
  /** A token response that differs from the standard. */
  tokenAnswer: group(
    z.strictObject({
      ...answer,
      names: texts.describe('The paths of fields with other names, keyed by the usual name.'),
      lifetimeSeconds: z.int().min(60).optional().describe('How long a token is valid if the response does not tell.'),
      tokenType: z.enum(['required', 'optional']).describe('Whether a response without `token_type` is accepted.'),
    }),
    { default: { success: {}, names: {}, tokenType: 'optional' } },
  ),
  /** The introspection endpoint (RFC 7662), for access tokens that are not JWTs. */
  introspectionUrl: field(address, { endpoint: 'introspection', receives: true }),
  /** Values of `typ` that an access token of a machine may have, besides `at+jwt` (RFC 9068). */
  accessTokenTypes: field(z.array(z.string()), { default: [] }),

  /** The endpoint for refreshes, if it is not the token endpoint; `false` turns refreshes off. */
  refreshUrl: field(z.union([address, z.literal(false)]), { endpoint: 'refresh', receives: true }),
  /** Additional parameters of a refresh; `$redirect_uri` is our own callback address. */
  refreshParams: field(texts, { default: {} }),
  /** Errors with which this provider reports that a code or a refresh token is no longer valid, besides the usual ones. */
  refreshEnds: field(z.array(z.string()), { default: [] }),
  /** How long before expiry a token is refreshed: the five minutes of specification 7.1, or at most half of its life. */
  refreshLead: field(z.enum(['fixed', 'half']), { default: 'half' }),

  /** The user info endpoint. */
  userInfoUrl: field(address, { endpoint: 'userInfo', receives: true }),
  /** A user info request that differs from the standard. */
  userInfoRequest: request(
    z.strictObject({
      method: z.enum(['GET', 'POST']).describe('The method of the request.'),
      token: z
        .union([
          z.literal('bearer'),
          z.strictObject({ header: z.string().describe('The name of the header.') }),
          z.strictObject({ query: z.string().describe('The name of the parameter in the query.') }),
        ])
        .describe('Where the access token is: `bearer` is `Authorization: Bearer`.'),
      params: texts.describe('Parameters; `$openid` stands for the field `openid` of the token response.'),
      headers: texts,
    }),
    { default: { method: 'GET', token: 'bearer', params: {}, headers: {} } },
  ),
  /** A user info response that differs from the standard. */
  userInfoAnswer: group(z.strictObject(answer), { default: { success: {} } }),
  /** Where a field of the user comes from: the first of these with a value. */
  userInfoFrom: field(z.array(z.enum(['userinfo', 'id_token', 'token', 'access_token'])).min(1), {
    default: ['userinfo', 'id_token', 'token'],
  }),
  /** One more call with the same token: the first element of the list in its answer that fits gives the e-mail address. */
  emailStep: field(
    z.strictObject({
      url: address.describe('The address that is called with the access token.'),
      where: accepted.describe('Which element of the list: accepted values, keyed by path.'),
      take: path.describe('The path of the e-mail address in the element.'),
    }),
    {},
  ),
  /** The paths of each field of the user, in order; two paths in brackets are joined by a dash. Other names become further fields. */
  fields: field(userFields, {
    default: { sub: [], username: [], nickname: [], email: [], phone_number: [], ou_id: [], ou_name: [], groups: [] },
    isConverted: true,
  }),
  /** What an answer must contain for its e-mail address to be valid; without it, the address is neither username nor e-mail. */
  emailVerified: field(accepted, { isConverted: true }),
  /** `text`: a field of another type is an error, not turned into text. */
  fieldTypes: field(z.enum(['text', 'any']), { default: 'any' }),
  /** What a user must have to sign in: accepted values, keyed by path. */
  require: field(accepted, { isConverted: true }),

  /** How the provider is notified of a sign-out. */
  logout: group(
    z.strictObject({
      style: z
        .enum(LOGOUT_STYLES)
        .optional()
        .describe(
          '`server` calls the endpoint, `browser` redirects the browser through it, `none` does not notify the provider. By default `browser` if the provider has an endpoint for it.',
        ),
      returnParam: text.describe('The parameter with the address to which the provider sends the browser back.'),
      params: texts.describe('Extra parameters.'),
      idTokenHint: z.boolean().describe('Whether `id_token_hint` is sent.'),
    }),
    { default: { returnParam: 'post_logout_redirect_uri', params: {}, idTokenHint: false } },
  ),
  'logout.style': part({
    setting: {
      name: 'LOGOUT_STYLE',
      ...kind.oneOf(['server', 'browser', 'none'], 'browser'),
      defaultNote: '`server` for `idaas`, else what the provider has',
      description:
        'How the provider is notified of a sign-out: `server` calls it, `browser` redirects the browser through it and back to `LOGIN_PATH`, `none` does not notify it.',
      descriptionZh:
        '退出登录时如何通知身份认证平台：`server` 由服务器调用，`browser` 让浏览器经过平台再回到 `LOGIN_PATH`，`none` 不通知。',
    },
  }),
  logoutUrl: field(address, {
    endpoint: 'logout',
    receives: true,
    setting: {
      name: 'LOGOUT_URL',
      ...kind.pathOrAddress,
      defaultNote: '`/oauth/logout` for `idaas`, else what the provider has',
      description: "The provider's logout endpoint: a path below `AUTH_URL`, or a full URL.",
      descriptionZh: '身份认证平台的退出接口：`AUTH_URL` 下的路径，或完整的地址。',
      toField: (value: string) => (value.startsWith('/') ? `{auth_url}${value}` : value),
    },
  }),
  /**
   * Whether a sign-out revokes the tokens, if the provider supports it. At some providers this ends the user's grant on every device,
   * so the default is `never`, unless the operator sets `revocationUrl`.
   */
  revoke: field(z.enum(REVOKE_CHOICES), {
    isConverted: true,
    setting: {
      name: 'REVOKE',
      ...kind.oneOf(REVOKE_CHOICES, 'always'),
      defaultNote: '`never`, unless the provider is known to end only this session',
      description:
        'Whether unused tokens are revoked at the provider, if it has a revocation endpoint: after a sign-out, an idle timeout, or a sign-in that fails or replaces a session. At some providers (Google, older Keycloak, some Auth0 tenants) this ends the user’s sessions on every device.',
      descriptionZh:
        '不再需要的令牌是否在身份认证平台撤销（平台提供撤销地址时）：退出登录、会话因长时间无操作而结束、登录失败或新的登录取代原会话之后。有的平台（Google、旧版 Keycloak、部分 Auth0 租户）会因此结束该用户在所有设备上的会话。',
    },
  }),
  /** The revocation endpoint (RFC 7009). */
  revocationUrl: field(address, { endpoint: 'revocation', receives: true }),
  /** A revocation request that differs from RFC 7009. */
  revocationRequest: group(
    z.strictObject({
      method: z.enum(['POST', 'DELETE']).describe('The method of the request.'),
      as: z.enum(['form', 'query']).describe('How the parameters are sent.'),
      names: texts.describe('Other names for parameters, keyed by the usual name.'),
      token: z
        .enum(['refresh_token', 'access_token'])
        .describe('Which token is revoked; without a refresh token, the access token is.'),
    }),
    { default: { method: 'POST', as: 'form', names: {}, token: 'refresh_token' } },
  ),
}

export const ISSUER_FIELDS = {
  issuer: field(address, {
    setting: {
      name: 'ISSUER',
      ...kind.text('what the provider calls itself', 'https://idp.example.com'),
      description: "The provider's issuer: an `iss` in the callback must be this one (RFC 9207).",
      descriptionZh: '身份认证平台的 issuer：回调中的 `iss` 必须与此一致（RFC 9207）。',
    },
  }),
  /** The address of the metadata, if it is not below the issuer. */
  discoveryUrl: field(address, {}),
  /** Other issuers that the provider names in its tokens. */
  alsoIssuers: field(z.array(z.string()), { default: [] }),
  /** Other issuers that occur only in access tokens; `{tenantid}` is the tenant of the issuer. */
  accessTokenIssuers: field(z.array(z.string()), { default: [] }),
  /** Whether every callback has `iss` (RFC 9207), if no metadata declares it. */
  sendsIssuer: field(z.boolean(), {
    default: false,
    setting: {
      name: 'ISSUER_REQUIRED',
      ...kind.yesOrNo,
      default: 'false',
      description:
        'The provider sends `iss` with every callback (`authorization_response_iss_parameter_supported` in its metadata): a callback without it is rejected.',
      descriptionZh:
        '平台的每个回调都带有 `iss`（其元数据中有 `authorization_response_iss_parameter_supported`）：没有 `iss` 的回调会被拒绝。',
      toField: (value: boolean) => value || undefined,
    },
  }),
  jwksUrl: field(address, {
    endpoint: 'jwks',
    setting: {
      name: 'JWKS_URL',
      ...kind.address,
      description: 'The address of the provider’s public keys. Together with `ISSUER` it enables back-channel logout.',
      descriptionZh: '身份认证平台公布公钥的地址；与 `ISSUER` 一起设置后，启用后端通道退出（back-channel logout）。',
    },
  }),
}

export const PROVIDER_FIELDS = { ...SIGN_IN_FIELDS, ...ISSUER_FIELDS }
export type ProviderFields = typeof PROVIDER_FIELDS

/** A field of the configuration, or a part of one by its path: `logout.style`. */
export type FieldPath = keyof ProviderFields

interface AnyField {
  readonly schema?: z.ZodType
  readonly default?: unknown
  readonly setting?: FieldSetting<unknown>
  readonly endpoint?: string
  readonly receives?: true
  readonly isConverted?: true
}

/** Each row with its path. */
export const FIELD_ROWS = Object.entries(PROVIDER_FIELDS) as readonly (readonly [FieldPath, AnyField])[]

/** The setting that fills a field for a single provider. */
export function settingFor(path: FieldPath): FieldSettingName | undefined {
  const { setting }: AnyField = PROVIDER_FIELDS[path]
  return setting?.name as FieldSettingName | undefined
}

/** The rows of the settings that fill these fields. */
export function settingRows<F extends Readonly<Record<string, AnyField>>>(fields: F): SettingRows<F> {
  const rows = Object.values(fields).flatMap(({ setting }) => {
    if (!setting) return []
    const { name, toField: _, ...row } = setting
    return [[name, { ...row, reloads: true }]]
  })
  return Object.fromEntries(rows)
}

type SettingRows<F> = {
  readonly [K in keyof F as F[K] extends { setting: { name: infer N extends string } } ? N : never]: F[K] extends {
    setting: infer S
  }
    ? SettingRow<S>
    : never
}

type SettingRow<S> = S extends { check: z.ZodType<infer T> }
  ? Row<S extends { default: string } ? T : T | undefined>
  : never

export type FieldSettingName = keyof SettingRows<ProviderFields>
