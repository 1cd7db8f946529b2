// The API for administration: /_menshen/api/… at BASE_URL. What happens to a call, in order:
//
//   key           without a valid one of a machine with `api`    401, or 429 after too many
//   network       outside the machine's `networks`               403
//   path          unknown                                        404
//   scope         not among the machine's `api`                  403
//   method        not one of the path                            405
//   parameters    unknown, repeated, empty or invalid            400
//   operation     sessions.ts, keys.ts, audit.ts, openapi.ts

import { isTemporary, jsonAnswer, noContentAnswer, type OwnAnswer, reportFailure } from '../http/answers.ts'
import type { GatewayRequest } from '../http/request.ts'
import { ANY_METHOD, type RouteTable } from '../http/route-table.ts'
import { OWN_PATHS } from '../paths.ts'
import { shortKey } from '../session/fields.ts'
import { phrase } from '../text/text.ts'
import { AUDIT_OPERATIONS } from './audit.ts'
import { authenticate, scopeProblem } from './authenticate.ts'
import type { ApiContext, Operation } from './context.ts'
import { KEY_OPERATIONS } from './keys.ts'
import { openApiDocument, openApiSchema } from './openapi.ts'
import { type ApiProblem, apiProblem, isProblem, problemAnswer } from './problem.ts'
import { readQuery } from './query.ts'
import { SESSION_OPERATIONS } from './sessions.ts'

export const OPERATIONS: readonly Operation[] = [
  ...SESSION_OPERATIONS,
  ...KEY_OPERATIONS,
  ...AUDIT_OPERATIONS,
  {
    method: 'GET',
    path: '/openapi.json',
    id: 'openApi',
    summary: 'This document.',
    answer: openApiSchema,
    run: async ({ context }) => openApiDocument(OPERATIONS, context.settings.BASE_URL),
  },
]

/** Listed in the error for an unknown path. */
const PATHS = [...new Set(OPERATIONS.map(({ path }) => OWN_PATHS.api.slice(0, -1) + path))]

export const API_ROUTES: RouteTable<ApiContext> = { [OWN_PATHS.api]: { [ANY_METHOD]: answerCall } }

async function answerCall(context: ApiContext, request: GatewayRequest): Promise<OwnAnswer> {
  const { pages } = context
  request.observed.path = shownPath(request.path)
  try {
    const result = await call(context, request)
    if (isProblem(result)) return problemAnswer(pages, request, result)
    return result ? jsonAnswer(pages, result) : noContentAnswer(pages)
  } catch (error) {
    return problemAnswer(pages, request, failureOf(context, request, error))
  }
}

const SEGMENTS = new Set(OPERATIONS.flatMap(({ path }) => path.split('/')))

/** As shown in logs: with only the first ten characters of an id, wherever it is. */
function shownPath(path: string): string {
  const segments = path.slice(OWN_PATHS.api.length).split('/')
  return OWN_PATHS.api + segments.map(each => (SEGMENTS.has(each) ? each : shortKey(each))).join('/')
}

function failureOf({ observe }: ApiContext, request: GatewayRequest, error: unknown): ApiProblem {
  reportFailure(observe.report, request, error)
  return isTemporary(error)
    ? apiProblem('unavailable', phrase('api.unavailable'), { 'retry-after': '5' })
    : apiProblem('broken', phrase('api.broken'))
}

async function call(context: ApiContext, request: GatewayRequest) {
  const machine = await authenticate(context, request)
  if (isProblem(machine)) return machine
  const { operations, id } = findOperations(request.path)
  const [first] = operations
  if (!first) return apiProblem('not_found', phrase('api.no_such_path', { paths: PATHS }))
  const forbidden = scopeProblem(context, request, machine, first)
  if (forbidden) return forbidden
  const method = request.method === 'HEAD' ? 'GET' : request.method
  const operation = operations.find(each => each.method === method)
  if (!operation) return methodNotAllowed(operations)
  const query = readQuery(request.search, operation)
  return isProblem(query) ? query : operation.run({ context, request, machine, query, id })
}

/** The operations of a path, which all have the same scope. */
function findOperations(path: string): { operations: readonly Operation[]; id: string } {
  const [, resource, id, ...more] = path.slice(OWN_PATHS.api.length - 1).split('/')
  const wanted = id === undefined ? `/${resource}` : `/${resource}/{id}`
  const isPath = more.length === 0 && id !== ''
  return { operations: isPath ? OPERATIONS.filter(operation => operation.path === wanted) : [], id: id ?? '' }
}

function methodNotAllowed(operations: readonly Operation[]) {
  const methods = operations.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
  return apiProblem('method_not_allowed', phrase('api.method_not_allowed', { methods }), {
    allow: methods.join(', '),
  })
}
