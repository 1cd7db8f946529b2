// POST /_menshen/backchannel-logout: the provider ends a user's sessions (OpenID Connect Back-Channel Logout 1.0).
import { hash } from 'node:crypto'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import { z } from 'zod'
import { MenshenError } from '../errors.ts'
import type { Report } from '../events.ts'
import { errorAnswer, jsonAnswer, type OwnAnswer, tooManyAnswer } from '../http/answers.ts'
import type { GatewayRequest } from '../http/request.ts'
import { requestFields } from '../observe/observed-request.ts'
import { InvalidToken, TOLERANCE_SECONDS } from '../provider/id-token.ts'
import type { Provider } from '../provider/provider.ts'
import { type Providers, scopeOf } from '../provider/providers.ts'
import type { EndedSessions } from '../session/listing.ts'
import type { Sessions } from '../session/sessions.ts'
import { quoted } from '../text/text.ts'
import type { RevocableKeys, SignInContext } from './context.ts'

const EVENT = 'http://schemas.openid.net/event/backchannel-logout'
/** Measured from `iat`: some providers send no `exp`. Processed tokens are remembered for longer than that. */
const MAX_TOKEN_AGE_SECONDS = 300

/** Absent or generic, as older providers send it; never that of another kind of token. */
const TYPE = /^(application\/)?(logout\+)?jwt$/i

/** What remains to be checked in a logout token once its signature, issuer, audience and age have been verified. */
const logoutToken = z.object({
  header: z.object({ typ: z.string().regex(TYPE).optional() }),
  claims: z
    .object({
      iss: z.string(),
      sub: z.string().min(1).optional(),
      sid: z.string().min(1).optional(),
      jti: z.string().min(1),
      iat: z.number(),
      exp: z.number().optional(),
      events: z.object({ [EVENT]: z.record(z.string(), z.unknown()) }),
      // An ID token must not pass for a logout token.
      nonce: z.undefined().optional(),
    })
    .refine(({ sub, sid }) => sub !== undefined || sid !== undefined, { path: ['sub'] }),
})

type LogoutClaims = z.infer<typeof logoutToken>['claims']

export async function backchannelLogout(
  context: SignInContext,
  request: GatewayRequest,
  form: URLSearchParams,
): Promise<OwnAnswer> {
  const { auth, pages, observe } = context
  if (!auth.providers.all.some(({ canVerify }) => canVerify)) return errorAnswer(pages, request, 'not_found')
  const logout = await readLogout(context, request, form.get('logout_token') ?? '')
  if (!logout) return refusal(context, request)
  const { provider, claims } = logout
  if (await isRepeated(context, claims)) return repeated(context, request)
  const revokedBefore = await endKeys(auth.personalKeys, provider, claims)
  const ended = await endSessions(auth.sessions, provider, claims)
  // A session may have created a key until it ended.
  const revoked = revokedBefore + (await endKeys(auth.personalKeys, provider, claims))
  // Only now, so that a provider can resend a token that we could not carry out.
  if (!(await remember(context, claims))) return repeated(context, request)
  const fields = {
    by: 'provider',
    provider: provider.plan.id,
    ended: ended.count,
    ...(ended.user === undefined ? {} : { user: ended.user }),
  }
  if (revoked > 0)
    observe.report('key_revoked', { ...requestFields(request), ...logoutSubject(claims), by: 'provider', revoked })
  // After a sign-out here, the provider notifies us of it, too.
  const code = ended.count > 0 ? 'session_ended' : 'no_session_to_end'
  observe.report(code, { ...requestFields(request), ...logoutSubject(claims), ...fields })
  return jsonAnswer(pages, {})
}

/**
 * With `sid`, ends only the sessions of that device; without it, all sessions of the user. A device whose `sid` was never sent to us
 * may be the one that is meant, so the user's sessions without a known `sid` end, too.
 */
async function endSessions(
  sessions: Sessions,
  provider: Provider,
  { iss, sub, sid }: LogoutClaims,
): Promise<EndedSessions> {
  const user = sub === undefined ? undefined : { sub, provider: scopeOf(provider) }
  if (sid === undefined) return user ? sessions.endAllOfSubject(user) : { count: 0 }
  const ended = await sessions.endProviderSession({ issuer: iss, sid })
  return ended.count > 0 || !user ? ended : sessions.endUnknownDevicesOfSubject(user)
}

/** A sign-out on one device (`sid`) leaves the keys as they are; a sign-out of the user everywhere revokes them. */
async function endKeys(keys: RevocableKeys, provider: Provider, { sub, sid }: LogoutClaims): Promise<number> {
  return sub === undefined || sid !== undefined ? 0 : keys.endAllOfSubject({ sub, provider: scopeOf(provider) })
}

/** Without a `sub`, a hash identifies the provider's session: its id is only for the provider. */
function logoutSubject({ sub, sid = '' }: LogoutClaims): { sub: string } | { session: string } {
  return sub === undefined ? { session: hash('sha256', sid, 'base64url') } : { sub }
}

/** Only refused requests are counted: if the provider signs out a thousand users at the same time, each request must be accepted. */
async function refusal(context: SignInContext, request: GatewayRequest): Promise<OwnAnswer> {
  if (!(await context.auth.rateLimit.admits('logout', request))) return tooManyAnswer(context.pages, request)
  return jsonAnswer(context.pages, { error: 'invalid_request' }, { status: 400 })
}

function repeated(context: SignInContext, request: GatewayRequest): Promise<OwnAnswer> {
  reportRefused(context.observe.report, request, new InvalidToken('logout token', 'jti', quoted('it was used before')))
  return refusal(context, request)
}

/** Reports the claim that is wrong. */
function reportRefused(report: Report, request: GatewayRequest, error: unknown): void {
  const { code = 'unreadable' } = error as { code?: string }
  const claim = error instanceof InvalidToken ? { claim: error.claim } : {}
  const detail = error instanceof MenshenError ? { detail: error.message } : {}
  report('logout_token_refused', { ...requestFields(request), reason: code, ...claim, ...detail })
}

interface Logout {
  readonly provider: Provider
  readonly claims: LogoutClaims
}

/** `iss` names the issuer of the token; the signature has to prove it. */
async function readLogout(
  { auth, observe, now }: SignInContext,
  request: GatewayRequest,
  token: string,
): Promise<Logout | undefined> {
  try {
    const { iss = '' } = decodeJwt(token)
    const provider = await signerOf(auth.providers, iss)
    const signed = await provider.verify(token, ['iat', 'jti'], 'logout token')
    const read = logoutToken.safeParse({ header: decodeProtectedHeader(token), claims: signed })
    if (!read.success) throw new InvalidToken('logout token', wrongIn(read.error))
    const { claims } = read.data
    const age = now() / 1000 - claims.iat
    if (age > MAX_TOKEN_AGE_SECONDS)
      throw new InvalidToken('logout token', 'iat', quoted(`it is ${Math.round(age)} s old`))
    if (age < -TOLERANCE_SECONDS)
      throw new InvalidToken(
        'logout token',
        'iat',
        quoted(`it is ${Math.round(-age)} s ahead of the clock of this machine`),
      )
    return { provider, claims }
  } catch (error) {
    reportRefused(observe.report, request, error)
    return undefined
  }
}

/** The first header or claim that is wrong. */
function wrongIn({ issues }: z.ZodError): string {
  return String(issues[0]?.path[1] ?? 'form')
}

async function signerOf({ all }: Providers, issuer: string): Promise<Provider> {
  for (const provider of all) {
    // A provider whose metadata is unavailable does not block the others.
    if (provider.canVerify && (await provider.hasIssuer(issuer).catch(() => false))) return provider
  }
  throw new InvalidToken('logout token', 'iss', quoted('it is of an issuer that is none of our providers'))
}

async function isRepeated({ store }: SignInContext, claims: LogoutClaims): Promise<boolean> {
  return (await store.read(storeKey(claims))) !== undefined
}

/** False if it was already remembered. */
async function remember({ store, now }: SignInContext, claims: LogoutClaims): Promise<boolean> {
  const expiresAt = now() + 2 * MAX_TOKEN_AGE_SECONDS * 1000
  return (await store.create(storeKey(claims), { value: new Uint8Array(), expiresAt, labels: [] })) !== undefined
}

/** A `jti` is unique for its issuer: one provider must not use up that of another. */
function storeKey({ iss, jti }: LogoutClaims): string {
  return `logout:${hash('sha256', JSON.stringify([iss, jti]), 'base64url')}`
}
