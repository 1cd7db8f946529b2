// Applies the rules to the caller of a request.

import { decideRequest, rulesForRequest, shadowDecision } from '../access/affected-paths.ts'
import { decodedPath, shownPath } from '../access/ambiguous-paths.ts'
import { type UnmetCondition, unmetOf } from '../access/conditions.ts'
import type { Subject } from '../access/roles.ts'
import { type Decision, isClosed, lacksScopes } from '../access/rules.ts'
import type { Rule } from '../config/file.ts'
import { callerOf, RequestConditionContext } from '../http/caller.ts'
import type { GatewayRequest } from '../http/request.ts'
import { requestFields } from '../observe/observed-request.ts'
import type { Admission, CallerIdentification } from './admission.ts'
import type { IdentifyContext } from './context.ts'
import { scopesOf } from './protected-resources.ts'

/** Public pages admit visitors, too. A signed-in user is identified there as well. */
export function applyRules(
  context: IdentifyContext,
  request: GatewayRequest,
  identification: CallerIdentification,
): Admission {
  const { auth, settings } = context
  const { rules } = auth
  const subject = callerOf(identification)?.who
  const shadow = shadowDecision(rules, request, subject, settings.BASE_URL)
  if (shadow) reportShadow(context, request, identification, refusalOf(context, request, identification, shadow))
  const decision = decideRequest(rules, request, subject, settings.BASE_URL)
  const { problem } = decision
  if (problem) return { ...identification, outcome: 'unreadable', destinationProblem: problem }
  const refusal = refusalOf(context, request, identification, decision)
  return refusal ? denied(context, request, identification, refusal) : { ...identification, outcome: 'admitted' }
}

/** Why a decision does not admit a caller: the rule is not for them, or one of its conditions is not met. */
interface Refusal {
  readonly rule: Rule
  readonly unmet?: UnmetCondition
}

/** `undefined` if the decision admits the caller. */
function refusalOf(
  { settings, now }: IdentifyContext,
  request: GatewayRequest,
  identification: CallerIdentification,
  { rule, isAdmitted, conditions }: Decision,
): Refusal | undefined {
  if (!isAdmitted) return { rule }
  if (!conditions) return undefined
  const at = now()
  const context = new RequestConditionContext(request, identification, settings.BASE_URL, at)
  const unmet = unmetOf(conditions, context, at)
  return unmet && { rule, unmet }
}

/** Rules with `shadow` refuse no request: what they would have refused is reported. */
function reportShadow(
  { observe }: IdentifyContext,
  request: GatewayRequest,
  identification: CallerIdentification,
  refusal: Refusal | undefined,
): void {
  if (!refusal) return
  const { rule, unmet } = refusal
  const { method, path } = request
  const caller = callerOf(identification)
  observe.report('shadow_refused', {
    ...requestFields(request, caller),
    rule: unmet?.rule ?? rule,
    method,
    path: shownPath(decodedPath(path)),
    role: caller?.who.role,
    ...(unmet && { reason: unmet.code }),
  })
}

function denied(
  { auth: { rules }, resources, settings }: IdentifyContext,
  request: GatewayRequest,
  identification: CallerIdentification,
  { rule, unmet }: Refusal,
): Admission {
  const subject = callerOf(identification)?.who
  const denied = { ...identification, resource: resources?.challengeOf(rules.rulesFor(request.method, request.path)) }
  if (unmet) return notMet(denied, unmet)
  if (!subject && identification.isProviderUnavailable) return { ...denied, outcome: 'unavailable' }
  if (!subject) return { ...denied, outcome: 'visitor', ...(rule.keys && { acceptsKey: true as const }) }
  const missing = subject.isBearer ? missingScopes(rulesForRequest(rules, request, settings.BASE_URL), subject) : []
  return {
    ...denied,
    outcome: 'refused',
    ...(!isClosed(rule) && { refusedBy: rule }),
    ...(missing.length > 0 && { missingScopes: missing }),
  }
}

function notMet(identification: CallerIdentification, unmet: UnmetCondition): Admission {
  const { rule: refusedBy } = unmet
  // A program with a key cannot sign in again.
  if (unmet.code === 'step_up' && identification.program?.who.keyKind)
    return { ...identification, outcome: 'refused', refusedBy, condition: 'step_up_failed' }
  if (unmet.code === 'step_up') return { ...identification, outcome: 'step_up', refusedBy, demands: unmet.demands }
  return { ...identification, outcome: 'refused', refusedBy, condition: unmet.code }
}

function missingScopes(rules: readonly Rule[], subject: Subject): string[] {
  return rules.some(rule => lacksScopes(rule, subject)) ? scopesOf(rules) : []
}
