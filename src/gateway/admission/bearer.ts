// A request with a token in place of a session: whose it is, if the rule for its path lets machines in at all.
import { readablePath } from '../../access/canonical-path.ts'
import { during } from '../../observe/observed-request.ts'
import type { GatewayContext } from '../context.ts'
import type { MaybePromise } from '../http/maybe-promise.ts'
import { bringsToken, type Visit } from '../http/request.ts'
import { whoAsks } from '../http/who-asks.ts'
import type { Caller } from './admit.ts'

/** RFC 6750, 2.1. */
const CREDENTIALS = /^bearer +([\w.~+/-]+=*)$/i

/** A session counts before a token: then `Authorization` is the application's own business, as it is without such a rule. */
export function withBearer(
  context: GatewayContext,
  visit: Visit,
  { method, path }: Visit,
  caller: Caller,
): MaybePromise<Caller> {
  if (!context.rules.hasBearer || !bringsToken(visit.headers)) return caller
  const rule = context.rules.ruleFor(method, readablePath(path), undefined)
  return rule.bearer ? identify(context, visit, { method, path }, caller, audienceOf(context, rule.audience)) : caller
}

function audienceOf(
  { settings }: Pick<GatewayContext, 'settings'>,
  audience: string | readonly string[] | undefined,
): readonly string[] | undefined {
  return audience === undefined ? settings.BEARER_AUDIENCE : [audience].flat()
}

async function identify(
  context: Pick<GatewayContext, 'bearers' | 'report' | 'settings' | 'inUse'>,
  visit: Visit,
  { method, path }: Pick<Visit, 'method' | 'path'>,
  { cookies }: Caller,
  audience: readonly string[] | undefined,
): Promise<Caller> {
  const { bearers, report } = context
  const token = CREDENTIALS.exec(visit.headers.authorization ?? '')?.[1]
  const found =
    token === undefined ? { refused: 'form' } : await during(visit.observed, () => bearers.identify(token, audience))
  if ('who' in found) {
    const identifyAgain = async () => {
      const { bearers, rules, settings } = context.inUse()
      const rule = rules.ruleFor(method, readablePath(path), undefined)
      if (token === undefined || !rule.bearer) return undefined
      const again = await bearers.identify(token, audienceOf({ settings }, rule.audience))
      return 'who' in again ? again : undefined
    }
    return { bearer: found, identifyAgain, cookies }
  }
  report('token_refused', { ...whoAsks(context, visit), reason: found.refused })
  return { cookies, failedToken: true }
}

/** RFC 6750, 3: what is wrong with it. */
export const INVALID_TOKEN = 'Bearer error="invalid_token"'
export const INSUFFICIENT = 'Bearer error="insufficient_scope"'
