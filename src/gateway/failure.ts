// What the user gets when something of ours failed: a page (or JSON for a script), never a stack.
import { MenshenError } from '../errors.ts'
import { apology } from './answers.ts'
import type { House } from './house.ts'
import type { Visit } from './request.ts'

const RETRY_AFTER = { 'retry-after': '5' }

export function failure(house: House, visit: Visit, error: unknown): Response {
  house.log.error({ err: error, method: visit.method, path: visit.path }, 'a request failed')
  const unavailable = error instanceof MenshenError && error.code === 'store_unavailable'
  return unavailable ? apology(house, visit, 'unavailable', { headers: RETRY_AFTER }) : apology(house, visit, 'broken')
}
