// Everything that is known about one provider before it is called.
import type {
  Accepted,
  AssertionAudience,
  ClientAuth,
  Field,
  ProviderConfig,
  Sources,
} from '../settings/config/provider-config.ts'
import type { Secret } from '../settings/secret.ts'
import type { ProviderKind } from './presets/preset.ts'

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
