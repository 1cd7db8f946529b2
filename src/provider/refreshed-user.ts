// The user after a token refresh: asked again by one call, and mapped from the new answers. What a refresh leaves out without
// saying anything about it stays as it was.
//
// A claim that is missing in the new answers is gone, except:
//   groups                              Entra omits them above 200, others if they are not asked for; an empty list is a list
//   names in `_claim_names`             the provider says that they are elsewhere (OpenID Connect Core 5.6.2)
//   claims of the id_token alone        if the refresh brought no id_token
//   claims of the token response alone  a refresh rarely repeats them
// Where such a claim was too large to keep, it stays unknown: it gives no role, and ends no session.

import { decodeJwt } from 'jose'
import type { Measure } from '../events.ts'
import { phrase, phrasedError } from '../phrases.ts'
import { getPath, textFrom } from '../util/json-path.ts'
import type { ProviderConnection } from './provider-connection.ts'
import { SubjectChanged, type TokenSet } from './token.ts'
import {
  answersOf,
  type MappedUser,
  type Mapping,
  mapAnswers,
  type ProviderClaims,
  requestUserInfo,
  type SoleClaims,
  soleClaims,
  type UserInfo,
} from './user.ts'

/** The user as the session has them. */
export interface UserBefore {
  readonly userInfo: UserInfo
  readonly groups: readonly string[]
  /** The last one that was received. */
  readonly idToken?: string | undefined
  readonly claims: Readonly<Record<string, unknown>>
  /** Whether the path may have had a claim that is not in `claims`. */
  isLost(path: string): boolean
  /** Absent in sessions of an earlier version. */
  readonly sole?: SoleClaims | undefined
}

/** `accessClaims` are those in the access token, where it is a JWT. */
export async function askAgain(
  connection: ProviderConnection,
  tokens: TokenSet,
  accessClaims: object | undefined,
  before: UserBefore,
  measure: Measure,
): Promise<MappedUser> {
  const { plan } = connection
  // Some want to be told at user info what their token response says.
  const answer = { ...pickClaims(before, before.sole?.token ?? []), ...Object(tokens.answer) }
  const asked = await measure('provider', 'user_info', () => requestUserInfo(connection, { ...tokens, answer }))
  if (asked && plan.kind === 'oidc') assertSameUser(asked, tokens.claims?.sub ?? claimsOf(before.idToken).sub)
  // The second call, for the address, is not repeated.
  const userinfo = asked && plan.emailStep ? { ...asked, email: keptEmail(before) } : asked
  return mapRefreshedUser(
    { userinfo, id_token: tokens.claims, token: tokens.answer, access_token: accessClaims },
    plan,
    before,
  )
}

/** OpenID Connect Core 5.3.2. An answer that names nobody proves nothing. */
function assertSameUser(userinfo: object, expected: unknown): void {
  const sub = getPath(userinfo, 'sub')
  if (expected === undefined || sub === expected) return
  if (typeof sub === 'string' && sub !== '') throw new SubjectChanged('user info')
  throw phrasedError('provider_answer', phrase('user_info_of_another'))
}

function keptEmail({ claims, isLost, userInfo }: UserBefore): unknown {
  return claims.email ?? (isLost('email') ? userInfo.email : undefined)
}

export function mapRefreshedUser(said: ProviderClaims, plan: Mapping, before: UserBefore): MappedUser {
  const fresh = answersOf(said, plan)
  const groupPaths = plan.fields.groups.flat()
  const isMissing = (path: string) => fresh.every(answer => getPath(answer, path) === undefined)
  const stays = stayingPaths(said, fresh, plan, before)
  const missingGroups = groupPaths.filter(isMissing)
  const staying = [...new Set([...stays, ...missingGroups])]
  const carried = pickClaims(before, staying)
  const lost = staying.filter(path => !Object.hasOwn(carried, path) && isMissing(path) && before.isLost(path))
  const isUnknown = (path: string) => lost.some(name => path === name || path.startsWith(`${name}.`))
  const answers = [...fresh, carried]
  assertSameSubject(answers, plan, before)
  const user = mapAnswers(answers, plan, isUnknown)
  return {
    ...user,
    // By another of its paths the same user could have another name.
    userInfo: { ...user.userInfo, sub: before.userInfo.sub },
    groups: missingGroups.length === groupPaths.length ? before.groups : user.groups,
    sole: soleAfter(said, plan, before),
    lost,
  }
}

/** The paths whose former claims count if the new answers have none, besides those of groups. */
function stayingPaths(
  said: ProviderClaims,
  fresh: readonly unknown[],
  plan: Mapping,
  before: UserBefore,
): readonly string[] {
  const hasNoIdToken = said.id_token === undefined && plan.userInfoFrom.includes('id_token')
  const elsewhere = fresh.flatMap(answer => Object.keys(Object(getPath(answer, '_claim_names'))))
  const sole = [...(hasNoIdToken ? soleNames(before) : []), ...(before.sole?.token ?? [])]
  const isSilent = (name: string) => !fresh.some(answer => Object.hasOwn(Object(answer), name))
  const staying = [...elsewhere, ...sole].filter(isSilent)
  // An address and the word for it belong together: both are new, or both are those of the last id_token.
  const verdicts = Object.keys(plan.emailVerified)
  const emailPaths = [...verdicts, ...plan.fields.email.flat(), 'email']
  const isAbsent = (answer: unknown) => verdicts.every(path => (getPath(answer, path) ?? null) === null)
  if (!fresh.every(isAbsent)) return staying.filter(path => !emailPaths.includes(path))
  const hasFormerVerdict = hasNoIdToken && !isAbsent(claimsOf(before.idToken))
  return hasFormerVerdict ? [...staying, ...emailPaths] : staying
}

function pickClaims({ claims }: UserBefore, paths: readonly string[]): Record<string, unknown> {
  const found = paths.map(path => [path, getPath(claims, path)] as const)
  return Object.fromEntries(found.filter(([, value]) => value !== undefined))
}

/** Without the list, every name in the last id_token. */
function soleNames({ sole, idToken }: UserBefore): readonly string[] {
  return sole ? (sole.id_token ?? []) : Object.keys(claimsOf(idToken))
}

/** With the names of before as far as their claims stay, and no other source says them now. */
function soleAfter(said: ProviderClaims, plan: Mapping, before: UserBefore): SoleClaims {
  const now = soleClaims(said, plan)
  const { id_token, token, ...others } = said
  const elsewhere = new Set(answersOf(others, plan).flatMap(answer => Object.keys(Object(answer))))
  const stay = (names: readonly string[]) => names.filter(name => !elsewhere.has(name))
  const ofIdToken = id_token === undefined ? stay(soleNames(before)) : (now.id_token ?? [])
  const ofToken = [...new Set([...stay(before.sole?.token ?? []), ...(now.token ?? [])])]
  return { ...(ofIdToken.length > 0 && { id_token: ofIdToken }), ...(ofToken.length > 0 && { token: ofToken }) }
}

/** Compared by the path that has named the user. Without a value there, the answers prove nothing. */
function assertSameSubject(answers: readonly unknown[], { fields }: Mapping, before: UserBefore): void {
  const { sub } = before.userInfo
  const source = fields.sub.find(source => textFrom([before.claims], [source]) === sub)
  const found = textFrom(answers, source === undefined ? fields.sub : [source])
  if (found === sub) return
  if (found !== '') throw new SubjectChanged('user info')
  throw phrasedError('provider_answer', phrase('answer_unusable', { fields: 'sub' }))
}

function claimsOf(token: string | undefined): Readonly<Record<string, unknown>> {
  if (token === undefined) return {}
  try {
    return decodeJwt(token)
  } catch {
    return {}
  }
}
