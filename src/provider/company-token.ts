// WeCom's flow: with a token of the company, which is cached until it expires, the gateway asks which user the code belongs to.
// Users have no tokens, so there is nothing to refresh.
import { phrase, phrasedError } from '../text/text.ts'
import { createCachedValue } from '../util/cached-value.ts'
import { getPath } from '../util/json-path.ts'
import type { ProviderConnection } from './connection.ts'
import { endpointOf } from './discovery.ts'
import { type ProviderAnswer, readAnswer } from './fetch.ts'
import type { Texts } from './plan.ts'
import { readAccepted } from './refusal.ts'
import { readTokenSet, type TokenSet } from './token.ts'

export interface CompanyToken {
  /** The token set of a session: the plan gives its lifetime, and its access token is empty. */
  tokenSet(): TokenSet
  userInfo(code: string): Promise<object>
}

/** A token is not used in its last minute, because a call takes some time. */
const MARGIN_MS = 60_000
/** WeCom's error codes for a token that was revoked early. */
const INVALID_TOKEN_CODES = [40001, 40014, 42001]
const SESSION_SECONDS = 7200

export function createCompanyToken(connection: ProviderConnection): CompanyToken {
  const { plan, fetch, now } = connection
  const companyToken = createCachedValue({
    load: requestToken,
    freshMs: ({ expiresIn }) => expiresIn * 1000 - MARGIN_MS,
    now,
  })

  async function requestToken(): Promise<TokenSet> {
    const url = new URL(endpointOf(await connection.metadata.get(), 'token'))
    url.searchParams.set('corpid', plan.clientId)
    url.searchParams.set('corpsecret', plan.clientSecret?.reveal() ?? '')
    return readTokenSet(await readAnswer(await fetch(url.href)), plan, now())
  }

  async function call(url: string, params: Texts, { accessToken }: TokenSet): Promise<ProviderAnswer> {
    const target = new URL(url)
    target.searchParams.set('access_token', accessToken)
    for (const [name, value] of Object.entries(params)) target.searchParams.set(name, value)
    return readAnswer(await fetch(target.href))
  }

  async function request(url: string, params: Texts): Promise<object> {
    const token = await companyToken.get()
    let answer = await call(url, params, token)
    if (INVALID_TOKEN_CODES.some(code => code === getPath(answer.body, 'errcode'))) {
      // A call with a revoked token has no effect: the code can still be redeemed.
      companyToken.invalidate(token)
      answer = await call(url, params, await companyToken.get())
    }
    return readAccepted(answer, plan.userInfoAnswer, plan.refreshEnds)
  }

  return {
    tokenSet: () => ({
      accessToken: '',
      expiresIn: plan.tokenAnswer.lifetimeSeconds ?? SESSION_SECONDS,
      receivedAt: now(),
    }),

    async userInfo(code) {
      const url = endpointOf(await connection.metadata.get(), 'userInfo')
      const userid = getPath(await request(url, { code }), 'userid')
      // A visitor who is not a member has an openid instead.
      if (typeof userid !== 'string' || userid === '') throw phrasedError('provider_answer', phrase('not_a_member'))
      return request(new URL('../user/get', url).href, { userid })
    },
  }
}
