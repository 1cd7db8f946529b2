// A request with a token in place of a session: whose it is, if the rule for its path lets machines in at all.
import { readablePath } from '../../access/canonical-path.ts'
import { during } from '../../observe/observed-request.ts'
import type { Audiences } from '../../provider/provider.ts'
import type { Rule } from '../../settings/config/config-file.ts'
import { network } from '../../settings/networks/networks.ts'
import type { GatewayContext } from '../context.ts'
import type { MaybePromise } from '../http/maybe-promise.ts'
import { bringsToken, type Visit } from '../http/request.ts'
import { clientAddress } from '../http/trusted-proxies.ts'
import { whoAsks } from '../http/who-asks.ts'
import type { Admission, Caller } from './admit.ts'
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
  const [rule, ...others] = context.rules.rulesFor(method, readablePath(path))
  if (!rule?.bearer) return caller
  return identify(context, visit, { method, path }, caller, audiencesOf(context, [rule, ...others]))
}

/** An application may read the path in more ways than one: the token has to be for each of them. */
function audiencesOf({ settings }: Pick<GatewayContext, 'settings'>, rules: readonly Rule[]): Audiences {
  const named = rules
    .filter(({ bearer }) => bearer)
    .map(({ audience }) => (audience === undefined ? settings.BEARER_AUDIENCE : [audience].flat()))
  const byText = new Map(named.map(names => [JSON.stringify(names), names]))
  return [...byText.values()]
}

async function identify(
  context: Pick<GatewayContext, 'bearers' | 'report' | 'settings' | 'inUse' | 'rateLimit'>,
  visit: Visit,
  { method, path }: Pick<Visit, 'method' | 'path'>,
  { cookies }: Caller,
  audiences: Audiences,
): Promise<Caller> {
  const { bearers, report } = context
  const token = CREDENTIALS.exec(visit.headers.authorization ?? '')?.[1]
  const bringer = bringerOf(context, visit)
  const found =
    token === undefined
      ? await refuseForm(bringer)
      : await during(visit.observed, () => bearers.identify(token, audiences, bringer))
  if (found === 'limited') return { cookies, failedToken: true, isLimited: true }
  if ('who' in found) {
    const identifyAgain = async () => {
      const { bearers, rules, settings } = context.inUse()
      const [rule, ...others] = rules.rulesFor(method, readablePath(path))
      if (token === undefined || !rule?.bearer) return undefined
      const again = await bearers.identifyAgain(token, audiencesOf({ settings }, [rule, ...others]))
      return 'who' in again ? again : undefined
    }
    return { bearer: found, identifyAgain, cookies }
  }
  const { refused: reason, detail } = found
  report('token_refused', { ...whoAsks(context, visit), reason, ...(detail !== undefined && { detail }) })
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
const INSUFFICIENT = 'Bearer error="insufficient_scope"'

/** That it is not enough, and what would be, if it is the scopes that are missing. */
export function insufficient({ missingScopes }: Pick<Admission, 'missingScopes'>): string {
  return missingScopes ? `${INSUFFICIENT}, scope="${missingScopes.join(' ')}"` : INSUFFICIENT
}
