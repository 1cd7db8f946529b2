// How figures are said, and what may be concluded from them.

import type { Comparison, Record } from '../measure/contest.ts'
import { type Distribution, median, spreadOf } from '../measure/statistics.ts'
import type { Mark } from './findings.ts'

/** A run whose quartiles are further apart than this share of its median proves nothing. */
export const WIDEST_SPREAD = 0.1

export const whole = (value: number) => Math.round(value).toLocaleString('en')
export const hundredths = (value: number) => value.toFixed(2)
export const percent = (share: number) => `${Math.round(share * 100)} %`
export const megabytes = (bytes: number) => `${whole(bytes / 1e6)} MB`
export const milliseconds = (value: number) => `${value.toFixed(value < 10 ? 1 : 0)} ms`
export const microseconds = (value: number) =>
  Number.isFinite(value) ? `${value.toFixed(value < 100 ? 1 : 0)} µs` : '?'

/** Nobody is faster than the bare server that it contains: what lies above is noise. */
export function ratio({ median }: Distribution): string {
  if (!Number.isFinite(median)) return '?'
  return median > 1 ? '1, within the noise' : hundredths(median)
}

export function spread(distribution: Distribution): string {
  const value = spreadOf(distribution)
  return value > WIDEST_SPREAD ? `${percent(value)}: proves nothing` : percent(value)
}

export const COMPARISON_COLUMNS = ['/s', 'of /s', 'ratio', 'spread', 'CPU a request', 'of', 'CPU ratio']

/** The cells below COMPARISON_COLUMNS. */
export function comparisonCells(ours: Record, reference: Record, { rate, cpu, idle }: Comparison): string[] {
  return [
    whole(median(ours.rates)),
    whole(median(reference.rates)),
    idle ? `${ratio(rate)}, not at its limit` : ratio(rate),
    spread(rate),
    microseconds(median(ours.cpu)),
    microseconds(median(reference.cpu)),
    ratio(cpu),
  ]
}

/** Where the load was the limit, processor time decides. */
export function shareMark(least: number, what: string, { rate, cpu, idle }: Comparison): Mark {
  const judged = idle ? cpu : rate
  const isWide = !(spreadOf(judged) <= WIDEST_SPREAD)
  const verdict = isWide ? 'proves nothing' : judged.median >= least ? 'met' : 'missed'
  const how = idle ? ' by CPU time, for the other server was not at its limit' : ''
  return { what, demanded: `at least ${least}`, measured: `${ratio(judged)}${how}, spread ${spread(judged)}`, verdict }
}

/** A figure that must stay below a limit. */
export function belowMark(what: string, value: number, most: number, say: (value: number) => string): Mark {
  return { what, demanded: `under ${say(most)}`, measured: say(value), verdict: value < most ? 'met' : 'missed' }
}
