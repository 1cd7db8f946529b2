// The conditions of a rule: networks, hours, origin, and how and how recently the user signed in. Their types, schema and messages.

import { isIP, isIPv6 } from 'node:net'
import { z } from 'zod'
import { type Phrase, phrase } from '../text/text.ts'
import { issueText } from './issue-text.ts'
import { closestName } from './suggestions.ts'

export const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const

export type Day = (typeof DAYS)[number]

/** The times at which a rule admits. */
export interface Hours {
  /** The days on which the hours begin; by default all of them. */
  readonly days?: readonly Day[] | undefined
  /** `08:00`. If it is later than `to`, the hours end on the next day. */
  readonly from: string
  /** The first minute after the hours; `24:00` is the end of the day. */
  readonly to: string
  /** The name of a time zone, for example `Asia/Shanghai`. */
  readonly zone: string
}

/** Conditions only restrict: `roles`, `groups`, `users` or `public` decide who is admitted. */
export interface RuleConditions {
  /** The client's address must be in one of these. */
  readonly networks?: readonly string[] | undefined
  /** Only at these times. */
  readonly hours?: Hours | undefined
  /** Methods other than GET, HEAD and OPTIONS must come from our own pages. */
  readonly origin?: 'own' | undefined
  /** The user must have authenticated at most this many seconds ago. */
  readonly maxAge?: number | undefined
  /** The id_token must have one of these as `acr`. */
  readonly acr?: readonly string[] | undefined
  /** The id_token must have one of these in `amr`. */
  readonly amr?: readonly string[] | undefined
}

// Networks.

const NETWORK_EXPECTED = phrase('config.network')

const network = z
  .string()
  .superRefine((text, context) => {
    const problem = networkProblem(text)
    if (problem) context.addIssue(issueText(problem))
  })
  .meta({ pattern: '^[\\dA-Fa-f.:]+(?:/\\d{1,3})?$' })

function networkProblem(text: string): Phrase | undefined {
  const [base = '', bits, more] = text.split('/')
  const version = isIP(base)
  if (!version || more !== undefined || base.includes('%')) return NETWORK_EXPECTED
  const all = version === 6 ? 128 : 32
  if (bits !== undefined && !(/^\d{1,3}$/.test(bits) && Number(bits) <= all)) return NETWORK_EXPECTED
  if (/^0{0,4}(?::0{0,4})*:ffff:/i.test(base)) return phrase('config.mapped_address')
  const kept = Number(bits ?? all)
  const masked = formatGroups(maskGroups(groupsOf(base), kept, version), version)
  if (masked === formatGroups(groupsOf(base), version)) return undefined
  return phrase('config.host_bits', {
    network: JSON.stringify(text),
    masked: `"${masked}/${bits}"`,
    address: `"${base}"`,
  })
}

/** The numbers of an address: four of eight bits, or eight of sixteen. */
function groupsOf(address: string): number[] {
  if (!isIPv6(address)) return address.split('.').map(Number)
  // The URL parser writes every address in one form.
  const [head = '', tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::')
  const groups = (text: string) =>
    text
      .split(':')
      .filter(Boolean)
      .map(hex => Number.parseInt(hex, 16))
  const [before, after] = [groups(head), groups(tail ?? '')]
  return [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after]
}

function maskGroups(groups: readonly number[], bits: number, version: number): number[] {
  const width = version === 6 ? 16 : 8
  return groups.map((group, n) => {
    const kept = Math.min(width, Math.max(0, bits - n * width))
    return group & (((1 << width) - 1) ^ ((1 << (width - kept)) - 1))
  })
}

function formatGroups(groups: readonly number[], version: number): string {
  if (version === 4) return groups.join('.')
  return new URL(`http://[${groups.map(group => group.toString(16)).join(':')}]`).hostname.slice(1, -1)
}

// Hours.

const day = z
  .string()
  .superRefine((text, context) => {
    if (DAYS.some(day => day === text)) return
    const likely = DAYS.find(day => text.toLowerCase().startsWith(day)) ?? closestName(text, DAYS)
    const days = quoted(DAYS)
    context.addIssue(
      issueText(
        likely === undefined
          ? phrase('config.days', { days })
          : phrase('config.days_likely', { days, likely: `"${likely}"` }),
      ),
    )
  })
  .meta({ enum: [...DAYS] }) as unknown as z.ZodType<Day, Day>

const TIME = /^(?:[01]\d|2[0-3]):[0-5]\d$/

const hours = z
  .strictObject({
    days: z
      .array(day)
      .min(1, issueText(phrase('config.at_least_one_day')))
      .optional(),
    from: z.string().regex(TIME, issueText(phrase('config.time'))),
    to: z
      .string()
      .refine(text => TIME.test(text) || text === '24:00', issueText(phrase('config.end_time')))
      .meta({ pattern: `${TIME.source}|^24:00$` }),
    zone: z
      .string()
      .superRefine((zone, context) => {
        if (isAbbreviation(zone)) return void context.addIssue(ABBREVIATION)
        if (isZone(zone)) return
        const likely = closestName(zone, Intl.supportedValuesOf('timeZone'))
        context.addIssue(
          issueText(
            likely === undefined
              ? phrase('config.time_zone')
              : phrase('config.time_zone_likely', { likely: `"${likely}"` }),
          ),
        )
      })
      .meta({ pattern: '^(?:[A-Za-z][\\w+-]*(?:/[\\w+-]+)*|[+-]\\d\\d(?::?\\d\\d)?)$' }),
  })
  .refine(({ from, to }) => from !== to, {
    path: ['to'],
    message: issueText(phrase('config.same_hours')),
  })
  .meta({ examples: [{ from: '08:00', to: '20:00', zone: 'Asia/Shanghai' }] })

const ABBREVIATION = issueText(phrase('config.zone_abbreviation'))
const UNAMBIGUOUS_ZONES = new Set(['UTC', 'UCT', 'GMT', 'PRC', 'ROC', 'ROK'])

function isAbbreviation(zone: string): boolean {
  return /^[a-z]{3}$/i.test(zone) && !UNAMBIGUOUS_ZONES.has(zone.toUpperCase())
}

function isZone(zone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone })
    return true
  } catch {
    return false
  }
}

// How and when the user signed in.

/** It becomes part of a list separated by spaces, and of a quoted header value. */
const reference = z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/, issueText(phrase('config.token_value')))

const references = z.array(reference).min(1, issueText(phrase('config.at_least_one_value')))

const MAX_AGE_EXPECTED = issueText(phrase('config.max_age'))

/** The keys of a rule. */
export const conditionShapes = {
  networks: z
    .array(network)
    .min(1, issueText(phrase('config.at_least_one_network')))
    .optional(),
  hours: hours.optional(),
  origin: z.literal('own', issueText(phrase('config.origin_own'))).optional(),
  maxAge: z.int(MAX_AGE_EXPECTED).min(1, MAX_AGE_EXPECTED).optional(),
  acr: references.optional(),
  amr: references.optional(),
}

/** Conditions that only a signed-in user can meet. */
const USER_CONDITIONS = ['origin', 'maxAge', 'acr', 'amr'] as const

/** The conditions of a public rule that no visitor could meet. */
export function conditionsOfUsers(rule: RuleConditions): string[] {
  return USER_CONDITIONS.filter(name => rule[name] !== undefined)
}

function quoted(names: readonly string[]): string {
  return names.map(name => JSON.stringify(name)).join('|')
}
