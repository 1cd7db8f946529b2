// POST /_menshen/backchannel-logout: the provider ends a user's sessions (OpenID Connect Back-Channel Logout 1.0).
import { hash } from 'node:crypto'
import { z } from 'zod'
import { jsonAnswer, noticeAnswer } from './answers.ts'
import type { House } from './house.ts'
import type { Visit } from './request.ts'

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

export async function backchannelLogout(house: House, _visit: Visit, form: URLSearchParams): Promise<Response> {
  if (!house.provider.canVerify) return noticeAnswer(house, 'not_found')
  const claims = await readClaims(house, form.get('logout_token') ?? '')
  if (!claims || (await isRepeated(house, claims.jti))) return refusal(house)
  const ended = await house.sessions.endAllOf(claims.sub)
  // Only now: a provider whose token we could not carry out may send it again.
  if (!(await remember(house, claims.jti))) return refusal(house)
  house.log.info({ ended }, 'ended by the provider')
  return jsonAnswer(house, {})
}

function refusal(house: House): Response {
  return jsonAnswer(house, { error: 'invalid_request' }, { status: 400 })
}

async function readClaims(house: House, token: string): Promise<z.infer<typeof logoutClaims> | undefined> {
  try {
    return logoutClaims.parse(await house.provider.verify(token, OLDEST_SECONDS))
  } catch (error) {
    const { code = 'unreadable' } = error as { code?: string }
    house.log.warn({ reason: code }, 'a logout token was refused')
    return undefined
  }
}

async function isRepeated({ store }: House, id: string): Promise<boolean> {
  return (await store.read(placeOf(id))) !== undefined
}

/** False if it was remembered already. */
async function remember({ store, now }: House, id: string): Promise<boolean> {
  const expiresAt = now() + 2 * OLDEST_SECONDS * 1000
  return store.create(placeOf(id), { value: new Uint8Array(), expiresAt, labels: [] })
}

function placeOf(id: string): string {
  return `logout:${hash('sha256', id, 'base64url')}`
}
