// Errors of the API: JSON with a code for programs and a message for people.

import { jsonAnswer, languageOf, type Pages, type ResponseAnswer } from '../http/answers.ts'
import type { GatewayRequest } from '../http/request.ts'
import type { Phrase } from '../text/text.ts'

/** Every code with its status. */
export const PROBLEMS = {
  bad_request: 400,
  invalid_key: 401,
  insufficient_scope: 403,
  outside_network: 403,
  not_found: 404,
  method_not_allowed: 405,
  too_many: 429,
  broken: 500,
  unavailable: 503,
} as const

export type ProblemCode = keyof typeof PROBLEMS

export interface ApiProblem {
  readonly problem: ProblemCode
  readonly message: Phrase
  readonly headers?: Readonly<Record<string, string>>
}

export function apiProblem(problem: ProblemCode, message: Phrase, headers: ApiProblem['headers'] = {}): ApiProblem {
  return { problem, message, headers }
}

export function isProblem(result: object | undefined): result is ApiProblem {
  return result !== undefined && 'problem' in result
}

export function problemAnswer(
  pages: Pages,
  request: GatewayRequest,
  { problem, message, headers = {} }: ApiProblem,
): ResponseAnswer {
  const status = PROBLEMS[problem]
  const outcome = status >= 500 ? 'error' : [401, 403, 429].includes(status) ? 'refused' : 'own'
  const body = { error: problem, message: languageOf(pages, request).render(message) }
  return jsonAnswer(pages, body, { status, outcome, headers })
}
