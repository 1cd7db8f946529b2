// Decides which e-mail addresses in the provider's answers are trusted. Otherwise a user could impersonate another by writing the
// other's address into their own profile.
//
// First, each answer gets a verdict from the values that `emailVerified` accepts. The address can be in one answer and the
// verdict on it in another, so a denial in one answer casts doubt on those that are silent:
//
//   the answer's value about its address    no answer denies    some answer denies
//   an accepted value                       verified            verified
//   none, and none is accepted (`null`)     verified            unconfirmed
//   none, and a value is required           unconfirmed         unconfirmed
//   any other value                                             denied
//
// Then there are two passes: the first collects the addresses that must not identify a user, the second removes them from all
// answers, whatever name they have there.

import type { Accepted } from '../config/provider.ts'
import { getPath, notAccepted, textsAt, withoutPaths } from '../util/json-path.ts'
import type { ProviderPlan } from './plan.ts'

export interface TrustedAnswers {
  /** Without the addresses that are not trusted. */
  readonly answers: readonly unknown[]
  /** An address was removed. */
  readonly hasUnverified: boolean
  /** Whether people or programs would take the text for an address that must not identify a user. */
  isDenied(text: string): boolean
}

export function trustEmails(
  answers: readonly unknown[],
  { fields, emailVerified }: Pick<ProviderPlan, 'fields' | 'emailVerified'>,
): TrustedAnswers {
  const rated = rateAnswers(answers, emailVerified)
  if (rated.every(isVerified)) return allTrusted(answers)
  const paths = [...new Set(Object.values(fields).flat(2))]
  const emailPaths = emailPathsOf(rated, paths, fields.email.flat())
  if (!rated.some(one => !isVerified(one) && hasAddress(one.answer, emailPaths))) return allTrusted(answers)
  const denied = deniedAddresses(rated, emailPaths, emailVerified)
  return {
    answers: rated.map(one => withoutUntrusted(one, paths, emailPaths, denied)),
    hasUnverified: true,
    isDenied: text => denied.size > 0 && denied.has(fold(text)),
  }
}

function allTrusted(answers: readonly unknown[]): TrustedAnswers {
  return { answers, hasUnverified: false, isDenied: () => false }
}

type Verdict = 'verified' | 'unconfirmed' | 'denied'

interface RatedAnswer {
  readonly answer: unknown
  readonly verdict: Verdict
}

function rateAnswers(answers: readonly unknown[], emailVerified: Accepted): RatedAnswer[] {
  const paths = Object.keys(emailVerified)
  const isAccepted = (answer: unknown) => notAccepted(answer, emailVerified) === undefined
  const isSilent = (answer: unknown) => paths.every(path => (getPath(answer, path) ?? null) === null)
  const isDenying = (answer: unknown) => !isSilent(answer) && !isAccepted(answer)
  const isSilenceAccepted = isAccepted({}) && !answers.some(isDenying)
  const verdictOn = (answer: unknown): Verdict => {
    if (isSilent(answer)) return isSilenceAccepted ? 'verified' : 'unconfirmed'
    return isAccepted(answer) ? 'verified' : 'denied'
  }
  return answers.map(answer => ({ answer, verdict: verdictOn(answer) }))
}

function isVerified({ verdict }: RatedAnswer): boolean {
  return verdict === 'verified'
}

function isAnyDenied(rated: readonly RatedAnswer[]): boolean {
  return rated.some(({ verdict }) => verdict === 'denied')
}

const EMAIL_FIELD_NAME = /e-?mail([._-]?addr(ess)?)?$|(^|[._-])mail$/i
/** The name of a user in a directory: an address, or a name that looks like one. */
const UPN_FIELD_NAME = /(^|[._-])(upn|user_?principal_?name)$/i

/** The paths at which answers have e-mail addresses: those that are mapped to `email`, and those with such a name. */
function emailPathsOf(
  rated: readonly RatedAnswer[],
  paths: readonly string[],
  mapped: readonly string[],
): ReadonlySet<string> {
  const named = new Set([...paths, 'email'].filter(path => mapped.includes(path) || EMAIL_FIELD_NAME.test(path)))
  // Without any other address, what an answer denies can only be this one.
  const isOnlyLike = isAnyDenied(rated) && !rated.some(({ answer }) => hasAddress(answer, named))
  return isOnlyLike ? new Set([...named, ...paths.filter(path => UPN_FIELD_NAME.test(path))]) : named
}

function hasAddress(answer: unknown, emailPaths: Iterable<string>): boolean {
  return [...emailPaths].some(path => !['', null, undefined].includes(getPath(answer, path) as ''))
}

/** Entra has no verdict on most addresses, and gives users names only in domains that their directory has proven to own. */
const DOMAIN_VERIFIED_CLAIMS: ReadonlySet<string> = new Set(['xms_edov'])

/** Pass 1. The addresses of answers that are not verified, folded. */
function deniedAddresses(
  rated: readonly RatedAnswer[],
  emailPaths: ReadonlySet<string>,
  emailVerified: Accepted,
): ReadonlySet<string> {
  const addressesOf = (some: readonly RatedAnswer[]) => some.flatMap(({ answer }) => foldedTexts(answer, emailPaths))
  const unverified = addressesOf(rated.filter(one => !isVerified(one)))
  if (isAnyDenied(rated)) return new Set(unverified)
  if (Object.keys(emailVerified).some(path => DOMAIN_VERIFIED_CLAIMS.has(path))) return new Set()
  const verified = new Set(addressesOf(rated.filter(isVerified)))
  return new Set(unverified.filter(address => address.includes('@') && !verified.has(address)))
}

/** Pass 2. The answer without the addresses that it does not verify, and without any text that is a denied address. */
function withoutUntrusted(
  rated: RatedAnswer,
  paths: readonly string[],
  emailPaths: ReadonlySet<string>,
  denied: ReadonlySet<string>,
): unknown {
  const { answer } = rated
  const isUntrusted = (path: string) =>
    (!isVerified(rated) && emailPaths.has(path)) || foldedTexts(answer, [path]).some(text => denied.has(text))
  // The subject is the provider's own name for the user, whatever it looks like.
  const names = new Set([...paths, ...emailPaths, ...Object.keys(Object(answer))])
  return withoutPaths(
    answer,
    [...names].filter(path => path !== 'sub' && isUntrusted(path)),
  )
}

function foldedTexts(answer: unknown, paths: Iterable<string>): string[] {
  return [...paths].flatMap(path => textsAt(answer, path)).map(fold)
}

/** The same for all texts that people or programs would take for the same address. */
function fold(text: string): string {
  return text
    .normalize('NFKC')
    .replace(/[\p{Default_Ignorable_Code_Point}\p{C}\s]/gu, '')
    .toLowerCase()
}
