// `machines`: programs with a key of their own. The configuration has the hash of each key, never the key.

import { z } from 'zod'
import { isKey } from '../util/key-form.ts'

/** The usernames of machines start with this, and no others do. */
export const MACHINE_PREFIX = 'machine:'

export interface MachineConfig {
  /** Its username is `machine:` and this. */
  readonly name: string
  /** The SHA-256 of its key in hex; `menshen keys new` prints both. */
  readonly keySha256: string
  readonly groups?: readonly string[] | undefined
  /** From then on the key is refused: `2027-01-01` (midnight UTC), or a time with its offset. */
  readonly expires?: string | undefined
}

const NAME_FORM = /^[A-Za-z\d][\w.-]{0,59}$/
export const MACHINE_NAME_EXPECTED =
  'expected up to 60 letters, digits, dots, underscores and dashes, for example "backup"'

export function isMachineName(text: string): boolean {
  return NAME_FORM.test(text)
}

const keyHash = z.string().transform((text, context): string => {
  if (/^[\da-f]{64}$/i.test(text)) return text.toLowerCase()
  context.addIssue(
    isKey(text.trim())
      ? 'this is the key itself, which only the machine should know; create a new key with `menshen keys new`, and write its SHA-256 here'
      : 'expected the SHA-256 of a key, 64 hex digits, as `menshen keys new` prints it',
  )
  return z.NEVER
})

const expiry = z
  .string()
  .refine(
    text => z.iso.date().safeParse(text).success || z.iso.datetime({ offset: true }).safeParse(text).success,
    'expected a date such as "2027-01-01", or a time with an offset such as "2027-01-01T08:00:00+08:00"',
  )

const machine = z.strictObject({
  name: z.string().regex(NAME_FORM, MACHINE_NAME_EXPECTED),
  keySha256: keyHash,
  groups: z
    .array(
      z
        .string()
        .min(1)
        .refine(text => !text.includes('*'), 'expected complete group names, without *'),
    )
    .min(1, 'expected at least one name')
    .optional(),
  expires: expiry.optional(),
})

export const machinesShape = z.array(machine).superRefine((machines, context) => {
  for (const [i, { name, keySha256 }] of machines.entries()) {
    const sameName = machines.findIndex(other => other.name.toLowerCase() === name.toLowerCase())
    if (sameName < i)
      context.addIssue({ code: 'custom', path: [i, 'name'], message: `machines.${sameName} has the same name` })
    const sameKey = machines.findIndex(other => other.keySha256 === keySha256)
    if (sameKey < i)
      context.addIssue({
        code: 'custom',
        path: [i, 'keySha256'],
        message: `machines.${sameKey} has the same key; expected a different key for each machine`,
      })
  }
})

/** In milliseconds; `undefined` for a key without an end. */
export function machineEndsAt({ expires }: Pick<MachineConfig, 'expires'>): number | undefined {
  return expires === undefined ? undefined : Date.parse(expires)
}

/** Its key is refused; the others count. */
export function hasExpiredMachine(machines: readonly MachineConfig[] | undefined, now: number): boolean {
  return machines?.some(machine => (machineEndsAt(machine) ?? Number.POSITIVE_INFINITY) <= now) === true
}
