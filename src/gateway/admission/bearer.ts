// A request with a token in place of a session: whose it is, if the rule for its path lets machines in at all.
import { readablePath } from '../../access/canonical-path.ts'
import { during } from '../../observe/observed-request.ts'
import { network } from '../../settings/networks/networks.ts'
import type { GatewayContext } from '../context.ts'
import type { MaybePromise } from '../http/maybe-promise.ts'
import { bringsToken, type Visit } from '../http/request.ts'
import { clientAddress } from '../http/trusted-proxies.ts'
import { whoAsks } from '../http/who-asks.ts'
import type { Caller } from './admit.ts'
import type { Bringer, RefusedToken } from './bearer-callers.ts'

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
  return rule.bearer ? identify(context, visit, caller, audienceOf(context, rule.audience)) : caller
}

function audienceOf(
  { settings }: Pick<GatewayContext, 'settings'>,
  audience: string | readonly string[] | undefined,
): readonly string[] | undefined {
  return audience === undefined ? settings.BEARER_AUDIENCE : [audience].flat()
}

async function identify(
  context: Pick<GatewayContext, 'bearers' | 'report' | 'settings' | 'rateLimit'>,
  visit: Visit,
  { cookies }: Caller,
  audience: readonly string[] | undefined,
): Promise<Caller> {
  const { bearers, report } = context
  const token = CREDENTIALS.exec(visit.headers.authorization ?? '')?.[1]
  const bringer = bringerOf(context, visit)
  const found =
    token === undefined
      ? await refuseForm(bringer)
      : await during(visit.observed, () => bearers.identify(token, audience, bringer))
  if (found === 'limited') return { cookies, failedToken: true, isLimited: true }
  if ('who' in found) {
    const isValid = async () => token !== undefined && bearers.isValid(token, audience)
    return { bearer: found, isValid, cookies }
  }
  report('token_refused', { ...whoAsks(context, visit), reason: found.refused })
  return { cookies, failedToken: true }
}

/** Made-up tokens must not reach the provider without a limit. */
function bringerOf({ settings, rateLimit }: Pick<GatewayContext, 'settings' | 'rateLimit'>, visit: Visit): Bringer {
  return {
    owner: network(clientAddress(settings.TRUSTED_PROXIES, visit)),
    count: () => rateLimit.take('ticket', visit),
  }
}

async function refuseForm({ count }: Bringer): Promise<RefusedToken | 'limited'> {
  return (await count()) ? { refused: 'form' } : 'limited'
}

/** RFC 6750, 3: what is wrong with it. */
export const INVALID_TOKEN = 'Bearer error="invalid_token"'
export const INSUFFICIENT = 'Bearer error="insufficient_scope"'
