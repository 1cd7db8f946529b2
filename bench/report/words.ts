// How figures are worded, and what can be concluded from them.

import { type Comparison, decisive, type Rated } from '../measure/contest.ts'
import { type Distribution, median, provesSomething, spreadOf } from '../measure/statistics.ts'
import type { Mark } from './findings.ts'

export const whole = (value: number) => Math.round(value).toLocaleString('en')
export const hundredths = (value: number) => value.toFixed(2)
export const percent = (share: number) => `${Math.round(share * 100)} %`
export const megabytes = (bytes: number) => `${whole(bytes / 1e6)} MB`
export const kilobytes = (bytes: number) => `${(bytes / 1e3).toFixed(bytes < 1e5 ? 1 : 0)} KB`
export const milliseconds = (value: number) => `${value.toFixed(value < 10 ? 1 : 0)} ms`
export const microseconds = (value: number) =>
  Number.isFinite(value) ? `${value.toFixed(value < 100 ? 1 : 0)} µs` : '?'

/** A ratio above 1 is never shown as a figure: against a bare server that does less it can only be noise. */
export function ratio({ median }: Distribution): string {
  if (!Number.isFinite(median)) return '?'
  return median > 1 ? 'no slower' : hundredths(median)
}

export function spread(distribution: Distribution): string {
  const value = spreadOf(distribution)
  return provesSomething(distribution) ? percent(value) : `${percent(value)}, proves nothing`
}

export function comparisonColumns(ours: string, other: string): string[] {
  return [`${ours} /s`, `${other} /s`, 'ratio', 'spread', `${ours} CPU`, `${other} CPU`, 'CPU ratio', 'spread']
}

export interface Compared {
  readonly ours: Rated
  readonly reference: Rated
  readonly comparison: Comparison
}

/** The cells below those columns. If one of the ratios proves something, the other does not have to. */
export function comparisonCells({ ours, reference, comparison }: Compared): string[] {
  const { rate, cpu, idle } = comparison
  const isProven = provesSomething(decisive(comparison).judged)
  const spreadCell = (distribution: Distribution) => (isProven ? percent(spreadOf(distribution)) : spread(distribution))
  return [
    whole(median(ours.rates)),
    whole(median(reference.rates)),
    idle ? `${ratio(rate)}, not at its limit` : ratio(rate),
    spreadCell(rate),
    microseconds(median(ours.cpu)),
    microseconds(median(reference.cpu)),
    ratio(cpu),
    spreadCell(cpu),
  ]
}

export function shareMark(least: number, what: string, comparison: Comparison): Mark {
  const { judged, byCpu } = decisive(comparison)
  return { ...judge(judged, ratio(judged), byCpu, judged.median >= least), what, demanded: `at least ${least}` }
}

/** For a server that does less than we do: how much of our rate it may reach. */
export function rivalMark(most: number, what: string, comparison: Comparison): Mark {
  const { judged, byCpu } = decisive(comparison)
  const said = judged.median > 1 ? 'faster than Menshen' : ratio(judged)
  return { ...judge(judged, said, byCpu, judged.median <= most), what, demanded: `at most ${most}` }
}

function judge(judged: Distribution, said: string, byCpu: boolean, isMet: boolean) {
  const verdict: Mark['verdict'] = provesSomething(judged) ? (isMet ? 'met' : 'missed') : 'proves nothing'
  return { measured: `${said}${byCpu ? ' by CPU time' : ''}, spread ${spread(judged)}`, verdict }
}

/** A figure that must stay below a limit. */
export function belowMark(what: string, value: number, most: number, say: (value: number) => string): Mark {
  return { what, demanded: `under ${say(most)}`, measured: say(value), verdict: value < most ? 'met' : 'missed' }
}
