// What the user gets when something of ours failed: a page (or JSON for a script), never a stack.
import { MenshenError } from '../errors.ts'
import { NOTICES } from '../pages/notice.ts'
import { jsonAnswer, noticeAnswer } from './answers.ts'
import type { House } from './house.ts'
import { isByScript, type Visit } from './request.ts'

const RETRY_AFTER_SECONDS = '5'

export function failure(house: House, visit: Visit, error: unknown): Response {
  house.log.error({ err: error, method: visit.method, path: visit.path }, 'a request failed')
  const unavailable = error instanceof MenshenError && error.code === 'store_unavailable'
  const name = unavailable ? 'unavailable' : 'broken'
  const headers: Record<string, string> = unavailable ? { 'retry-after': RETRY_AFTER_SECONDS } : {}
  if (!isByScript(visit)) return noticeAnswer(house, name, { headers })
  const { status, text } = NOTICES[name]
  return jsonAnswer(house, { error: name, message: text }, { status, headers })
}
