// Small answers for machines: alive, able to serve, who am I.
import { identify } from './admission.ts'
import { jsonAnswer } from './answers.ts'
import type { House } from './house.ts'
import type { Visit } from './request.ts'
import { unauthenticated } from './visitor.ts'

export async function health(house: House): Promise<Response> {
  return jsonAnswer(house, { status: 'ok' })
}

export async function ready(house: House): Promise<Response> {
  try {
    await house.store.ready()
    return jsonAnswer(house, { status: 'ready' })
  } catch (error) {
    house.log.error({ err: error }, 'not ready')
    return jsonAnswer(house, { status: 'unavailable', reason: 'store' }, { status: 503 })
  }
}

export async function publicKeys(house: House): Promise<Response> {
  const headers = { 'cache-control': 'public, max-age=300' }
  return jsonAnswer(house, await house.identities.publicKeys(), { headers })
}

export async function me(house: House, visit: Visit): Promise<Response> {
  const { opened, cookies } = await identify(house, visit)
  if (!opened) return unauthenticated(house, cookies)
  const { userInfo, userRole } = opened.session
  return jsonAnswer(house, { userInfo, userRole, expiresAt: opened.expiresAt }, { cookies })
}
