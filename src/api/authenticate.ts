// Identifies the caller of the API: a machine of the configuration with `api`, by its key in `Authorization: Bearer` or
// `X-Menshen-Key`. Cookies, passwords and keys in the address are never read, so no browser can be made to call the API. The store
// is not accessed.

import type { GatewayRequest } from '../http/request.ts'
import { isWithinNetworks, type KeyCaller } from '../keys/callers.ts'
import { requestFields } from '../observe/observed-request.ts'
import { type SessionUser, userFields } from '../session/fields.ts'
import { type Phrase, phrase } from '../text/text.ts'
import { keyIn, keySha256 } from '../util/key-form.ts'
import type { ApiContext, Operation } from './context.ts'
import { type ApiProblem, apiProblem } from './problem.ts'

/** RFC 9110 requires a challenge with every 401. */
const CHALLENGE = { 'www-authenticate': 'Bearer realm="menshen"' }
/** Keyed by the reason in the log. Only a caller who has the key learns that it has expired, or of which kind it is. */
const REFUSALS = {
  missing: invalidKey(phrase('api.key_missing')),
  malformed: invalidKey(phrase('api.key_malformed')),
  several: invalidKey(phrase('api.key_several')),
  unknown: invalidKey(phrase('api.key_unknown')),
  expired: invalidKey(phrase('api.key_expired')),
  not_accepted: invalidKey(phrase('api.key_without_api')),
}
const TOO_MANY = apiProblem('too_many', phrase('api.too_many'), { 'retry-after': '60' })
const OUTSIDE_NETWORK = apiProblem('outside_network', phrase('api.outside_network'))

export async function authenticate(context: ApiContext, request: GatewayRequest): Promise<KeyCaller | ApiProblem> {
  const { api, auth, observe } = context
  const presented = keyIn(request.headers, { acceptsPassword: false })
  if (!presented) return REFUSALS.missing

  /** Made-up keys are rate-limited like those at rules. Reports do not contain the key. */
  async function refuse(reason: keyof typeof REFUSALS, user?: SessionUser): Promise<ApiProblem> {
    if (!(await auth.rateLimit.admits('ticket', request))) return TOO_MANY
    const { method, observed } = request
    const fields = { ...requestFields(request), ...(user && userFields(user)), reason }
    observe.report('key_refused', { ...fields, method, path: observed.path })
    return REFUSALS[reason]
  }

  if ('problem' in presented) return refuse(presented.problem)
  const sha256 = keySha256(presented.key)
  const machine = api.machines.identifyMachine(sha256)
  if ('refused' in machine) return refuse(machine.refused, machine.user)
  if (!machine.api) return refuse('not_accepted', machine.user)
  request.observed.user = machine.user.userInfo.username
  if (!isWithinNetworks(machine, request.observed.address)) {
    reportRefused(context, request, machine, 'outside_network')
    return OUTSIDE_NETWORK
  }
  api.use.note(sha256, machine, requestFields(request))
  return machine
}

/** `undefined` if the machine is allowed to call the operation. */
export function scopeProblem(
  context: ApiContext,
  request: GatewayRequest,
  machine: KeyCaller,
  { scope }: Pick<Operation, 'scope'>,
): ApiProblem | undefined {
  if (scope === undefined || machine.api?.has(scope)) return undefined
  reportRefused(context, request, machine, 'insufficient_scope')
  return apiProblem('insufficient_scope', phrase('api.insufficient_scope', { scope }))
}

function reportRefused({ observe }: ApiContext, request: GatewayRequest, machine: KeyCaller, reason: string): void {
  const { method, observed } = request
  const fields = { ...requestFields(request), ...userFields(machine.user), reason }
  observe.report('refused', {
    ...fields,
    method,
    path: observed.path,
    role: machine.who.role,
    key: machine.who.keyKind,
  })
}

function invalidKey(given: Phrase): ApiProblem {
  return apiProblem('invalid_key', given, CHALLENGE)
}
