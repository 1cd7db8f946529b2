// A token for one application, in exchange for the user's access token: RFC 8693, or the on-behalf-of flow of Microsoft Entra.

import { z } from 'zod'
import type { TokenExchangeConfig } from '../config/upstreams.ts'
import type { Provider } from '../provider/provider.ts'
import { lifetime } from '../provider/token.ts'
import { phrase, phrasedError } from '../text/text.ts'

/** The application that a token is for. */
export interface ExchangeTarget extends TokenExchangeConfig {
  /** Two targets with the same id are the same. */
  readonly id: string
}

export interface ExchangedToken {
  readonly token: string
  /** Its lifetime; `undefined` if the response does not have one. */
  readonly expiresInSeconds: number | undefined
}

export function exchangeTarget({ audience, resource, scope, exchange }: TokenExchangeConfig): ExchangeTarget {
  const id = JSON.stringify([audience ?? null, resource ?? null, scope ?? null, exchange ?? null])
  return {
    id,
    ...(audience !== undefined && { audience }),
    ...(resource !== undefined && { resource }),
    ...(scope !== undefined && { scope }),
    ...(exchange !== undefined && { exchange }),
  }
}

/** `owner` is the user whose token it is. */
export async function exchangeToken(
  provider: Pick<Provider, 'requestGrant'>,
  accessToken: string,
  target: ExchangeTarget,
  owner: string,
): Promise<ExchangedToken> {
  const grant = target.exchange === 'entra' ? onBehalfOf(accessToken, target) : standard(accessToken, target)
  return readExchanged(await provider.requestGrant('token_exchange', grant, owner), accessToken)
}

const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'

function standard(accessToken: string, { audience, resource, scope }: ExchangeTarget) {
  return {
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token: accessToken,
    subject_token_type: ACCESS_TOKEN,
    requested_token_type: ACCESS_TOKEN,
    ...(audience !== undefined && { audience }),
    ...(resource !== undefined && { resource }),
    ...(scope !== undefined && { scope }),
  }
}

/** This flow supports only a scope. `/.default` means all that the application has been granted. */
function onBehalfOf(accessToken: string, { audience, resource, scope }: ExchangeTarget) {
  return {
    grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
    requested_token_use: 'on_behalf_of',
    assertion: accessToken,
    scope: scope ?? `${resource ?? audience}/.default`,
  }
}

/** Applications and proxies refuse longer headers. */
const MAX_TOKEN_LENGTH = 16_384

const exchangeAnswer = z.object({
  access_token: z
    .string()
    .max(MAX_TOKEN_LENGTH)
    .regex(/^[\x21-\x7e]+$/),
  // `N_A` is for what is not an access token (RFC 8693, 2.2.1); one that is bound to a key is useless to the application.
  token_type: z
    .string()
    .regex(/^bearer$/i)
    .nullish(),
  issued_token_type: z.literal(ACCESS_TOKEN).nullish(),
  expires_in: lifetime.nullish(),
})

function readExchanged(response: object, accessToken: string): ExchangedToken {
  const { data, error } = exchangeAnswer.safeParse(response)
  // If a provider returned the token that it was sent, the application would get the wider token.
  const wrong = data?.access_token === accessToken ? ['access_token'] : error?.issues.map(({ path }) => path.join('.'))
  if (!data || wrong) throw phrasedError('provider_answer', phrase('answer_unusable', { fields: [...new Set(wrong)] }))
  return { token: data.access_token, expiresInSeconds: data.expires_in ?? undefined }
}
