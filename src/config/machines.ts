// `machines`: programs with a key of their own. The configuration has the hash of each key, never the key.

import { z } from 'zod'
import { phrase } from '../text/text.ts'
import { isKey } from '../util/key-form.ts'
import { issueText } from './issue-text.ts'
import { conditionShapes } from './rule-conditions.ts'

/** The usernames of machines start with this, and no others do. */
export const MACHINE_PREFIX = 'machine:'

/** The parts of the API. */
export const API_SCOPES = ['sessions', 'keys', 'audit'] as const
export type ApiScope = (typeof API_SCOPES)[number]

export interface MachineConfig {
  /** Its username is `machine:` followed by this name. */
  readonly name: string
  /** The SHA-256 of its key in hex; `menshen keys new` prints both. */
  readonly keySha256: string
  /** The groups of the machine, for rules with `groups`. */
  readonly groups?: readonly string[] | undefined
  /** From then on the key is refused: `2027-01-01` (midnight UTC), or a time with its offset. */
  readonly expires?: string | undefined
  /** The parts of the API that it may use. */
  readonly api?: readonly ApiScope[] | undefined
  /** Its key is accepted only from these networks, by the API and by rules. */
  readonly networks?: readonly string[] | undefined
}

const NAME_FORM = /^[A-Za-z\d][\w.-]{0,59}$/
const MACHINE_NAME_EXPECTED = issueText(phrase('config.machine_name'))

export function isMachineName(text: string): boolean {
  return NAME_FORM.test(text)
}

const keyHash = z
  .string()
  .transform((text, context): string => {
    if (/^[\da-f]{64}$/i.test(text)) return text.toLowerCase()
    context.addIssue(issueText(isKey(text.trim()) ? phrase('config.key_itself') : phrase('config.key_hash')))
    return z.NEVER
  })
  .meta({ pattern: '^[\\dA-Fa-f]{64}$' })

const expiry = z
  .string()
  .refine(
    text => z.iso.date().safeParse(text).success || z.iso.datetime({ offset: true }).safeParse(text).success,
    issueText(phrase('config.expiry')),
  )
  .meta({ pattern: '^\\d{4}-\\d\\d-\\d\\d(?:T.*)?$' })

const API_EXPECTED = issueText(phrase('config.api_scopes', { names: API_SCOPES.map(scope => JSON.stringify(scope)) }))

const machine = z.strictObject({
  name: z.string().regex(NAME_FORM, MACHINE_NAME_EXPECTED),
  keySha256: keyHash,
  groups: z
    .array(
      z
        .string()
        .min(1)
        .refine(text => !text.includes('*'), issueText(phrase('config.group_without_star'))),
    )
    .min(1, issueText(phrase('config.at_least_one_name')))
    .optional(),
  expires: expiry.optional(),
  api: z.array(z.enum(API_SCOPES, API_EXPECTED)).min(1, API_EXPECTED).optional(),
  networks: conditionShapes.networks,
})

export const machinesShape = z.array(machine).superRefine((machines, context) => {
  for (const [i, { name, keySha256 }] of machines.entries()) {
    const sameName = machines.findIndex(other => other.name.toLowerCase() === name.toLowerCase())
    if (sameName < i)
      context.addIssue({
        code: 'custom',
        path: [i, 'name'],
        message: issueText(phrase('config.same_machine_name', { index: sameName })),
      })
    const sameKey = machines.findIndex(other => other.keySha256 === keySha256)
    if (sameKey < i)
      context.addIssue({
        code: 'custom',
        path: [i, 'keySha256'],
        message: issueText(phrase('config.same_machine_key', { index: sameKey })),
      })
  }
})

/** When the key expires, in milliseconds; `undefined` if it never does. */
export function machineEndsAt({ expires }: Pick<MachineConfig, 'expires'>): number | undefined {
  return expires === undefined ? undefined : Date.parse(expires)
}

/** The names of the machines whose keys have expired. */
export function expiredMachines(machines: readonly MachineConfig[] | undefined, now: number): string[] {
  const isExpired = (machine: MachineConfig) => (machineEndsAt(machine) ?? Number.POSITIVE_INFINITY) <= now
  return (machines ?? []).filter(isExpired).map(({ name }) => name)
}
