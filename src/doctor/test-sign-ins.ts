// Test sign-ins: the doctor announces one, the first browser that opens its address begins it, and only the doctor gets
// the result. Everything that the store holds about it is sealed with the ticket in that address.

import { z } from 'zod'
import { roleOf } from '../access/roles.ts'
import type { RoleConfig } from '../config/file.ts'
import type { UserField } from '../config/provider.ts'
import { MenshenError } from '../errors.ts'
import { trustEmails } from '../provider/email-trust.ts'
import { ONLY_PROVIDER, type ProviderPlan, type UserInfoSource } from '../provider/plan.ts'
import { mapUser, type ProviderClaims } from '../provider/user.ts'
import { decodeJson, encodeJson, sealValue, unsealValue } from '../session/sealing.ts'
import { isTicket, newTicket, recordKey, sealingKey } from '../session/ticket.ts'
import type { Store } from '../stores/store.ts'
import { isPhraseCode, type Phrase } from '../text/text.ts'
import { findText, getPath, namesFrom, shapeOf } from '../util/json-path.ts'
import { sanitize } from '../util/safe-text.ts'
import { whatFailed } from './finding.ts'
import { UNUSABLE_USER } from './sign-in-remedy.ts'

export interface TestSignIn {
  readonly provider: string
  /** Whether values may be shown, not only names. */
  readonly show: boolean
}

export interface TestSignIns {
  /** The ticket that begins it. */
  announce(testSignIn: TestSignIn): Promise<string>
  /** `undefined` if none was announced, or it has begun already. */
  begin(ticket: string): Promise<TestSignIn | undefined>
  /** Whether its address was opened. */
  isBegun(ticket: string): Promise<boolean>
  finish(ticket: string, mapping: MappingReport): Promise<void>
  /** The result, which can be read once; `undefined` until there is one. */
  result(ticket: string): Promise<MappingReport | undefined>
  /** After this, it can no longer be started. */
  withdraw(ticket: string): Promise<void>
}

export const TEST_SIGN_IN_SECONDS = 600

const testSignInSchema: z.ZodType<TestSignIn> = z.object({ provider: z.string(), show: z.boolean() })

export function createTestSignIns({ store, now }: { readonly store: Store; readonly now: () => number }): TestSignIns {
  async function put(prefix: string, ticket: string, value: object): Promise<void> {
    const key = keyOf(prefix, ticket)
    const sealed = sealValue(sealingKey(ticket), encodeJson(value), key)
    await store.create(key, { value: sealed, expiresAt: now() + TEST_SIGN_IN_SECONDS * 1000, labels: [] })
  }

  async function take<T>(prefix: string, ticket: string, schema: z.ZodType<T>): Promise<T | undefined> {
    const key = keyOf(prefix, ticket)
    const entry = isTicket(ticket) ? await store.take(key) : undefined
    return entry && decodeJson(schema, unsealValue(sealingKey(ticket), entry.value, key))
  }

  return {
    async announce(testSignIn) {
      const ticket = newTicket()
      await put('test-sign-in', ticket, testSignIn)
      return ticket
    },
    begin: ticket => take('test-sign-in', ticket, testSignInSchema),
    isBegun: async ticket => (await store.read(keyOf('test-sign-in', ticket))) === undefined,
    finish: (ticket, mapping) => put('test-sign-in-result', ticket, mapping),
    result: ticket => take('test-sign-in-result', ticket, mappingSchema),
    async withdraw(ticket) {
      await store.remove(keyOf('test-sign-in', ticket))
    },
  }
}

function keyOf(prefix: string, ticket: string): string {
  return `${prefix}:${recordKey(ticket)}`
}

// What a sign-in returned and how it was mapped: which fields came from where, how each of ours was filled, which role
// resulted. It has names and types; values only for an operator who asks to see them.

const phraseSchema: z.ZodType<Phrase> = z.object({
  code: z.string().refine(isPhraseCode),
  values: z.record(z.string(), z.union([z.string(), z.number(), z.lazy(() => phraseSchema)])),
}) as z.ZodType<Phrase>
const cameSchema = z.object({ source: z.string(), name: z.string(), type: z.string(), value: z.string().optional() })
const filledSchema = z.object({
  field: z.string(),
  /** Absent if the field stays empty. */
  source: z.string().optional(),
  place: z.string().optional(),
  value: z.string().optional(),
})
export const mappingSchema = z.object({
  provider: z.string(),
  came: z.array(cameSchema),
  fields: z.array(filledSchema),
  role: z.string().optional(),
  groups: z.array(z.string()).optional(),
  /** Why the user would not be signed in, and what to do about it. */
  problem: phraseSchema.optional(),
  remedy: phraseSchema.optional(),
  /** What works, but not as well as it could. */
  notes: z.array(z.object({ seen: phraseSchema, remedy: phraseSchema })).optional(),
})
export type MappingReport = z.infer<typeof mappingSchema>

type Plan = Pick<ProviderPlan, 'id' | 'userInfoFrom' | 'fields' | 'fieldTypes' | 'require' | 'emailVerified'>

const MAX_SHOWN = 200
const MAX_DEPTH = 3
const MAX_VALUE_LENGTH = 200
const SOURCES: readonly UserInfoSource[] = ['userinfo', 'id_token', 'token', 'access_token']

export function explainMapping(
  providerClaims: ProviderClaims,
  plan: Plan,
  roles: readonly RoleConfig[],
  show: boolean,
): MappingReport {
  const received = SOURCES.flatMap(source =>
    fieldsIn(providerClaims[source]).map(field => ({ source, ...field })),
  ).slice(0, MAX_SHOWN)
  return {
    provider: plan.id,
    came: received.map(({ source, name, value }) => ({
      source,
      name,
      type: shapeOf(value, 1),
      ...valueField(value, show),
    })),
    fields: filled(providerClaims, plan, show),
    ...outcome(providerClaims, plan, roles),
  }
}

/** A sign-in that failed before there was anything to explain. */
export function failedMapping(provider: string, problem: Phrase, remedy: Phrase): MappingReport {
  return { provider, came: [], fields: [], problem, remedy }
}

interface NamedValue {
  readonly name: string
  readonly value: unknown
}

/** The fields of an answer, with the names that a configuration would use for them. */
function fieldsIn(answer: unknown, prefix = '', depth = 1): NamedValue[] {
  if (typeof answer !== 'object' || answer === null || Array.isArray(answer)) return []
  return Object.entries(answer)
    .slice(0, MAX_SHOWN)
    .flatMap(([name, value]) => {
      const path = prefix + sanitize(name)
      const inner = Array.isArray(value) ? value[0] : value
      const deeper = depth < MAX_DEPTH ? fieldsIn(inner, `${path}.`, depth + 1) : []
      return deeper.length > 0 ? deeper : [{ name: path, value }]
    })
}

function filled(providerClaims: ProviderClaims, plan: Plan, show: boolean): MappingReport['fields'] {
  const { fields, userInfoFrom } = plan
  const sources = userInfoFrom.filter(source => providerClaims[source] !== undefined)
  const { answers } = trustEmails(
    sources.map(source => providerClaims[source]),
    plan,
  )
  return (Object.keys(fields) as UserField[]).map(field => {
    if (field === 'groups') return { field, ...filledGroups(providerClaims, sources, fields.groups, show) }
    const found = findText(answers, fields[field])
    if (!found) return { field }
    const place = [found.source].flat().join(' with ')
    return { field, source: sources[found.answer], place, ...valueField(found.text, show) }
  })
}

function filledGroups(
  providerClaims: ProviderClaims,
  sources: readonly UserInfoSource[],
  places: ProviderPlan['fields']['groups'],
  show: boolean,
) {
  const answers = sources.map(source => providerClaims[source])
  const filling = places.flat().filter(place => namesFrom(answers, [place]).length > 0)
  const source = sources.find(one => filling.some(place => getPath(providerClaims[one], place) !== undefined))
  return source ? { source, place: filling.join(', '), ...valueField(namesFrom(answers, places), show) } : {}
}

function outcome(
  providerClaims: ProviderClaims,
  plan: Plan,
  roles: readonly RoleConfig[],
): Pick<MappingReport, 'role' | 'groups' | 'problem' | 'remedy'> {
  try {
    const { userInfo, groups, claims } = mapUser(providerClaims, plan)
    const provider = plan.id === ONLY_PROVIDER ? undefined : plan.id
    const role = roleOf({ provider, username: userInfo.username, groups, claims }, roles)
    return { role, groups: groups.slice(0, MAX_SHOWN).map(group => sanitize(group, MAX_VALUE_LENGTH)) }
  } catch (error) {
    if (!(error instanceof MenshenError)) throw error
    return { problem: whatFailed(error), remedy: UNUSABLE_USER }
  }
}

function valueField(value: unknown, show: boolean): { value?: string } {
  return show ? { value: sanitize(JSON.stringify(value) ?? '', MAX_VALUE_LENGTH) } : {}
}
