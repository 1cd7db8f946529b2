// The settings about the identity provider: rows of the one table in rows.ts.
import { ASSERTION_ALGORITHMS, ASSERTION_AUDIENCES, CLIENT_AUTHS, REVOKE_CHOICES } from './config/provider-config.ts'
import * as kind from './kinds.ts'
import { optional, type Row, required } from './row.ts'

export const PROVIDER_ROWS = {
  PROVIDER: optional({
    reloads: true,
    ...kind.text('the name of a preset', 'oidc', 40),
    defaultNote: '`idaas`',
    sentence:
      'Which identity provider: `idaas` is the specification’s, `oidc` any with discovery at `AUTH_URL`, `oauth2` assumes nothing, and [many more](providers.md) have a name.',
    sentenceZh:
      '使用哪个身份认证平台：`idaas` 是规范中的平台；`oidc` 适用于 `AUTH_URL` 支持自动发现的平台；`oauth2` 不做任何假设；[更多平台](providers.md)有各自的名称。',
  }),
  PROVIDER_NAME: optional({
    reloads: true,
    ...kind.text('a name of at most 60 characters', '企业账号', 60),
    defaultNote: 'the preset’s',
    sentence: 'The name on the button: `<name>登录`, `Sign in with <name>`.',
    sentenceZh: '登录按钮上的名称：`<name>登录`、`Sign in with <name>`。',
  }),
  PROVIDER_VARS: optional({
    reloads: true,
    ...kind.assignments,
    sentence: 'What the preset’s addresses leave open, such as a realm or a tenant.',
    sentenceZh: '预设地址中需要填写的部分，例如 realm 或租户。',
  }),
  AUTH_URL: optional({
    reloads: true,
    ...kind.address,
    sentence: 'The address of the identity provider, to which its paths are added.',
    sentenceZh: '身份认证平台的地址，各个路径会加在它后面。',
  }),
  CLIENT_ID: optional({
    reloads: true,
    ...kind.text('the identifier that the provider gave to this application', 'my-application'),
    sentence: 'The OAuth client identifier.',
    sentenceZh: 'OAuth 客户端标识。',
  }),
  CLIENT_SECRET: optional({
    reloads: true,
    ...kind.secret,
    sentence: 'The OAuth client secret. It leaves the server only in requests to the provider.',
    sentenceZh: 'OAuth 客户端密钥，只会随请求发送给身份认证平台。',
  }),
  CLIENT_SECRET_FILE: optional({
    reloads: true,
    ...kind.secretFile,
    sentence: 'Reads the client secret from a file instead.',
    sentenceZh: '从文件读取客户端密钥。',
  }),
  CLIENT_AUTH: optional({
    reloads: true,
    ...kind.oneOf(CLIENT_AUTHS, 'basic'),
    defaultNote: 'the preset’s',
    sentence: 'How the client proves itself to the provider.',
    sentenceZh: '客户端向身份认证平台证明自己的方式。',
  }),
  CLIENT_KEY_FILE: optional({
    reloads: true,
    ...kind.secretFile,
    example: '/run/secrets/client_key.pem',
    sentence: 'The key of `private_key_jwt`: PEM or JWK. Without a client secret it is the proof by itself.',
    sentenceZh: '`private_key_jwt` 使用的私钥，PEM 或 JWK 格式。没有客户端密钥时，只用它证明身份。',
  }),
  CLIENT_KEY_ID: optional({
    reloads: true,
    ...kind.text('the name of a key', 'key-2026', 200),
    defaultNote: 'the key’s own, if it is a JWK',
    sentence: 'The `kid` by which the provider knows the key of `private_key_jwt`.',
    sentenceZh: '身份认证平台用来识别 `private_key_jwt` 密钥的 `kid`。',
  }),
  CLIENT_CERT_FILE: optional({
    reloads: true,
    ...kind.secretFile,
    example: '/run/secrets/client_cert.pem',
    sentence:
      'The certificate of the key of `private_key_jwt`, in PEM: its thumbprint is sent as `x5t#S256`, which Microsoft Entra wants.',
    sentenceZh: '`private_key_jwt` 密钥的证书，PEM 格式：其指纹会作为 `x5t#S256` 发送，Microsoft Entra 需要它。',
  }),
  CLIENT_ASSERTION_AUDIENCE: optional({
    reloads: true,
    ...kind.oneOf(ASSERTION_AUDIENCES, 'token_endpoint'),
    defaultNote: '`token_endpoint` for `entra` and `okta`, else `issuer`',
    sentence: 'What `private_key_jwt` names as `aud`: the issuer, the token endpoint, or both.',
    sentenceZh: '`private_key_jwt` 中 `aud` 的值：issuer、令牌端点，或两者都写。',
  }),
  CLIENT_ASSERTION_ALGORITHM: optional({
    reloads: true,
    ...kind.oneOf(ASSERTION_ALGORITHMS, 'PS256'),
    defaultNote: 'by the key and what the provider takes; `PS256` for `entra`',
    sentence: 'By which algorithm `private_key_jwt` signs.',
    sentenceZh: '`private_key_jwt` 的签名算法。',
  }),
  SCOPE: optional({
    reloads: true,
    ...kind.text('scopes, separated by spaces', 'openid profile email'),
    defaultNote: 'the preset’s',
    sentence: 'The scope that is asked for.',
    sentenceZh: '申请的权限范围（scope）。',
  }),
  STATE_CHECK: optional({
    reloads: true,
    ...kind.oneOf(['suffix', 'bound'], 'bound'),
    defaultNote: '`suffix` for `idaas`, else `bound`',
    sentence:
      '`suffix` only looks at the end of the state, as the specification says; `bound` compares it with the attempt that the same browser started, once. Recommended: `bound`.',
    sentenceZh:
      '`suffix` 按规范只检查 state 的后缀；`bound` 还会与同一浏览器发起的登录比对，且只能使用一次。建议使用 `bound`。',
  }),
  PKCE: optional({
    reloads: true,
    ...kind.oneOf(['off', 'S256'], 'S256'),
    defaultNote: '`off` for `idaas`, else what the provider is known to take',
    sentence:
      '`S256` adds PKCE to the authorization and token requests, if the provider supports it. Like `bound` it asks for the attempt that the same browser started.',
    sentenceZh: '`S256` 在授权请求和令牌请求中加入 PKCE（需要平台支持）。与 `bound` 一样，要求登录由同一浏览器发起。',
  }),
  LOGOUT_STYLE: optional({
    reloads: true,
    ...kind.oneOf(['server', 'browser', 'none'], 'browser'),
    defaultNote: '`server` for `idaas`, else what the provider has',
    sentence:
      'How the provider is told of a sign-out: `server` calls it, `browser` sends the browser through it and back to `/login`, `none` does not tell it.',
    sentenceZh:
      '退出登录时如何通知身份认证平台：`server` 由服务器调用，`browser` 让浏览器经过平台再回到 `/login`，`none` 不通知。',
  }),
  LOGOUT_URL: optional({
    reloads: true,
    ...kind.pathOrAddress,
    defaultNote: '`/oauth/logout` for `idaas`, else what the provider has',
    sentence: "The provider's logout interface: a path under `AUTH_URL`, or a whole address.",
    sentenceZh: '身份认证平台的退出接口：`AUTH_URL` 下的路径，或完整的地址。',
  }),
  REVOKE: optional({
    reloads: true,
    ...kind.oneOf(REVOKE_CHOICES, 'always'),
    defaultNote: '`never`, unless the provider is known to end this session alone',
    sentence:
      'Whether a sign-out revokes the tokens at the provider, where it has an address for that. At some providers (Google, older Keycloak, some Auth0 tenants) this ends the user’s sessions on every device.',
    sentenceZh:
      '退出登录时是否在身份认证平台撤销令牌（平台提供撤销地址时）。有的平台（Google、旧版 Keycloak、部分 Auth0 租户）会因此结束该用户在所有设备上的会话。',
  }),
  PROVIDER_TIMEOUT_MS: required({
    ...kind.wholeNumber(100, 120_000, 'a number of milliseconds'),
    default: '5000',
    sentence: 'The deadline for one call to the provider, its body included.',
    sentenceZh: '每次调用身份认证平台的时限，包括读取响应内容。',
  }),
  PROVIDER_PARALLEL_CALLS: required({
    ...kind.wholeNumber(1, 10_000, 'a number of calls'),
    default: '64',
    sentence: 'How many sign-ins, and how many refreshes, ask the provider at the same time; others wait their turn.',
    sentenceZh: '同时向身份认证平台发起的登录数和续期数的上限，超出的排队等候。',
  }),
  ISSUER: optional({
    reloads: true,
    ...kind.text('what the provider calls itself', 'https://idp.example.com'),
    sentence: "The provider's issuer: an `iss` in the callback must be this one (RFC 9207).",
    sentenceZh: '身份认证平台的 issuer：回调中的 `iss` 必须与它一致（RFC 9207）。',
  }),
  ISSUER_REQUIRED: required({
    reloads: true,
    ...kind.yesOrNo,
    default: 'false',
    sentence:
      'The provider sends `iss` with every callback (`authorization_response_iss_parameter_supported` in its metadata): one without it is refused.',
    sentenceZh:
      '平台的每个回调都带有 `iss`（其元数据中有 `authorization_response_iss_parameter_supported`）：没有 `iss` 的回调会被拒绝。',
  }),
  JWKS_URL: optional({
    reloads: true,
    ...kind.address,
    sentence: 'Where the provider publishes its keys; with `ISSUER` it turns on back-channel logout.',
    sentenceZh: '身份认证平台公布公钥的地址；与 `ISSUER` 一起设置后，启用后端通道退出（back-channel logout）。',
  }),
} satisfies Record<string, Row<unknown>>
