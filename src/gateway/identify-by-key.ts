// A request that brings a key. A key counts only where the rule for the path says so, and never for our own pages. Like a token it
// is looked at only without a session: a caller who has both is the user of the session, so that a key adds nothing to what a browser
// sends.

import type { GatewayRequest } from '../http/request.ts'
import type { AdmissionContext, CallerIdentification } from '../identify/identify.ts'
import { requestFields, runInRequest } from '../observe/observed-request.ts'
import { bringsToken } from '../util/fetch-metadata.ts'
import { isKey, keyIn, keySha256 } from '../util/key-form.ts'
import { andThen, type MaybePromise } from '../util/maybe-promise.ts'
import type { RefusedKey } from './key-callers.ts'

/** `undefined` if it brings none, or one that is nothing to us there: then it may have a token of the provider. */
export function identifyByKey(
  context: AdmissionContext,
  request: GatewayRequest,
  { method, path }: GatewayRequest,
  identification: CallerIdentification,
): MaybePromise<CallerIdentification> | undefined {
  const brought = keyIn(request.headers)
  if (!brought) return undefined
  const [rule] = context.auth.rules.rulesFor(method, path)
  if (!rule?.keys) {
    if (!('key' in brought) || rule?.public)
      return isKey(tokenIn(request)) ? { ...identification, cookies: [] } : undefined
    context.observe.report('key_refused', { ...requestFields(request), reason: 'not_accepted' })
    // A key is never shown to the provider. With a key in a header of its own, a token may be beside it.
    return bringsToken(request.headers) && !isKey(tokenIn(request))
      ? undefined
      : { ...identification, cookies: [], keyProblem: 'key_not_accepted' }
  }
  if ('problem' in brought) return refuse(context, request, { refused: brought.problem })
  const sha256 = keySha256(brought.key)
  const found = runInRequest(request.observed, () => context.auth.keyCallers.identify(sha256))
  return andThen(found, caller => {
    if ('refused' in caller) return refuse(context, request, caller)
    context.auth.keyUse.note(sha256, caller, requestFields(request))
    return { bearer: caller, reidentify: createReidentify(context, { method, path }, sha256), cookies: [] }
  })
}

function tokenIn({ headers }: GatewayRequest): string {
  return headers.authorization?.split(' ').at(-1) ?? ''
}

/** For open streams: by the configuration that is in use by then. */
function createReidentify(
  { auth }: AdmissionContext,
  { method, path }: Pick<GatewayRequest, 'method' | 'path'>,
  sha256: string,
) {
  return async () => {
    const { rules, keyCallers } = auth.currentPolicy()
    if (!rules.rulesFor(method, path)[0]?.keys) return undefined
    const latest = await keyCallers.identify(sha256)
    return 'refused' in latest ? undefined : latest
  }
}

/** Counted like tokens that are not valid. The key is in no report. */
async function refuse(
  { auth, observe }: AdmissionContext,
  request: GatewayRequest,
  { refused: reason }: RefusedKey,
): Promise<CallerIdentification> {
  const isWithinLimit = await auth.rateLimit.admits('ticket', request)
  if (!isWithinLimit) return { cookies: [], failedToken: true, isLimited: true }
  observe.report('key_refused', { ...requestFields(request), reason })
  return { cookies: [], failedToken: true, keyProblem: 'invalid_key' }
}
