// User info: the request, and the mapping of its answer to our fields.

import { MACHINE_PREFIX } from '../config/machines.ts'
import type { UserField } from '../config/provider.ts'
import { USER_FIELDS } from '../config/provider-fields.ts'
import { errorFields, MenshenError } from '../errors.ts'
import { phrase, phrasedError, phraseIn } from '../text/text.ts'
import { getPath, namesFrom, notAccepted, notAmong, shapeOf, textFrom } from '../util/json-path.ts'
import type { ProviderConnection } from './connection.ts'
import type { Metadata } from './discovery.ts'
import { requestWithBoundToken } from './dpop.ts'
import { trustEmails } from './email-trust.ts'
import { type BoundedFetch, type ProviderAnswer, readAnswer, type WholeAnswer } from './fetch.ts'
import { verifySigned } from './id-token.ts'
import type { ProviderPlan, UserInfoSource } from './plan.ts'
import { readAccepted } from './refusal.ts'
import type { TokenSet } from './token.ts'

/** Not an interface, because an interface cannot be assigned to a type with an index signature, which `UserInfo<string>` is. */
type SpecifiedUserInfo = {
  readonly sub: string
  readonly ou_id: string
  readonly nickname: string
  readonly phone_number: string
  readonly ou_name: string
  readonly email: string
  readonly username: string
}

/** The fields of specification 5.4, and with `F` those that the configuration maps. A field that the provider does not send is empty. */
export type UserInfo<F extends string = never> = SpecifiedUserInfo & { readonly [K in Exclude<F, 'groups'>]: string }

export interface MappedUser {
  readonly userInfo: UserInfo
  readonly groups: readonly string[]
  /** All claims. If several sources have one, it is the first source's. */
  readonly claims: Readonly<Record<string, unknown>>
  readonly exclusiveClaims?: ExclusiveClaims
  /** Paths of claims that an earlier answer had and that were not stored. */
  readonly unknownClaims?: readonly string[]
  /** The provider sent an address that it has not verified. */
  readonly hasUnverifiedEmail?: true
}

/** The names of claims that no other source has, for each source that a refresh can leave out. */
export type ExclusiveClaims = { readonly [Source in (typeof OMITTED_SOURCES)[number]]?: readonly string[] }

const OMITTED_SOURCES = ['id_token', 'token'] as const

export type ProviderClaims = Readonly<Partial<Record<UserInfoSource, unknown>>>

export type UserMapping = Pick<ProviderPlan, 'userInfoFrom' | 'fields' | 'fieldTypes' | 'require' | 'emailVerified'>

const REQUIRED_FIELDS = ['sub', 'username'] as const

/** Throws if the user has no `sub` or `username`, or does not meet `require`. */
export function mapUser(claims: ProviderClaims, plan: UserMapping): MappedUser {
  return { ...mapAnswers(answersOf(claims, plan), plan), exclusiveClaims: exclusiveClaimsIn(claims, plan) }
}

export function answersOf(
  claims: ProviderClaims,
  { userInfoFrom }: Pick<UserMapping, 'userInfoFrom'>,
): readonly unknown[] {
  return userInfoFrom.map(source => claims[source]).filter(answer => answer !== undefined)
}

export function exclusiveClaimsIn(
  claims: ProviderClaims,
  { userInfoFrom }: Pick<UserMapping, 'userInfoFrom'>,
): ExclusiveClaims {
  const namesIn = (source: UserInfoSource) => Object.keys(Object(claims[source]))
  const named = OMITTED_SOURCES.filter(source => userInfoFrom.includes(source)).map(source => {
    const others = new Set(userInfoFrom.filter(other => other !== source).flatMap(namesIn))
    return [source, namesIn(source).filter(name => !others.has(name))] as const
  })
  return Object.fromEntries(named.filter(([, names]) => names.length > 0))
}

/** The user in these answers; the first answer with a value decides. A `require` on an unknown claim is not checked. */
export function mapAnswers(
  given: readonly unknown[],
  plan: UserMapping,
  isUnknown: (path: string) => boolean = () => false,
): MappedUser {
  if (plan.fieldTypes === 'text') assertTexts(given, plan)
  const { answers, hasUnverified, isDenied } = trustEmails(given, plan)
  const text = (field: UserField) => textFrom(answers, plan.fields[field])
  const username = text('username')
  const userInfo: UserInfo = {
    ...furtherFields(answers, plan),
    sub: text('sub'),
    ou_id: text('ou_id'),
    nickname: text('nickname'),
    phone_number: text('phone_number'),
    ou_name: text('ou_name'),
    email: text('email'),
    username: isDenied(username) ? '' : username,
  }
  for (const field of REQUIRED_FIELDS)
    if (userInfo[field] === '') throw missing(field, given, plan, hasUnverified && field === 'username')
  assertNoMachine(userInfo)
  let claims: Readonly<Record<string, unknown>> = {}
  for (const answer of answers.toReversed()) claims = { ...claims, ...Object(answer) }
  const required = Object.entries(plan.require).filter(([path]) => !isUnknown(path))
  const unmet = required.length > 0 ? notAmong(claims, Object.fromEntries(required)) : undefined
  if (unmet !== undefined) throw new RequirementError(unmet, userInfo.sub)
  const groups = namesFrom(answers, plan.fields.groups)
  return { userInfo, groups, claims, ...(hasUnverified && { hasUnverifiedEmail: true as const }) }
}

/** Refuses a user whom an application or a rule could take for one of `machines`. */
function assertNoMachine({ username, sub }: UserInfo): void {
  const isMachine = (name: string) => name.trimStart().toLowerCase().startsWith(MACHINE_PREFIX)
  const field = isMachine(username) ? 'username' : isMachine(sub) ? 'sub' : undefined
  if (field) throw phrasedError('provider_answer', phrase('name_of_machine', { field, prefix: MACHINE_PREFIX }))
}

/** The user does not meet `require` of the configuration. */
export class RequirementError extends MenshenError {
  /** The `sub` of that user. */
  readonly sub: string

  constructor(name: string, sub: string) {
    const message = phrase('not_required', { name })
    super('provider_answer', phraseIn('en', message), undefined, message)
    this.sub = sub
  }
}

function furtherFields(answers: readonly unknown[], { fields }: UserMapping): Record<string, string> {
  const further = Object.entries(fields).filter(([field]) => !STANDARD_FIELDS.has(field))
  if (further.length === 0) return {}
  return Object.fromEntries(further.map(([field, sources]) => [field, textFrom(answers, sources)]))
}

const STANDARD_FIELDS: ReadonlySet<string> = new Set(USER_FIELDS)

function assertTexts(answers: readonly unknown[], { fields }: UserMapping): void {
  for (const [field, sources] of Object.entries(fields)) {
    // Specification 5.4 has no groups; a provider that sends groups sends a list.
    if (field === 'groups') continue
    const isOdd = (path: string) => answers.some(answer => typeof (getPath(answer, path) ?? '') !== 'string')
    if (sources.some(source => (typeof source === 'string' ? isOdd(source) : source.some(isOdd))))
      throw phrasedError('provider_answer', phrase('answer_unusable', { fields: field }))
  }
}

/** Lists names and types, never values, because those are about a person. */
function missing(
  field: UserField,
  answers: readonly unknown[],
  { fields, emailVerified }: UserMapping,
  isUnverified: boolean,
): MenshenError {
  const places = fields[field].map(source => [source].flat().join(' with ')).join(', ') || phrase('nowhere')
  const seen = answers.map(answer => shapeOf(answer)).join(' and ') || phrase('nothing')
  const claims = Object.keys(emailVerified).join(', ')
  const problem = isUnverified
    ? phrase('field_unverified', { field, places, claims, seen })
    : phrase('field_missing', { field, places, seen })
  return phrasedError('provider_answer', problem)
}

// Asks the provider who the user is, with the token and the parameters where the plan wants them.

/** The user info response; `undefined` if the provider has no such endpoint, or the plan does not use it. */
export async function fetchUserInfo(connection: ProviderConnection, tokens: TokenSet): Promise<object | undefined> {
  const { plan } = connection
  const userInfo = await requestUserInfo(connection, tokens)
  if (!userInfo) return undefined
  if (tokens.claims && getPath(userInfo, 'sub') !== tokens.claims.sub)
    throw phrasedError('provider_answer', phrase('user_info_of_another'))
  return plan.emailStep ? { ...userInfo, email: await emailOrNone(connection, plan.emailStep, tokens) } : userInfo
}

/** Only makes the call: the caller checks whose user info it is. */
export async function requestUserInfo(connection: ProviderConnection, tokens: TokenSet): Promise<object | undefined> {
  const { plan } = connection
  const known = await connection.metadata.get()
  const { userInfo } = known.endpoints
  if (!userInfo || !plan.userInfoFrom.includes('userinfo')) return undefined
  const answer = await readUserInfo(connection, known, await request(connection, userInfo, tokens))
  return readAccepted(answer, plan.userInfoAnswer, [])
}

/** A sign-in needs no e-mail address, so a failure is only reported. */
async function emailOrNone(
  connection: ProviderConnection,
  step: NonNullable<ProviderPlan['emailStep']>,
  tokens: TokenSet,
): Promise<unknown> {
  try {
    return await fetchEmail(connection, step, tokens)
  } catch (error) {
    if (!(error instanceof MenshenError)) throw error
    connection.report('email_step_failed', { provider: connection.plan.id, ...errorFields(error) })
    return undefined
  }
}

/** Some providers sign user info (OpenID Connect Core 5.3.2). It must then be signed with one of their keys, and for us. */
async function readUserInfo(
  connection: ProviderConnection,
  known: Metadata,
  response: WholeAnswer,
): Promise<ProviderAnswer> {
  const isSigned = /^application\/(jwt|jose)\b/i.test(response.headers.get('content-type') ?? '')
  if (!isSigned || connection.plan.kind !== 'oidc' || response.status !== 200) return readAnswer(response)
  // The algorithms in the metadata are those of id_tokens.
  const { signingAlgorithms: _, ...anyAlgorithm } = known
  const signed = new TextDecoder().decode(await response.bytes()).trim()
  return { status: 200, body: await verifySigned(connection, anyAlgorithm, signed, ['sub'], { name: 'user info' }) }
}

async function request(connection: ProviderConnection, url: string, tokens: TokenSet): Promise<WholeAnswer> {
  const { plan } = connection
  const { method, token, params, headers } = plan.userInfoRequest
  const target = new URL(url)
  const sent: Record<string, string> = { ...headers }
  const fetch = token === 'bearer' ? fetchWithProof(connection, tokens) : connection.fetch
  if (token === 'bearer') sent.authorization = `Bearer ${tokens.accessToken}`
  else if ('header' in token) sent[token.header] = tokens.accessToken
  else target.searchParams.set(token.query, tokens.accessToken)
  const fields = Object.entries(params).map(([name, text]): [string, string] => [name, filled(text, plan, tokens)])
  if (method === 'POST') return fetch(target.href, { method, headers: sent, body: new URLSearchParams(fields) })
  for (const [name, value] of fields) target.searchParams.set(name, value)
  return fetch(target.href, { method, headers: sent })
}

/** An access token that is bound to a key goes with a proof of that key, in place of `Bearer`. */
function fetchWithProof({ fetch, dpop, now }: ProviderConnection, { accessToken, dpopKey }: TokenSet): BoundedFetch {
  if (dpopKey === undefined) return fetch
  return (url, { method = 'GET', headers, ...init } = {}) =>
    requestWithBoundToken(dpop, { method, url, now }, { accessToken, dpopKey }, proof =>
      fetch(url, { ...init, method, headers: { ...headers, ...proof } }),
    )
}

/** Fills in `$client_id`, or a field of the token answer such as `$openid`. Any other text is returned as it is. */
function filled(text: string, { clientId }: ProviderPlan, { answer }: TokenSet): string {
  if (!text.startsWith('$')) return text
  if (text === '$client_id') return clientId
  const found = getPath(answer, text.slice(1))
  return typeof found === 'string' || typeof found === 'number' ? String(found) : ''
}

/** The user's e-mail address, which takes one more call; `undefined` if no element matches. */
async function fetchEmail(
  connection: ProviderConnection,
  { url, where, take }: NonNullable<ProviderPlan['emailStep']>,
  tokens: TokenSet,
): Promise<unknown> {
  const { status, body } = await readAnswer(await request(connection, url, tokens))
  if (status !== 200 || !Array.isArray(body))
    throw new MenshenError('provider_answer', `the provider returned no list of e-mail addresses (status ${status})`)
  return getPath(
    body.find(element => notAccepted(element, where) === undefined),
    take,
  )
}
