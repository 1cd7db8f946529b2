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
  }),
  PROVIDER_NAME: optional({
    reloads: true,
    ...kind.text('a name of at most 60 characters', '企业账号', 60),
    defaultNote: 'the preset’s',
    sentence: 'The name on the button: `<name>登录`, `Sign in with <name>`.',
  }),
  PROVIDER_VARS: optional({
    reloads: true,
    ...kind.assignments,
    sentence: 'What the preset’s addresses leave open, such as a realm or a tenant.',
  }),
  AUTH_URL: optional({
    reloads: true,
    ...kind.address,
    sentence: 'The address of the identity provider, to which its paths are added.',
  }),
  CLIENT_ID: optional({
    reloads: true,
    ...kind.text('the identifier that the provider gave to this application', 'my-application'),
    sentence: 'The OAuth client identifier.',
  }),
  CLIENT_SECRET: optional({
    reloads: true,
    ...kind.secret,
    sentence: 'The OAuth client secret. It leaves the server only in requests to the provider.',
  }),
  CLIENT_SECRET_FILE: optional({
    reloads: true,
    ...kind.secretFile,
    sentence: 'Reads the client secret from a file instead.',
  }),
  CLIENT_AUTH: optional({
    reloads: true,
    ...kind.oneOf(CLIENT_AUTHS, 'basic'),
    defaultNote: 'the preset’s',
    sentence: 'How the client proves itself to the provider.',
  }),
  CLIENT_KEY_FILE: optional({
    reloads: true,
    ...kind.secretFile,
    example: '/run/secrets/client_key.pem',
    sentence: 'The key of `private_key_jwt`: PEM or JWK. Without a client secret it is the proof by itself.',
  }),
  CLIENT_KEY_ID: optional({
    reloads: true,
    ...kind.text('the name of a key', 'key-2026', 200),
    defaultNote: 'the key’s own, if it is a JWK',
    sentence: 'The `kid` by which the provider knows the key of `private_key_jwt`.',
  }),
  CLIENT_CERT_FILE: optional({
    reloads: true,
    ...kind.secretFile,
    example: '/run/secrets/client_cert.pem',
    sentence:
      'The certificate of the key of `private_key_jwt`, in PEM: its thumbprint is sent as `x5t#S256`, which Microsoft Entra wants.',
  }),
  CLIENT_ASSERTION_AUDIENCE: optional({
    reloads: true,
    ...kind.oneOf(ASSERTION_AUDIENCES, 'token_endpoint'),
    defaultNote: '`token_endpoint` for `entra` and `okta`, else `issuer`',
    sentence: 'What `private_key_jwt` names as `aud`: the issuer, the token endpoint, or both.',
  }),
  CLIENT_ASSERTION_ALGORITHM: optional({
    reloads: true,
    ...kind.oneOf(ASSERTION_ALGORITHMS, 'PS256'),
    defaultNote: 'by the key and what the provider takes; `PS256` for `entra`',
    sentence: 'By which algorithm `private_key_jwt` signs.',
  }),
  SCOPE: optional({
    reloads: true,
    ...kind.text('scopes, separated by spaces', 'openid profile email'),
    defaultNote: 'the preset’s',
    sentence: 'The scope that is asked for.',
  }),
  STATE_CHECK: optional({
    reloads: true,
    ...kind.oneOf(['suffix', 'bound'], 'bound'),
    defaultNote: '`suffix` for `idaas`, else `bound`',
    sentence:
      '`suffix` only looks at the end of the state, as the specification says; `bound` compares it with the attempt that the same browser started, once. Recommended: `bound`.',
  }),
  PKCE: optional({
    reloads: true,
    ...kind.oneOf(['off', 'S256'], 'S256'),
    defaultNote: '`off` for `idaas`, else what the provider is known to take',
    sentence:
      '`S256` adds PKCE to the authorization and token requests, if the provider supports it. Like `bound` it asks for the attempt that the same browser started.',
  }),
  LOGOUT_STYLE: optional({
    reloads: true,
    ...kind.oneOf(['server', 'browser', 'none'], 'browser'),
    defaultNote: '`server` for `idaas`, else what the provider has',
    sentence:
      'How the provider is told of a sign-out: `server` calls it, `browser` sends the browser through it and back to `/login`, `none` does not tell it.',
  }),
  LOGOUT_URL: optional({
    reloads: true,
    ...kind.pathOrAddress,
    defaultNote: '`/oauth/logout` for `idaas`, else what the provider has',
    sentence: "The provider's logout interface: a path under `AUTH_URL`, or a whole address.",
  }),
  REVOKE: optional({
    reloads: true,
    ...kind.oneOf(REVOKE_CHOICES, 'always'),
    defaultNote: '`never`, unless the provider is known to end this session alone',
    sentence:
      'Whether a sign-out revokes the tokens at the provider, where it has an address for that. At some providers (Google, older Keycloak, some Auth0 tenants) this ends the user’s sessions on every device.',
  }),
  PROVIDER_TIMEOUT_MS: required({
    ...kind.wholeNumber(100, 120_000, 'a number of milliseconds'),
    default: '5000',
    sentence: 'The deadline for one call to the provider, its body included.',
  }),
  PROVIDER_PARALLEL_CALLS: required({
    ...kind.wholeNumber(1, 10_000, 'a number of calls'),
    default: '64',
    sentence: 'How many sign-ins, and how many refreshes, ask the provider at the same time; others wait their turn.',
  }),
  ISSUER: optional({
    reloads: true,
    ...kind.text('what the provider calls itself', 'https://idp.example.com'),
    sentence: "The provider's issuer: an `iss` in the callback must be this one (RFC 9207).",
  }),
  ISSUER_REQUIRED: required({
    reloads: true,
    ...kind.yesOrNo,
    default: 'false',
    sentence:
      'The provider sends `iss` with every callback (`authorization_response_iss_parameter_supported` in its metadata): one without it is refused.',
  }),
  JWKS_URL: optional({
    reloads: true,
    ...kind.address,
    sentence: 'Where the provider publishes its keys; with `ISSUER` it turns on back-channel logout.',
  }),
} satisfies Record<string, Row<unknown>>
