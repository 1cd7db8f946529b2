// Callers with a key. A key is accepted only where the rule for the path allows it, and never for our own pages. Like a token it is
// read only without a session: a caller who has both is the user of the session, so that a key adds nothing to what a browser
// sends.

import type { Rules } from '../access/rules.ts'
import type { Report } from '../events.ts'
import type { RateLimit } from '../http/rate-limit.ts'
import type { GatewayRequest } from '../http/request.ts'
import type { CallerIdentification } from '../identify/admission.ts'
import type { CredentialRequest, IdentifyByKey } from '../identify/context.ts'
import { requestFields, runInRequest } from '../observe/observed-request.ts'
import { userFields } from '../session/fields.ts'
import { hasToken } from '../util/fetch-metadata.ts'
import { isKey, keyIn, keySha256 } from '../util/key-form.ts'
import { andThen } from '../util/maybe-promise.ts'
import { isWithinNetworks, type KeyCallers, type RefusedKey } from './callers.ts'
import type { KeyUse } from './use.ts'

export interface KeyOptions {
  readonly rules: Rules
  readonly callers: KeyCallers
  readonly use: KeyUse
  /** The machines of the current configuration, for open streams. */
  readonly current: () => { readonly rules: Rules; readonly callers: KeyCallers }
  readonly rateLimit: RateLimit
  readonly report: Report
}

export function createIdentifyByKey({ rules, callers, use, current, rateLimit, report }: KeyOptions): IdentifyByKey {
  /** Counted like tokens that are not valid. The key is in no report. */
  async function refuse(
    outer: CredentialRequest,
    { method, path }: GatewayRequest,
    { refused: reason, user }: RefusedKey,
  ): Promise<CallerIdentification> {
    const isWithinLimit = await rateLimit.admits('ticket', outer)
    if (!isWithinLimit) return { cookies: [], failedToken: true, isLimited: true }
    report('key_refused', { ...requestFields(outer), ...(user && userFields(user)), reason, method, path })
    return { cookies: [], failedToken: true, keyProblem: 'invalid_key' }
  }

  function createReidentify(outer: CredentialRequest, { method, path }: GatewayRequest, sha256: string) {
    const { address } = outer.observed
    return async () => {
      const { rules, callers } = current()
      if (!rules.rulesFor(method, path)[0]?.keys) return undefined
      const latest = await callers.identify(sha256)
      return 'refused' in latest || !isWithinNetworks(latest, address) ? undefined : latest
    }
  }

  return (outer, asked, identification) => {
    const { method, path } = asked
    const presented = keyIn(outer.headers)
    if (!presented) return undefined
    const [rule] = rules.rulesFor(method, path)
    if (!rule?.keys) {
      if (!('key' in presented) || rule?.public)
        return isKey(tokenIn(outer)) ? { ...identification, cookies: [] } : undefined
      report('key_refused', { ...requestFields(outer), reason: 'not_accepted', method, path })
      // A key is never sent to the provider. With a key in its own header, a token may be beside it.
      return hasToken(outer.headers) && !isKey(tokenIn(outer))
        ? undefined
        : { ...identification, cookies: [], keyProblem: 'key_not_accepted' }
    }
    if ('problem' in presented) return refuse(outer, asked, { refused: presented.problem })
    const sha256 = keySha256(presented.key)
    const found = runInRequest(outer.observed, () => callers.identify(sha256))
    return andThen(found, caller => {
      if ('refused' in caller) return refuse(outer, asked, caller)
      if (!isWithinNetworks(caller, outer.observed.address)) {
        const fields = { ...requestFields(outer), ...userFields(caller.user), reason: 'outside_network' }
        report('key_refused', { ...fields, method, path })
        return { ...identification, cookies: [], keyProblem: 'key_not_accepted' as const }
      }
      use.note(sha256, caller, requestFields(outer))
      return { program: caller, reidentify: createReidentify(outer, asked, sha256), cookies: [] }
    })
  }
}

function tokenIn({ headers }: CredentialRequest): string {
  return headers.authorization?.split(' ').at(-1) ?? ''
}
