// POST /_menshen/backchannel-logout: the provider ends a user's sessions (OpenID Connect Back-Channel Logout 1.0).
import { hash } from 'node:crypto'
import { z } from 'zod'
import { factsOf } from '../errors.ts'
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
  nonce: z.undefined(),
})

export async function backchannelLogout(house: House, _visit: Visit, form: URLSearchParams): Promise<Response> {
  if (!house.provider.canVerify) return noticeAnswer(house, 'not_found')
  try {
    const claims = logoutClaims.parse(await house.provider.verify(form.get('logout_token') ?? '', OLDEST_SECONDS))
    if (await isRepeated(house, claims.jti)) throw new Error('this logout token was used before')
    const ended = await house.sessions.endAllOf(claims.sub)
    house.log.info({ ended }, 'ended by the provider')
    return jsonAnswer(house, {})
  } catch (error) {
    house.log.warn(factsOf(error), 'a logout token was refused')
    return jsonAnswer(house, { error: 'invalid_request' }, { status: 400 })
  }
}

async function isRepeated({ store, now }: House, id: string): Promise<boolean> {
  const expiresAt = now() + 2 * OLDEST_SECONDS * 1000
  const entry = { value: new Uint8Array(), expiresAt, labels: [] }
  return !(await store.create(`logout:${hash('sha256', id, 'base64url')}`, entry))
}
