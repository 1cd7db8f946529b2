// Talks to the identity provider: where it is, what each call sends, which answer each call gives.

import { setTimeout as pause } from 'node:timers/promises'
import { createRemoteJWKSet, customFetch, jwtVerify } from 'jose'
import * as oauth from 'oauth4webapi'
import { MenshenError } from '../errors.ts'
import type { Report } from '../events.ts'
import { OWN_PATHS } from '../own-paths.ts'
import type { Settings } from '../settings/read.ts'
import type { Secret } from '../settings/secret.ts'
import { readIdToken, readTokenSet, readUserInfo, type TokenSet, type UserInfo } from './answers.ts'
import { createBoundedFetch, NeverArrived, readAnswer } from './bounded-fetch.ts'
import { readProviderSession } from './id-token.ts'
import { createSlots } from './slots.ts'

export interface Provider {
  /** Where the browser goes to sign in. Everything but `state` is the same at each attempt. */
  authorizationUrl(attempt?: { state: string; challenge?: string }): string
  /** Runs a sign-in when there is a slot to call the provider: waits if there are many, and is refused if there are too many. */
  withSlot<T>(signIn: () => Promise<T>): Promise<T>
  redeem(code: string, verifier: string | undefined): Promise<TokenSet>
  userInfo(accessToken: string): Promise<UserInfo>
  refresh(refreshToken: string): Promise<TokenSet>
  /** Tells the provider, from server to server, that a session has ended. */
  signOut(refreshToken: string | undefined): Promise<void>
  /** Where the browser goes to sign out at the provider, and from there to `/login`. */
  signOutUrl(): string
  /** Whether it publishes keys by which its signatures can be verified. */
  readonly canVerify: boolean
  /** The claims of a token that it signed for us, not older than this. Throws if anything is wrong with it. */
  verify(token: string, oldestSeconds: number): Promise<object>
  close(): Promise<void>
}

export interface ProviderOptions {
  readonly authUrl: string
  readonly clientId: string
  readonly clientSecret: Secret
  readonly settings: Pick<
    Settings,
    'BASE_URL' | 'LOGOUT_URL' | 'PROVIDER_TIMEOUT_MS' | 'PROVIDER_PARALLEL_CALLS' | 'ISSUER' | 'JWKS_URL'
  >
  readonly now: () => number
  readonly report: Report
}

const PATHS = {
  authorize: '/oauth/authorize',
  token: '/oauth/token',
  userInfo: '/api/bff/v1.2/oauth2/userinfo',
}
const SCOPE = 'read'
const RETRY_AFTER_MS = [100, 300]
/** A flood of callbacks is refused beyond this, instead of piling up. */
const SIGN_INS_WAITING = 500
const SIGN_OUT_TIMEOUT_MS = 2000

export function createProvider({ authUrl, clientId, clientSecret, settings, now, report }: ProviderOptions): Provider {
  const redirectUri = settings.BASE_URL + OWN_PATHS.callback
  const server: oauth.AuthorizationServer = {
    issuer: authUrl,
    token_endpoint: authUrl + PATHS.token,
    userinfo_endpoint: authUrl + PATHS.userInfo,
  }
  const client: oauth.Client = { client_id: clientId }
  const authentication = oauth.ClientSecretPost(clientSecret.reveal())
  const calls = createBoundedFetch(settings.PROVIDER_TIMEOUT_MS)
  const signOutCalls = createBoundedFetch(Math.min(SIGN_OUT_TIMEOUT_MS, settings.PROVIDER_TIMEOUT_MS))
  const logoutUrl = new URL(settings.LOGOUT_URL.startsWith('/') ? authUrl + settings.LOGOUT_URL : settings.LOGOUT_URL)
  const signInSlots = createSlots(settings.PROVIDER_PARALLEL_CALLS, SIGN_INS_WAITING)
  const publicKeys =
    settings.JWKS_URL === undefined
      ? undefined
      : createRemoteJWKSet(new URL(settings.JWKS_URL), { [customFetch]: calls.fetch as typeof fetch })
  const idTokens =
    publicKeys && settings.ISSUER ? { publicKeys, issuer: settings.ISSUER, clientId, now, report } : undefined
  const options = {
    [oauth.customFetch]: calls.fetch,
    // The settings have already judged plain http.
    [oauth.allowInsecureRequests]: true,
  }

  return {
    authorizationUrl(attempt) {
      const url = new URL(authUrl + PATHS.authorize)
      url.searchParams.set('response_type', 'code')
      url.searchParams.set('scope', SCOPE)
      url.searchParams.set('client_id', clientId)
      url.searchParams.set('redirect_uri', redirectUri)
      if (attempt) url.searchParams.set('state', attempt.state)
      if (attempt?.challenge) {
        url.searchParams.set('code_challenge', attempt.challenge)
        url.searchParams.set('code_challenge_method', 'S256')
      }
      return url.href
    },

    withSlot: signInSlots.withSlot,

    async redeem(code, verifier) {
      // The callback has checked the state already, in the order that the specification gives.
      const checked = oauth.validateAuthResponse(server, client, new URLSearchParams({ code }), oauth.skipStateCheck)
      const proof = verifier ?? oauth.nopkce
      const answer = await readAnswer(
        await oauth.authorizationCodeGrantRequest(server, client, authentication, checked, redirectUri, proof, options),
      )
      const tokens = readTokenSet(answer, now())
      const idToken = idTokens && readIdToken(answer)
      const providerSession = idToken && (await readProviderSession(idTokens, idToken))
      return providerSession ? { ...tokens, providerSession } : tokens
    },

    async userInfo(accessToken) {
      return readUserInfo(await readAnswer(await oauth.userInfoRequest(server, client, accessToken, options)))
    },

    async refresh(refreshToken) {
      const request = () => oauth.refreshTokenGrantRequest(server, client, authentication, refreshToken, options)
      return readTokenSet(await readAnswer(await retryUnarrived(request, settings.PROVIDER_TIMEOUT_MS)), now())
    },

    async signOut(refreshToken) {
      const body = new URLSearchParams({ client_id: clientId })
      if (refreshToken) body.set('refresh_token', refreshToken)
      await signOutCalls.fetch(logoutUrl.href, { method: 'POST', body })
    },

    signOutUrl() {
      const url = new URL(logoutUrl)
      url.searchParams.set('redirect_url', settings.BASE_URL + OWN_PATHS.login)
      return url.href
    },

    canVerify: idTokens !== undefined,

    async verify(token, oldestSeconds) {
      if (!publicKeys || !settings.ISSUER) throw new MenshenError('bad_settings', 'ISSUER and JWKS_URL are not set')
      const expected = { issuer: settings.ISSUER, audience: clientId, maxTokenAge: oldestSeconds }
      const { payload } = await jwtVerify(token, publicKeys, { ...expected, currentDate: new Date(now()) })
      return payload
    },

    async close() {
      await Promise.all([calls.close(), signOutCalls.close()])
    },
  }
}

/**
 * Only where the request cannot have arrived: a refresh token that rotates must not be spent twice. And only while there
 * is time: all tries together take no longer than two calls may.
 */
async function retryUnarrived(request: () => Promise<Response>, timeoutMs: number): Promise<Response> {
  const tooLate = AbortSignal.timeout(timeoutMs / 2)
  for (const wait of RETRY_AFTER_MS) {
    try {
      return await request()
    } catch (error) {
      if (!(error instanceof NeverArrived) || tooLate.aborted) throw error
      await pause(wait)
    }
  }
  return request()
}
