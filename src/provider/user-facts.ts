// Who the user is, from what the provider said in its answers: the specification's seven fields, groups, and the claims
// that roles and requirements look at.
import type { MenshenError } from '../errors.ts'
import { phrase, phrasedError } from '../phrases.ts'
import { FIELDS, type Field } from '../settings/config/provider-config.ts'
import {
  atPlace,
  namesFrom,
  notAccepted,
  notAmong,
  shapeOf,
  textFrom,
  textsAt,
  withoutPlace,
} from '../settings/json-place.ts'
import type { ProviderPlan, UserInfoSource } from './plan.ts'

/** No interface: those are not assigned to a type with an index, which `UserInfo<string>` is. */
type SpecifiedUserInfo = {
  readonly sub: string
  readonly ou_id: string
  readonly nickname: string
  readonly phone_number: string
  readonly ou_name: string
  readonly email: string
  readonly username: string
}

/** The specification's fields, and with `F` whatever else the configuration maps. What the provider did not say is empty. */
export type UserInfo<F extends string = never> = SpecifiedUserInfo & { readonly [K in Exclude<F, 'groups'>]: string }

export interface UserFacts {
  readonly userInfo: UserInfo
  readonly groups: readonly string[]
  /** Everything that was said, the first source's word first. */
  readonly claims: Readonly<Record<string, unknown>>
  /** An address came, and the provider does not vouch for it. */
  readonly hasUnverifiedEmail?: true
}

export type Said = Readonly<Partial<Record<UserInfoSource, unknown>>>

type Mapping = Pick<ProviderPlan, 'userInfoFrom' | 'fields' | 'fieldTypes' | 'require' | 'emailVerified'>

const DEMANDED = ['sub', 'username'] as const

/** Throws if somebody has no `sub` or `username`, or is not one of those whom `require` lets in. */
export function userFacts(said: Said, plan: Mapping): UserFacts {
  const given = plan.userInfoFrom.map(source => said[source]).filter(answer => answer !== undefined)
  if (plan.fieldTypes === 'text') demandTexts(given, plan)
  const { answers, hasUnverified, denied } = vouchedAnswers(given, plan)
  const text = (field: Field) => textFrom(answers, plan.fields[field])
  const userInfo: UserInfo = {
    ...furtherFields(answers, plan),
    sub: text('sub'),
    ou_id: text('ou_id'),
    nickname: text('nickname'),
    phone_number: text('phone_number'),
    ou_name: text('ou_name'),
    email: text('email'),
    username: unlessDenied(text('username'), denied),
  }
  for (const field of DEMANDED)
    if (userInfo[field] === '') throw missing(field, given, plan, hasUnverified && field === 'username')
  const claims: Record<string, unknown> = Object.fromEntries(
    answers.toReversed().flatMap(one => Object.entries(Object(one))),
  )
  const unmet = notAmong(claims, plan.require)
  if (unmet !== undefined) throw phrasedError('provider_answer', phrase('not_required', { name: unmet }))
  const groups = namesFrom(answers, plan.fields.groups)
  return { userInfo, groups, claims, ...(hasUnverified && { hasUnverifiedEmail: true as const }) }
}

interface VouchedAnswers {
  readonly answers: readonly unknown[]
  /** An address was taken out. */
  readonly hasUnverified: boolean
  /** Addresses that are not verified, as `alike` writes them: nobody is called by one of them. */
  readonly denied: ReadonlySet<string>
}

/**
 * The answers without the e-mail addresses that nobody has verified, and without other fields that repeat one that is denied:
 * otherwise somebody could take the name of another by writing their address into a profile.
 */
export function vouchedAnswers(
  given: readonly unknown[],
  plan: Pick<Mapping, 'fields' | 'emailVerified'>,
): VouchedAnswers {
  const { fields, emailVerified } = plan
  const verdictPlaces = Object.keys(emailVerified)
  const places = new Set(Object.values(fields).flat(2))
  const emailPlaces = new Set(
    [...places, 'email'].filter(place => fields.email.flat().includes(place) || IS_EMAIL.test(place)),
  )
  const isAccepted = (answer: unknown) => notAccepted(answer, emailVerified) === undefined
  const isSilent = (answer: unknown) => verdictPlaces.every(place => (atPlace(answer, place) ?? null) === null)
  const isDenying = (answer: unknown) => !isSilent(answer) && !isAccepted(answer)
  // The address can be in one answer, and what is said of it in another.
  const isAnyDenying = given.some(isDenying)
  const isVerified = (answer: unknown) => isAccepted(answer) && !(isAnyDenying && isSilent(answer))
  const textsIn = (answer: unknown, places: Iterable<string>) =>
    [...places].flatMap(place => textsAt(answer, place)).map(alike)
  const has = (answer: unknown, place: string) => !['', null, undefined].includes(atPlace(answer, place) as '')
  const hasAddress = (answer: unknown) => [...emailPlaces].some(place => has(answer, place))

  // Without any other address, what an answer denies can only be this one.
  if (isAnyDenying && !given.some(hasAddress))
    for (const place of places) if (IS_ADDRESS_LIKE.test(place)) emailPlaces.add(place)
  const unverified = given.filter(answer => !isVerified(answer) && hasAddress(answer))
  if (unverified.length === 0) return { answers: given, hasUnverified: false, denied: new Set() }

  const verified = new Set(given.filter(isVerified).flatMap(answer => textsIn(answer, emailPlaces)))
  const denied = new Set(
    unverified.flatMap(answer => {
      const addresses = textsIn(answer, emailPlaces)
      if (isAnyDenying) return addresses
      return verdictPlaces.some(place => NAMES_ARE_VERIFIED.has(place))
        ? []
        : addresses.filter(address => !verified.has(address))
    }),
  )

  function vouched(answer: unknown): unknown {
    const isOut = (place: string) =>
      (!isVerified(answer) && emailPlaces.has(place)) || textsIn(answer, [place]).some(text => denied.has(text))
    // The subject is the provider's own name for the user, whatever it looks like.
    return [...new Set([...places, ...emailPlaces, ...Object.keys(Object(answer))])]
      .filter(place => place !== 'sub' && isOut(place))
      .reduce(withoutPlace, answer)
  }
  return { answers: given.map(vouched), hasUnverified: true, denied }
}

const IS_EMAIL = /e-?mail([._-]?addr(ess)?)?$|(^|[._-])mail$/i
/** The name of a user in a directory: an address, or written like one. */
const IS_ADDRESS_LIKE = /(^|[._-])(upn|user_?principal_?name)$/i
/** Entra says nothing of most addresses, and gives nobody a name in a domain that their directory has not proven to have. */
const NAMES_ARE_VERIFIED: ReadonlySet<string> = new Set(['xms_edov'])

/** What people and other programs would take for the same address. */
function alike(text: string): string {
  return text
    .normalize('NFKC')
    .replace(/[\p{Default_Ignorable_Code_Point}\p{C}\s]/gu, '')
    .toLowerCase()
}

function unlessDenied(text: string, denied: ReadonlySet<string>): string {
  return denied.has(alike(text)) ? '' : text
}

function furtherFields(answers: readonly unknown[], { fields }: Mapping): Record<string, string> {
  const further = Object.entries(fields).filter(([field]) => !OURS.has(field))
  return Object.fromEntries(further.map(([field, sources]) => [field, textFrom(answers, sources)]))
}

const OURS: ReadonlySet<string> = new Set(FIELDS)

function demandTexts(answers: readonly unknown[], { fields }: Mapping): void {
  for (const [field, sources] of Object.entries(fields)) {
    // The specification knows no groups: whoever sends some sends a list.
    if (field === 'groups') continue
    for (const place of sources.flat()) {
      const odd = answers.map(answer => atPlace(answer, place) ?? '').find(value => typeof value !== 'string')
      if (odd !== undefined) throw phrasedError('provider_answer', phrase('answer_unusable', { fields: field }))
    }
  }
}

/** Names and types, never values: they are about a person. */
function missing(
  field: Field,
  answers: readonly unknown[],
  { fields, emailVerified }: Mapping,
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
