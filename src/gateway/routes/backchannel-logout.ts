// POST /_menshen/backchannel-logout: the provider ends a user's sessions (OpenID Connect Back-Channel Logout 1.0).
import { hash } from 'node:crypto'
import { z } from 'zod'
import type { GatewayContext } from '../context.ts'
import { jsonAnswer, noticeAnswer } from '../http/page-answers.ts'
import type { Visit } from '../http/request.ts'

const EVENT = 'http://schemas.openid.net/event/backchannel-logout'
const OLDEST_SECONDS = 300

/** What is left of a logout token once its signature, issuer, audience and age have been verified. */
const logoutClaims = z.object({
  sub: z.string().min(1),
  jti: z.string().min(1),
  events: z.record(z.string(), z.unknown()).refine(events => EVENT in events),
  // An ID token must not pass for a logout token.
  nonce: z.undefined().optional(),
})

export async function backchannelLogout(
  context: GatewayContext,
  _visit: Visit,
  form: URLSearchParams,
): Promise<Response> {
  if (!context.provider.canVerify) return noticeAnswer(context, 'not_found')
  const claims = await readClaims(context, form.get('logout_token') ?? '')
  if (!claims || (await isRepeated(context, claims.jti))) return refusal(context)
  const ended = await context.sessions.endAllOf(claims.sub)
  // Only now: a provider whose token we could not carry out may send it again.
  if (!(await remember(context, claims.jti))) return refusal(context)
  context.report('session_ended', { by: 'provider', sub: claims.sub, ended })
  return jsonAnswer(context, {})
}

function refusal(context: GatewayContext): Response {
  return jsonAnswer(context, { error: 'invalid_request' }, { status: 400 })
}

async function readClaims(context: GatewayContext, token: string): Promise<z.infer<typeof logoutClaims> | undefined> {
  try {
    return logoutClaims.parse(await context.provider.verify(token, OLDEST_SECONDS))
  } catch (error) {
    const { code = 'unreadable' } = error as { code?: string }
    context.report('logout_token_refused', { reason: code })
    return undefined
  }
}

async function isRepeated({ store }: GatewayContext, id: string): Promise<boolean> {
  return (await store.read(storeKey(id))) !== undefined
}

/** False if it was remembered already. */
async function remember({ store, now }: GatewayContext, id: string): Promise<boolean> {
  const expiresAt = now() + 2 * OLDEST_SECONDS * 1000
  return store.create(storeKey(id), { value: new Uint8Array(), expiresAt, labels: [] })
}

function storeKey(id: string): string {
  return `logout:${hash('sha256', id, 'base64url')}`
}
