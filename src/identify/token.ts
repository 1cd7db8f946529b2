// The bearer token of a request without a session.

import { rulesForRequest } from '../access/affected-paths.ts'
import type { Rule } from '../config/file.ts'
import { network } from '../config/networks.ts'
import type { GatewayRequest } from '../http/request.ts'
import { requestFields, runInRequest } from '../observe/observed-request.ts'
import { hasToken } from '../util/fetch-metadata.ts'
import type { MaybePromise } from '../util/maybe-promise.ts'
import type { CallerIdentification } from './admission.ts'
import { audiencesOf, type RefusedToken, type TokenClient } from './bearer.ts'
import type { CredentialRequest, IdentifyContext } from './context.ts'

/** RFC 6750, 2.1. */
const CREDENTIALS = /^bearer +([\w.~+/-]+=*)$/i

/** A token is accepted only where the rule for the path allows it. Everywhere else `Authorization` is for the application. */
export function identifyByToken(
  context: IdentifyContext,
  outer: CredentialRequest,
  asked: GatewayRequest,
  identification: CallerIdentification,
): MaybePromise<CallerIdentification> {
  const { rules } = context.auth
  if (!rules.hasBearer || !hasToken(outer.headers)) return identification
  const matching = rulesForRequest(rules, asked, context.settings.BASE_URL)
  return matching[0]?.bearer ? identifyToken(context, outer, asked, identification.cookies, matching) : identification
}

async function identifyToken(
  { settings, auth, observe }: IdentifyContext,
  outer: CredentialRequest,
  { method, path, headers }: GatewayRequest,
  cookies: readonly string[],
  rules: readonly Rule[],
): Promise<CallerIdentification> {
  const token = CREDENTIALS.exec(outer.headers.authorization ?? '')?.[1]
  // Made-up tokens must not reach the provider without a limit.
  const client: TokenClient = {
    owner: network(outer.observed.address),
    count: () => auth.rateLimit.take('ticket', outer),
  }
  const found =
    token === undefined
      ? await refuseMalformed(client)
      : await runInRequest(outer.observed, () => auth.bearers.identify(token, audiencesOf(settings, rules), client))
  if (found === 'limited') return { cookies, failedToken: true, isLimited: true }
  if ('who' in found) {
    const reidentify = async () => {
      const { bearers, rules, settings } = auth.currentPolicy()
      const matching = rulesForRequest(rules, { method, path, headers }, settings.BASE_URL)
      if (token === undefined || !matching[0]?.bearer) return undefined
      const latest = await bearers.reidentify(token, audiencesOf(settings, matching))
      return 'who' in latest ? latest : undefined
    }
    return { program: found, reidentify, cookies }
  }
  const { refused: reason, detail } = found
  observe.report('token_refused', { ...requestFields(outer), reason, ...(detail !== undefined && { detail }) })
  return { cookies, failedToken: true }
}

async function refuseMalformed({ count }: TokenClient): Promise<RefusedToken | 'limited'> {
  return (await count()) ? { refused: 'malformed' } : 'limited'
}
