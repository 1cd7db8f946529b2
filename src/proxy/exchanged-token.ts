// The token that an application is sent in place of the user's access token (`accessToken: { audience }` of an upstream). Without
// one the request is not forwarded.

import { errorFields, MenshenError } from '../errors.ts'
import type { Report } from '../events.ts'
import { callerOf, type Identification, type ProxyRequest } from '../http/caller.ts'
import { requestFields, runInRequest } from '../observe/observed-request.ts'
import type { ExchangeTarget } from '../provider/token-exchange.ts'
import { type ExchangedTokens, TokenExchangeError } from '../session/exchanged-tokens.ts'
import type { MaybePromise } from '../util/maybe-promise.ts'

/** `undefined` for a visitor, who has none. `failed` if there is no token: that was reported. */
export type ExchangedTokenFor = (
  upstream: { readonly prefix: string },
  target: ExchangeTarget,
  request: ProxyRequest,
  identification: Identification,
) => MaybePromise<{ readonly token: string | undefined } | 'failed'>

const VISITOR = { token: undefined }

export function createExchangedTokenFor(tokens: ExchangedTokens, report: Report): ExchangedTokenFor {
  async function ask(target: ExchangeTarget, request: ProxyRequest, identification: Identification): Promise<string> {
    const { loaded, ticket = '', bearer } = identification
    if (loaded) return tokens.get(ticket, loaded, target)
    if (bearer?.who.keyKind)
      throw new TokenExchangeError(new MenshenError('provider_refused', 'a key is no token that could be exchanged'))
    // Only a token that was verified; it is one word behind the scheme.
    const presented = (bearer && request.headers.authorization?.split(' ').at(-1)) ?? ''
    return tokens.getForMachine(presented, bearer?.session.provider, target)
  }

  return (upstream, target, request, identification) => {
    const caller = callerOf(identification)
    if (!caller) return VISITOR
    const { loaded } = identification
    const cached = loaded && tokens.getSync(loaded, target)
    if (cached !== undefined) return { token: cached }
    return runInRequest(request.observed, () => ask(target, request, identification)).then(
      token => ({ token }),
      error => {
        if (!(error instanceof TokenExchangeError)) throw error
        const { method, path } = request
        report('token_exchange_failed', {
          ...requestFields(request, caller),
          ...exchangeFields(error, target),
          method,
          path,
          upstream: upstream.prefix,
        })
        return 'failed' as const
      },
    )
  }
}

/** Never a token. */
export function exchangeFields(error: TokenExchangeError, { audience, resource, scope }: ExchangeTarget) {
  return { reason: error.reason, audience: audience ?? resource ?? scope, ...errorFields(error) }
}
