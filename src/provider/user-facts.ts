// Who the user is, from what the provider said in its answers: the specification's seven fields, groups, and the claims
// that roles and requirements look at.
import { MenshenError } from '../errors.ts'
import { FIELDS, type Field } from '../settings/config/provider-config.ts'
import { atPlace, namesFrom, notAmong, shapeOf, textFrom } from '../settings/json-place.ts'
import type { ProviderPlan, UserInfoSource } from './plan.ts'

interface SpecifiedUserInfo {
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
}

export type Said = Readonly<Partial<Record<UserInfoSource, unknown>>>

type Mapping = Pick<ProviderPlan, 'userInfoFrom' | 'fields' | 'fieldTypes' | 'require'>

const DEMANDED = ['sub', 'username'] as const

/** Throws if somebody has no `sub` or `username`, or is not one of those whom `require` lets in. */
export function userFacts(said: Said, plan: Mapping): UserFacts {
  const answers = plan.userInfoFrom.map(source => said[source]).filter(answer => answer !== undefined)
  if (plan.fieldTypes === 'text') demandTexts(answers, plan)
  const text = (field: Field) => textFrom(answers, plan.fields[field])
  const userInfo: UserInfo = {
    ...furtherFields(answers, plan),
    sub: text('sub'),
    ou_id: text('ou_id'),
    nickname: text('nickname'),
    phone_number: text('phone_number'),
    ou_name: text('ou_name'),
    email: text('email'),
    username: text('username'),
  }
  for (const field of DEMANDED) if (userInfo[field] === '') throw missing(field, answers, plan)
  const claims: Record<string, unknown> = Object.fromEntries(
    answers.toReversed().flatMap(one => Object.entries(Object(one))),
  )
  const unmet = notAmong(claims, plan.require)
  if (unmet !== undefined) throw new MenshenError('provider_answer', `not one of those whom require.${unmet} lets in`)
  return { userInfo, groups: namesFrom(answers, plan.fields.groups), claims }
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
      if (odd !== undefined) throw new MenshenError('provider_answer', `unusable in the answer: ${field}`)
    }
  }
}

/** Names and types, never values: they are about a person. */
function missing(field: Field, answers: readonly unknown[], { fields }: Mapping): MenshenError {
  const places = fields[field].map(source => [source].flat().join(' with ')).join(', ') || 'nowhere'
  const seen = answers.map(answer => shapeOf(answer)).join(' and ') || 'nothing'
  return new MenshenError('provider_answer', `no ${field} (looked for in ${places}); what came is ${seen}`)
}
