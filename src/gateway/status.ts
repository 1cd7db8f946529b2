// Small answers for machines: alive, able to serve, who am I.
import { admit } from './admission.ts'
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

export async function me(house: House, visit: Visit): Promise<Response> {
  const admission = await admit(house, visit)
  if (admission.outcome === 'visitor') return unauthenticated(house, admission.cookies)
  const { session, expiresAt } = admission.opened
  const { userInfo, userRole } = session
  return jsonAnswer(house, { userInfo, userRole, expiresAt }, { cookies: admission.cookies })
}
