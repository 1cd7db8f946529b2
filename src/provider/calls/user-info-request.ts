// Asks the provider who the user is: the token and the parameters where the plan wants them.
import { factsOf, MenshenError } from '../../errors.ts'
import { phrase, phrasedError } from '../../phrases.ts'
import { atPlace, notAccepted } from '../../settings/json-place.ts'
import { verifySigned } from '../oidc/id-token.ts'
import type { Metadata } from '../oidc/metadata.ts'
import type { ProviderPlan } from '../plan.ts'
import { readAccepted, type TokenSet } from '../token-answer.ts'
import { type Answer, readAnswer } from './bounded-fetch.ts'
import type { ProviderConnection } from './provider-connection.ts'
import type { WholeAnswer } from './whole-answer.ts'

/** What user info says, read and accepted; `undefined` if the provider has no such endpoint, or nobody wants it. */
export async function askUserInfo(connection: ProviderConnection, tokens: TokenSet): Promise<object | undefined> {
  const { plan } = connection
  const known = await connection.metadata.get()
  const { userInfo } = known.endpoints
  if (!userInfo || !plan.userInfoFrom.includes('userinfo')) return undefined
  const answer = await readUserInfo(connection, known, await ask(connection, userInfo, tokens))
  const said = readAccepted(answer, plan.userInfoAnswer, [])
  if (tokens.claims && atPlace(said, 'sub') !== tokens.claims.sub)
    throw phrasedError('provider_answer', phrase('user_info_of_another'))
  return plan.emailStep ? { ...said, email: await emailOrNone(connection, plan.emailStep, tokens) } : said
}

/** Nobody is kept out for want of an address. */
async function emailOrNone(
  connection: ProviderConnection,
  step: NonNullable<ProviderPlan['emailStep']>,
  tokens: TokenSet,
): Promise<unknown> {
  try {
    return await askForEmail(connection, step, tokens)
  } catch (error) {
    if (!(error instanceof MenshenError)) throw error
    connection.report('email_step_failed', { provider: connection.plan.id, ...factsOf(error) })
    return undefined
  }
}

/** OpenID Connect Core 5.3.2: some sign it. Then it has to be signed by one of their keys, and for us. */
async function readUserInfo(connection: ProviderConnection, known: Metadata, response: WholeAnswer): Promise<Answer> {
  const isSigned = /^application\/jwt\b/i.test(response.headers.get('content-type') ?? '')
  if (!isSigned || connection.plan.kind !== 'oidc' || response.status !== 200) return readAnswer(response)
  // What the metadata promises is for id_tokens.
  const { signingAlgorithms: _, ...anyAlgorithm } = known
  const signed = new TextDecoder().decode(await response.bytes()).trim()
  return { status: 200, body: await verifySigned(connection, anyAlgorithm, signed, ['sub'], { name: 'user info' }) }
}

async function ask({ fetch, plan }: ProviderConnection, url: string, tokens: TokenSet): Promise<WholeAnswer> {
  const { method, token, params, headers } = plan.userInfoRequest
  const target = new URL(url)
  const sent: Record<string, string> = { ...headers }
  if (token === 'bearer') sent.authorization = `Bearer ${tokens.accessToken}`
  else if ('header' in token) sent[token.header] = tokens.accessToken
  else target.searchParams.set(token.query, tokens.accessToken)
  const fields = Object.entries(params).map(([name, text]): [string, string] => [name, filled(text, plan, tokens)])
  if (method === 'POST') return fetch(target.href, { method, headers: sent, body: new URLSearchParams(fields) })
  for (const [name, value] of fields) target.searchParams.set(name, value)
  return fetch(target.href, { method, headers: sent })
}

/** `$client_id`, or `$openid`: what the token answer has under that name. Anything else is the text itself. */
function filled(text: string, { clientId }: ProviderPlan, { answer }: TokenSet): string {
  if (!text.startsWith('$')) return text
  if (text === '$client_id') return clientId
  const found = atPlace(answer, text.slice(1))
  return typeof found === 'string' || typeof found === 'number' ? String(found) : ''
}

/** An address that nobody else can have claimed; without one the user has none. */
async function askForEmail(
  connection: ProviderConnection,
  { url, where, take }: NonNullable<ProviderPlan['emailStep']>,
  tokens: TokenSet,
): Promise<unknown> {
  const { status, body } = await readAnswer(await ask(connection, url, tokens))
  if (status !== 200 || !Array.isArray(body))
    throw new MenshenError('provider_answer', `no list of e-mail addresses was answered (status ${status})`)
  return atPlace(
    body.find(element => notAccepted(element, where) === undefined),
    take,
  )
}
