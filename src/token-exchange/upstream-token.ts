// The token that an application is sent in place of the user's access token (`accessToken: { audience }` of an upstream). Without
// one the request is not forwarded.

import { checkShape } from '../config/shape-problems.ts'
import { type TokenExchangeConfig, tokenExchange } from '../config/upstreams.ts'
import { errorFields, MenshenError } from '../errors.ts'
import type { Report } from '../events.ts'
import type { ExchangeToken } from '../gateway/context.ts'
import { type Caller, callerOf, type Identification, type ProxyRequest } from '../http/caller.ts'
import { requestFields, runInRequest } from '../observe/observed-request.ts'
import type { ExchangedTokenFor } from '../proxy/upstreams.ts'
import { sessionFields } from '../session/fields.ts'
import { type ExchangeTarget, exchangeTarget } from './exchange.ts'
import { type ExchangedTokens, TokenExchangeError } from './exchanged-tokens.ts'

const VISITOR = { token: undefined }

export function createExchangedTokenFor(tokens: ExchangedTokens, report: Report): ExchangedTokenFor {
  async function ask(
    target: ExchangeTarget,
    request: ProxyRequest,
    identification: Identification,
    { user }: Caller,
  ): Promise<string> {
    const { loaded, ticket = '', program } = identification
    if (loaded) return tokens.get(ticket, loaded, target)
    if (program?.who.keyKind)
      throw new TokenExchangeError(new MenshenError('provider_refused', 'a key cannot be exchanged for a token'))
    // Only a token that was verified; it is the one word after the scheme.
    const presented = (program && request.headers.authorization?.split(' ').at(-1)) ?? ''
    return tokens.getForMachine(presented, user, target)
  }

  /** Keyed by their configuration, which a reload replaces. */
  const targets = new WeakMap<TokenExchangeConfig, ExchangeTarget>()

  function targetOf(config: TokenExchangeConfig): ExchangeTarget {
    const known = targets.get(config) ?? exchangeTarget(config)
    targets.set(config, known)
    return known
  }

  return (upstream, config, request, identification) => {
    const caller = callerOf(identification)
    if (!caller) return VISITOR
    const target = targetOf(config)
    const { loaded } = identification
    const cached = loaded && tokens.getSync(loaded, target)
    if (cached !== undefined) return { token: cached }
    return runInRequest(request.observed, () => ask(target, request, identification, caller)).then(
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
function exchangeFields(error: TokenExchangeError, { audience, resource, scope }: ExchangeTarget) {
  return { reason: error.reason, audience: audience ?? resource ?? scope, ...errorFields(error) }
}

/** `accessToken(request, target)` of the library. Rejects with a `MenshenError` if the provider gives none. */
export function createExchangeToken(tokens: ExchangedTokens, report: Report): ExchangeToken {
  return {
    read(config) {
      const checked = checkShape(tokenExchange, config)
      if ('data' in checked) return checked.data
      const place = (path: string) => (path === '' ? 'accessToken' : `accessToken: ${path}`)
      throw new MenshenError(
        'bad_settings',
        checked.problems.map(({ path, message }) => ({ message: `${place(path)}: ${message}` })),
      )
    },
    async get(ticket, loaded, config) {
      const target = exchangeTarget(config)
      try {
        return await tokens.get(ticket, loaded, target)
      } catch (error) {
        if (error instanceof TokenExchangeError)
          report('token_exchange_failed', { ...sessionFields(loaded), ...exchangeFields(error, target) })
        throw error
      }
    },
  }
}
