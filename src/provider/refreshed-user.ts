// The user after a token refresh: requested again with one call, and mapped from the new answers. Each claim has one fate:
//
//   fresh     the new answers have it
//   carried   they do not, and the stored claim stays
//   lost      it would stay, but there was no room to store it: it is unknown, gives no role and ends no session
//   gone      every other claim that the new answers do not have
//
// These stay if the new answers just leave them out:
//   groups                              Entra omits them above 200, others if not asked for; an empty list is not an omission
//   names in `_claim_names`             the provider says that they are elsewhere (OpenID Connect Core 5.6.2)
//   claims only in the id_token         if the refresh returned no id_token
//   claims only in the token response   a refresh rarely repeats them
// An address and the verdict on it stay or go together.
//
// Example: `dept` came only in the id_token, `groups`, `email` and `level` in user info. The refresh returns no id_token, and user
// info { email: 'new@corp.example' }. Then `email` is fresh, `dept` and `groups` are carried, and `level` is gone.

import type { Measure } from '../measure.ts'
import { phrase, phrasedError } from '../text/text.ts'
import { getPath, textFrom } from '../util/json-path.ts'
import type { ProviderConnection } from './connection.ts'
import { unverifiedClaims } from './id-token.ts'
import { SubjectMismatch, type TokenSet } from './token.ts'
import {
  answersOf,
  type ExclusiveClaims,
  exclusiveClaimsIn,
  type MappedUser,
  mapAnswers,
  type ProviderClaims,
  requestUserInfo,
  type UserInfo,
  type UserMapping,
} from './user.ts'

/** The user as stored in the session. */
export interface UserBefore {
  readonly userInfo: UserInfo
  readonly groups: readonly string[]
  /** The last id_token that was received. */
  readonly idToken?: string | undefined
  /** The stored claims. */
  readonly claims: Readonly<Record<string, unknown>>
  /** Whether the path may have had a claim that is not stored. */
  isLost(path: string): boolean
  /** Absent if there was no room to store the names. */
  readonly exclusiveClaims?: ExclusiveClaims | undefined
}

/** `accessClaims` are those in the access token, if it is a JWT. */
export async function fetchRefreshedUser(
  connection: ProviderConnection,
  tokens: TokenSet,
  accessClaims: object | undefined,
  before: UserBefore,
  measure: Measure,
): Promise<MappedUser> {
  const { plan } = connection
  // Some providers want fields of their token response at user info.
  const answer = { ...pickClaims(before, before.exclusiveClaims?.token ?? []), ...Object(tokens.answer) }
  const asked = await measure('provider', 'user_info', () => requestUserInfo(connection, { ...tokens, answer }))
  if (asked && plan.kind === 'oidc') assertSameUser(asked, tokens.claims?.sub ?? claimsOf(before.idToken).sub)
  // The second call, for the address, is not repeated.
  const userinfo = asked && plan.emailStep ? { ...asked, email: storedEmail(before) } : asked
  return mapRefreshedUser(
    { userinfo, id_token: tokens.claims, token: tokens.answer, access_token: accessClaims },
    plan,
    before,
  )
}

/** OpenID Connect Core 5.3.2. An answer without a subject proves nothing. */
function assertSameUser(userinfo: object, expected: unknown): void {
  const sub = getPath(userinfo, 'sub')
  if (expected === undefined || sub === expected) return
  if (typeof sub === 'string' && sub !== '') throw new SubjectMismatch('user info')
  throw phrasedError('provider_answer', phrase('user_info_of_another'))
}

function storedEmail({ claims, isLost, userInfo }: UserBefore): unknown {
  return claims.email ?? (isLost('email') ? userInfo.email : undefined)
}

export function mapRefreshedUser(claims: ProviderClaims, plan: UserMapping, before: UserBefore): MappedUser {
  const fresh = answersOf(claims, plan)
  const statuses = claimStatuses(claims, fresh, plan, before)
  const withStatus = (fate: ClaimStatus) => [...statuses].filter(([, one]) => one === fate).map(([path]) => path)
  const unknownClaims = withStatus('lost')
  const isUnknown = (path: string) => unknownClaims.some(name => path === name || path.startsWith(`${name}.`))
  const answers = [...fresh, pickClaims(before, withStatus('carried'))]
  assertSameSubject(answers, plan, before)
  const user = mapAnswers(answers, plan, isUnknown)
  const hasFreshGroups = plan.fields.groups.flat().some(path => statuses.get(path) === 'fresh')
  return {
    ...user,
    // By another of its paths, the same user could have another `sub`.
    userInfo: { ...user.userInfo, sub: before.userInfo.sub },
    groups: hasFreshGroups ? user.groups : before.groups,
    exclusiveClaims: exclusiveClaimsAfter(claims, plan, before),
    unknownClaims,
  }
}

type ClaimStatus = 'fresh' | 'carried' | 'lost' | 'gone'

/** The fates of the claims that may stay. Every other one is fresh or gone. */
function claimStatuses(
  claims: ProviderClaims,
  fresh: readonly unknown[],
  plan: UserMapping,
  before: UserBefore,
): ReadonlyMap<string, ClaimStatus> {
  const lacksIdToken = claims.id_token === undefined && plan.userInfoFrom.includes('id_token')
  const groupPaths = plan.fields.groups.flat()
  const elsewhere = fresh.flatMap(answer => Object.keys(Object(getPath(answer, '_claim_names'))))
  const exclusive = [...(lacksIdToken ? idTokenNames(before) : []), ...(before.exclusiveClaims?.token ?? [])]

  const verdictPaths = Object.keys(plan.emailVerified)
  const emailPaths = [...verdictPaths, ...plan.fields.email.flat(), 'email']
  const hasVerdict = (answer: unknown) => verdictPaths.some(path => (getPath(answer, path) ?? null) !== null)
  const isNewVerdict = fresh.some(hasVerdict)
  const isFormerVerdict = !isNewVerdict && lacksIdToken && hasVerdict(claimsOf(before.idToken))

  const staying = new Set([...elsewhere, ...exclusive].filter(path => !(isNewVerdict && emailPaths.includes(path))))
  for (const path of groupPaths) staying.add(path)

  function statusOf(path: string): ClaimStatus {
    const isFresh = fresh.some(answer => Object.hasOwn(Object(answer), path) || getPath(answer, path) !== undefined)
    // The former address is needed beside a new one that comes without a verdict.
    const isKept = (isFormerVerdict && emailPaths.includes(path)) || (!isFresh && staying.has(path))
    if (isKept && getPath(before.claims, path) !== undefined) return 'carried'
    if (isFresh) return 'fresh'
    return isKept && before.isLost(path) ? 'lost' : 'gone'
  }

  return new Map([...staying, ...emailPaths].map(path => [path, statusOf(path)]))
}

function pickClaims({ claims }: UserBefore, paths: readonly string[]): Record<string, unknown> {
  const found = paths.map(path => [path, getPath(claims, path)] as const)
  return Object.fromEntries(found.filter(([, value]) => value !== undefined))
}

/** The names that only the id_token had. Without that list, all names in the last id_token. */
function idTokenNames({ exclusiveClaims, idToken }: UserBefore): readonly string[] {
  return exclusiveClaims ? (exclusiveClaims.id_token ?? []) : Object.keys(claimsOf(idToken))
}

/** Includes the earlier names whose claims stay, unless another source has them now. */
function exclusiveClaimsAfter(claims: ProviderClaims, plan: UserMapping, before: UserBefore): ExclusiveClaims {
  const now = exclusiveClaimsIn(claims, plan)
  const { id_token, token, ...others } = claims
  const elsewhere = new Set(answersOf(others, plan).flatMap(answer => Object.keys(Object(answer))))
  const stay = (names: readonly string[]) => names.filter(name => !elsewhere.has(name))
  const ofIdToken = id_token === undefined ? stay(idTokenNames(before)) : (now.id_token ?? [])
  const ofToken = [...new Set([...stay(before.exclusiveClaims?.token ?? []), ...(now.token ?? [])])]
  return { ...(ofIdToken.length > 0 && { id_token: ofIdToken }), ...(ofToken.length > 0 && { token: ofToken }) }
}

/** Compares the path that has identified the user. If it has no value, the answers prove nothing. */
function assertSameSubject(answers: readonly unknown[], { fields }: UserMapping, before: UserBefore): void {
  const { sub } = before.userInfo
  const source = fields.sub.find(source => textFrom([before.claims], [source]) === sub)
  const found = textFrom(answers, source === undefined ? fields.sub : [source])
  if (found === sub) return
  if (found !== '') throw new SubjectMismatch('user info')
  throw phrasedError('provider_answer', phrase('answer_unusable', { fields: 'sub' }))
}

function claimsOf(token: string | undefined): Readonly<Record<string, unknown>> {
  return (token === undefined ? undefined : unverifiedClaims(token)) ?? {}
}
