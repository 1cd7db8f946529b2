// Draws the day as an SVG: three panels above each other (rate, memory, errors), and the faults as bands through all of them.

import type { Plan } from './plan.ts'
import type { DayRecord } from './record.ts'

const WIDTH = 1000
const LEFT = 56
const RIGHT = 30
const TOP = 14
const PANEL = 130
const GAP = 34
const BUCKET_SECONDS = 5
const COLOURS = [
  '#8dd3c7',
  '#fdb462',
  '#bebada',
  '#fb8072',
  '#80b1d3',
  '#b3de69',
  '#fccde5',
  '#d9d9d9',
  '#bc80bd',
  '#ccebc5',
  '#ffed6f',
  '#a6cee3',
  '#cab2d6',
  '#e5c494',
]
const LINES = ['#1f4e9c', '#b5442f']
const PER_LEGEND_ROW = 5

interface Curve {
  readonly name: string
  readonly points: readonly (readonly [at: number, value: number])[]
}

export function drawDay(record: DayRecord, plan: Plan): string {
  const x = (at: number) => LEFT + (Math.min(at, plan.end) / plan.end) * (WIDTH - LEFT - RIGHT)
  const sites = [...new Set(record.samples.map(({ site }) => site))]
  const rate = {
    name: '',
    points: perSecond(
      record.answers.map(({ ended }) => ended),
      plan.end,
    ),
  }
  const errors = {
    name: '',
    points: perSecond(
      record.errors.map(({ at }) => at),
      plan.end,
    ),
  }
  const memory = sites.map(site => ({
    name: site,
    points: record.samples.filter(sample => sample.site === site).map(({ at, memory }) => [at, memory / 1e6] as const),
  }))
  const panels = [
    panel(0, 'actions per second', [rate], x),
    panel(1, 'memory of all processes of a site, MB', memory, x),
    panel(2, 'errors per second', [errors], x),
  ]
  const bottom = panelTop(2) + PANEL
  const names = [...new Set(record.faults.map(({ name }) => name))].sort()
  const height = bottom + 50 + Math.ceil(names.length / PER_LEGEND_ROW) * 20
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="12"><title>A day of faults</title>`,
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>`,
    ...record.faults.map(fault => band(fault, x, bottom, colourOf(names, fault.name))),
    ...panels,
    timeAxis(plan, x, bottom),
    ...names.map((name, n) => legend(name, n, bottom + 44, colourOf(names, name))),
    '</svg>\n',
  ].join('\n')
}

/** The mean of each bucket. */
function perSecond(times: readonly number[], end: number): [at: number, value: number][] {
  const counts = Array<number>(Math.floor(end / BUCKET_SECONDS)).fill(0)
  for (const at of times) {
    const bucket = Math.floor(at / BUCKET_SECONDS)
    if (bucket < counts.length) counts[bucket] = (counts[bucket] ?? 0) + 1
  }
  return counts.map((count, n) => [(n + 0.5) * BUCKET_SECONDS, count / BUCKET_SECONDS])
}

function panelTop(n: number): number {
  return TOP + 14 + n * (PANEL + GAP)
}

function panel(n: number, title: string, curves: readonly Curve[], x: (at: number) => number): string {
  const top = panelTop(n)
  const most = roundUp(Math.max(1, ...curves.flatMap(({ points }) => points.map(([, value]) => value))))
  const y = (value: number) => top + PANEL * (1 - value / most)
  const grid = [0, 0.5, 1].map(share => {
    const at = y(most * share).toFixed(1)
    const line = `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${at}" y2="${at}" stroke="#bbb" stroke-width="0.5"/>`
    return `${line}<text x="${LEFT - 6}" y="${at}" text-anchor="end" dominant-baseline="middle">${most * share}</text>`
  })
  const lines = curves.map(({ points }, n) => {
    const path = points.map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(' ')
    return `<polyline points="${path}" fill="none" stroke="${LINES[n]}" stroke-width="1.2"/>`
  })
  const names = curves.map(({ name }, n) => `<tspan fill="${LINES[n]}">${name && ` — ${name}`}</tspan>`).join('')
  return [...grid, ...lines, `<text x="${LEFT}" y="${top - 6}">${title}${names}</text>`].join('\n')
}

function band(
  { name, site, began, over }: DayRecord['faults'][number],
  x: (at: number) => number,
  bottom: number,
  colour: string,
): string {
  const width = Math.max(1, x(over) - x(began)).toFixed(1)
  const rect = `<rect x="${x(began).toFixed(1)}" y="${panelTop(0)}" width="${width}" height="${bottom - panelTop(0)}"`
  return `${rect} fill="${colour}" fill-opacity="0.55"><title>${name} (${site})</title></rect>`
}

function timeAxis({ end }: Plan, x: (at: number) => number, bottom: number): string {
  const step = end > 1200 ? 300 : 60
  const marks = Array.from({ length: Math.floor(end / step) + 1 }, (_, n) => n * step)
  return marks
    .map(at => `<text x="${x(at).toFixed(1)}" y="${bottom + 16}" text-anchor="middle">${at / 60} min</text>`)
    .join('\n')
}

function legend(name: string, n: number, top: number, colour: string): string {
  const left = LEFT + (n % PER_LEGEND_ROW) * ((WIDTH - LEFT - RIGHT) / PER_LEGEND_ROW)
  const y = top + Math.floor(n / PER_LEGEND_ROW) * 20
  return `<rect x="${left}" y="${y - 10}" width="12" height="12" fill="${colour}"/><text x="${left + 18}" y="${y}">${name}</text>`
}

function colourOf(names: readonly string[], name: string): string {
  return COLOURS[names.indexOf(name) % COLOURS.length] ?? '#ddd'
}

/** To 1, 2 or 5 times a power of ten. */
function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value))
  return ([1, 2, 5, 10].find(factor => factor * power >= value) ?? 10) * power
}
