// The conditions of rules: networks, hours, origin, and how recently and by which means the user signed in. They only restrict: who is
// admitted is decided before. Rules without conditions cost a request nothing, because they have no entry here.

import { hash } from 'node:crypto'
import type { Rule } from '../config/file.ts'
import { Networks } from '../config/networks.ts'
import { DAYS, type Day, type Hours } from '../config/rule-conditions.ts'

/** How a user signed in. */
export interface Authentication {
  /** When the user authenticated, in milliseconds; absent if that is unknown. */
  readonly time?: number | undefined
  readonly acr?: string | undefined
  readonly amr?: readonly string[] | undefined
  /** When the user returned from a provider that was asked for `prompt=login`, and that does not report `auth_time`. */
  readonly promptedAt?: number | undefined
  /** The demands of a failed step-up, see `demandsKey`. */
  readonly failed?: string | undefined
}

/** What a rule requires of the authentication. */
export interface AuthenticationDemand {
  /** In seconds. */
  readonly maxAge?: number | undefined
  readonly acr?: readonly string[] | undefined
  readonly amr?: readonly string[] | undefined
}

/** The conditions of one rule, ready to be judged. */
export interface Conditions {
  readonly rule: Rule
  readonly networks: Networks | undefined
  readonly hours: OpenHours | undefined
  readonly isOwnOrigin: boolean
  readonly demand: AuthenticationDemand | undefined
}

/** Enough for rules with many clients. Addresses beyond it are searched for again, in about a microsecond each. */
const MAX_CACHED_ADDRESSES = 20_000

/** `undefined` if the rule has none. */
export function conditionsOf(rule: Rule): Conditions | undefined {
  const { networks, hours, origin, maxAge, acr, amr } = rule
  const hasDemand = (maxAge ?? acr ?? amr) !== undefined
  if ((networks ?? hours ?? origin) === undefined && !hasDemand) return undefined
  return {
    rule,
    networks: networks && networksOf(networks),
    hours: hours && createOpenHours(hours),
    isOwnOrigin: origin === 'own',
    demand: hasDemand ? { maxAge, acr, amr } : undefined,
  }
}

function networksOf(given: readonly string[]): Networks {
  const networks = new Networks(MAX_CACHED_ADDRESSES)
  // The configuration was checked. An invalid network that slipped through admits no one.
  for (const network of given) networks.add(network)
  return networks
}

// The known facts about a request. Getters, so that only what a condition needs is computed.

export interface ConditionContext {
  /** The client's address; if `undefined`, networks are not checked. */
  readonly address: string | undefined
  /** The time; if `undefined`, hours are not checked. */
  readonly at: number | LocalTime | undefined
  /** Whether the request changes nothing, comes from our own pages, or is not from a browser. */
  readonly isOwnOrigin: boolean
  /** `undefined` for a visitor. */
  readonly authentication: Authentication | undefined
}

export type RefusalCode = 'outside_network' | 'outside_hours' | 'foreign_origin' | 'step_up_failed'

export type UnmetCondition =
  | { readonly code: RefusalCode; readonly rule: Rule }
  | { readonly code: 'step_up'; readonly rule: Rule; readonly demands: readonly AuthenticationDemand[] }

/** `undefined` if all are met. Conditions that no sign-in could change come first: a user signs in again only if that can help. */
export function unmetOf(
  conditions: readonly Conditions[],
  context: ConditionContext,
  now: number,
): UnmetCondition | undefined {
  for (const { rule, networks, hours, isOwnOrigin } of conditions) {
    if (networks) {
      const { address } = context
      if (address !== undefined && !networks.has(address)) return { code: 'outside_network', rule }
    }
    if (hours) {
      const { at } = context
      if (at !== undefined && !hours.isOpen(at)) return { code: 'outside_hours', rule }
    }
    if (isOwnOrigin && !context.isOwnOrigin) return { code: 'foreign_origin', rule }
  }
  for (const { rule, demand } of conditions)
    if (demand && !meets(context.authentication, demand, now))
      return unmetDemand(rule, conditions, context.authentication)
  return undefined
}

function unmetDemand(
  rule: Rule,
  conditions: readonly Conditions[],
  authentication: Authentication | undefined,
): UnmetCondition {
  const demands = conditions.flatMap(({ demand }) => demand ?? [])
  return authentication?.failed === demandsKey(demands)
    ? { code: 'step_up_failed', rule }
    : { code: 'step_up', rule, demands }
}

/** For the time between the sign-in and the request for the page, and for clocks that differ. */
const GRACE_SECONDS = 15

export function meets(
  authentication: Authentication | undefined,
  { maxAge, acr, amr }: AuthenticationDemand,
  now: number,
): boolean {
  if (!authentication) return false
  const { time, acr: level, amr: means } = authentication
  if (maxAge !== undefined && (time === undefined || now - time > (maxAge + GRACE_SECONDS) * 1000)) return false
  if (acr && (level === undefined || !acr.includes(level))) return false
  return !amr || amr.some(one => means?.includes(one) === true)
}

/** Enough to recognise them. */
const KEY_LENGTH = 16

export function demandsKey(demands: readonly AuthenticationDemand[]): string {
  const rows = demands.map(({ maxAge = 0, acr = [], amr = [] }) => JSON.stringify([maxAge, acr, amr]))
  return hash('sha256', [...new Set(rows)].sort().join('\n'), 'base64url').slice(0, KEY_LENGTH)
}

/** What to request from the provider to meet all demands. The returned id_token is checked in any case. */
export function requestFor(demands: readonly AuthenticationDemand[]): { maxAge?: number; acr: readonly string[] } {
  const ages = demands.flatMap(({ maxAge }) => maxAge ?? [])
  const lists = demands.flatMap(({ acr }) => (acr ? [acr] : []))
  const values = [...new Set(lists.flat())]
  // One value that all of them accept is sufficient.
  const common = values.filter(value => lists.every(list => list.includes(value)))
  return { ...(ages.length > 0 && { maxAge: Math.min(...ages) }), acr: common.length > 0 ? common : values }
}

// Hours in a time zone.

/** A time without an offset: the local time in any zone. */
export interface LocalTime {
  /** The index in `DAYS`. */
  readonly day: number
  /** Since midnight. */
  readonly minute: number
}

export interface OpenHours {
  isOpen(at: number | LocalTime): boolean
}

const MINUTE_MS = 60_000

/**
 * Offsets of time zones are whole minutes, so a verdict is valid until the minute ends. Intl takes 2 µs, and is called once per
 * minute instead of once per request.
 */
export function createOpenHours({ days = DAYS, from, to, zone }: Hours): OpenHours {
  const [begin, end] = [minuteOf(from), minuteOf(to)]
  const isDay = DAYS.map(day => days.includes(day))
  const clock = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    calendar: 'gregory',
    numberingSystem: 'latn',
    hourCycle: 'h23',
    weekday: 'short',
    hour: '2-digit',
    minute: '2-digit',
  })
  let judged = Number.NaN
  let verdict = false

  function isOpenAt({ day, minute }: LocalTime): boolean {
    if (begin < end) return isDay[day] === true && minute >= begin && minute < end
    // The hours end on the next day, but belong to the day on which they began.
    return (isDay[day] === true && minute >= begin) || (isDay[(day + 6) % 7] === true && minute < end)
  }

  return {
    isOpen(at) {
      if (typeof at !== 'number') return isOpenAt(at)
      const minute = Math.floor(at / MINUTE_MS)
      if (minute !== judged) {
        verdict = isOpenAt(localTime(clock, at))
        judged = minute
      }
      return verdict
    },
  }
}

function minuteOf(time: string): number {
  const [hour = 0, minute = 0] = time.split(':').map(Number)
  return hour * 60 + minute
}

function localTime(clock: Intl.DateTimeFormat, at: number): LocalTime {
  const parts = Object.fromEntries(clock.formatToParts(at).map(({ type, value }) => [type, value]))
  const { weekday = '', hour, minute } = parts
  return { day: DAYS.indexOf(weekday.toLowerCase() as Day), minute: Number(hour) * 60 + Number(minute) }
}
