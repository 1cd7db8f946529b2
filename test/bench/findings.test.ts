// What the benchmarks may conclude from their figures.

import assert from 'node:assert/strict'
import test from 'node:test'
import { readCommandLine } from '../../bench/command-line.ts'
import { compare, contest, decisive, type Rated } from '../../bench/measure/contest.ts'
import { distributionOf, median, quantile, spreadOf } from '../../bench/measure/statistics.ts'
import { toMarkdown } from '../../bench/report/markdown.ts'
import { toPage } from '../../bench/report/results.ts'
import { comparisonCells, comparisonColumns, ratio, rivalMark, shareMark, spread } from '../../bench/report/words.ts'

const steady = (rate: number, busy = 1): Rated => rated(Array(16).fill(rate), busy)
const rated = (rates: readonly number[], busy = 1): Rated => ({
  rates,
  cpu: rates.map(rate => (busy * 1e6) / rate),
  busy: rates.map(() => busy),
})

test('the median is the middle value, or the mean of the two middle values', () => {
  assert.equal(median([9, 1, 5]), 5)
  assert.equal(median([1, 2, 3, 10]), 2.5)
  assert.ok(Number.isNaN(median([])))
})

test('quartiles are interpolated, and the spread is their distance as a share of the median', () => {
  const values = [1, 2, 3, 4, 5]
  assert.deepEqual([quantile(values, 0), quantile(values, 0.25), quantile(values, 1)], [1, 2, 5])
  assert.equal(spreadOf(distributionOf(values)), 2 / 3)
  assert.equal(spreadOf(distributionOf([0.8, 0.8, 0.8])), 0)
})

test('a period that was slow for both contenders does not change the ratio', () => {
  const { rate } = compare(rated([80, 40, 80, 8, 8, 8, 8, 8]), rated([100, 50, 100, 10, 10, 10, 10, 10]))
  assert.equal(rate.median, 0.8)
  assert.equal(spreadOf(rate), 0)
})

test('a mark is met or missed by the median of the ratios', () => {
  assert.equal(shareMark(0.85, 'check', compare(steady(90), steady(100))).verdict, 'met')
  assert.equal(shareMark(0.85, 'check', compare(steady(80), steady(100))).verdict, 'missed')
  assert.equal(shareMark(0.85, 'check', compare(steady(80), steady(100))).measured, '0.80, spread 0 %')
})

test('a spread of more than a tenth or too few rounds are reported as proving nothing', () => {
  const rates = [70, 80, 90, 100, 110, 120].flatMap(rate => Array(4).fill(rate))
  const wide = compare(rated(rates), rated(Array(24).fill(100)))
  const mark = shareMark(0.5, 'check', wide)
  assert.equal(mark.verdict, 'proves nothing')
  assert.match(mark.measured, /proves nothing/)
  assert.match(spread(wide.rate), /proves nothing/)
  assert.equal(shareMark(0.5, 'check', compare(rated([90]), rated([100]))).verdict, 'proves nothing')
})

test('an inconclusive comparison runs more rounds, up to the planned maximum of four times as many', async () => {
  const plan = { warmUpSeconds: 0, rounds: 4, mostRounds: 16, roundSeconds: 0 }
  let rounds = 0
  const noisy = { pid: process.pid, measure: async () => ({ requests: 1, rate: 2 ** rounds++ }) }
  const [alone] = await contest([noisy], plan)
  assert.equal(alone?.rates.length, 4)
  const [one, other] = await contest([noisy, noisy], plan)
  assert.deepEqual([one?.rates.length, other?.rates.length], [16, 16])
})

test('many rounds are compared in larger groups, which averages out their noise', () => {
  const rates = Array.from({ length: 96 }, (_, round) => (round % 12 < 6 ? 80 : 120))
  assert.equal(spreadOf(compare(rated(rates), rated(Array(96).fill(100))).rate), 0)
})

test('a comparison is decided by CPU time if the rates vary widely and CPU time does not', () => {
  const rates = [70, 80, 90, 100, 110, 120].flatMap(rate => Array(4).fill(rate))
  const ours = { rates, cpu: Array(24).fill(12_500), busy: Array(24).fill(1) }
  const { judged, byCpu } = decisive(compare(ours, steady(100)))
  assert.deepEqual([byCpu, judged.median], [true, 0.8])
})

test('no ratio above 1 is published', () => {
  const faster = { ours: steady(130), reference: steady(100), comparison: compare(steady(130), steady(100)) }
  assert.equal(ratio(faster.comparison.rate), 'no slower')
  const said = [
    ...comparisonCells(faster).slice(2),
    shareMark(0.85, 'check', faster.comparison).measured,
    rivalMark(1, 'Caddy', faster.comparison).measured,
  ]
  assert.deepEqual(
    said.filter(cell => /\b1\.\d/.test(cell)),
    [],
  )
  assert.equal(comparisonCells(faster).length, comparisonColumns('Menshen', 'bare').length)
})

test('four neighbouring rounds are averaged, so a slow one has a quarter of the weight', () => {
  const { rate } = compare(rated([80, 80, 40, 80]), rated([100, 100, 100, 100]))
  assert.equal(rate.median, 0.7)
})

test('a mark is judged by CPU time if the spread of the rates is wide and that of CPU time is not', () => {
  const rates = [70, 80, 90, 100, 110, 120].flatMap(rate => Array(4).fill(rate))
  const ours = { ...steady(90), rates }
  const mark = shareMark(0.85, 'gateway', compare(ours, steady(100)))
  assert.equal(mark.verdict, 'met')
  assert.equal(mark.measured, '0.90 by CPU time, spread 0 %')
})

test('a mark is judged by CPU time if the reference server was not fully busy', () => {
  const [ours, idle] = [steady(100), steady(100, 0.5)]
  const mark = shareMark(0.85, 'gateway', compare(ours, idle))
  assert.equal(mark.verdict, 'missed')
  assert.equal(mark.measured, '0.50 by CPU time, spread 0 %')
})

test('a rival meets its mark with at most a share of our rate, and a faster rival is reported as faster', () => {
  assert.equal(rivalMark(0.67, 'passport', compare(steady(50), steady(100))).verdict, 'met')
  assert.equal(rivalMark(1, 'Caddy', compare(steady(120), steady(100))).measured, 'faster than Menshen, spread 0 %')
})

test('the results page lists a failed part with its reason beside the measured parts', () => {
  const table = { title: 'Start', columns: ['store', 'until ready'], rows: [['sqlite', '700 ms']] }
  const about = { at: '2026-01-01 00:00', seconds: 3, rounds: 40, roundSeconds: 0.5 }
  const page = toPage({
    machine: '2 cores of a test',
    parts: {
      start: { ...about, findings: { tables: [table], marks: [] } },
      sweep: { ...about, failure: 'not done after 6 minutes' },
    },
  })
  assert.ok(page.includes(toMarkdown(table)))
  assert.match(page, /2 cores of a test/)
  assert.match(page, /\*\*Not measured\*\*: not done after 6 minutes/)
})

test('the benchmark command line selects parts and options, and rejects invalid ones', () => {
  const some = readCommandLine(['check:sqlite', 'gateway', '--rounds', '12'])
  assert.deepEqual(some.parts.get('check'), ['sqlite'])
  assert.ok(some.parts.get('gateway')?.includes('64KB'))
  assert.equal(some.plan.rounds, 12)
  assert.deepEqual([some.isWhole, some.keeps], [false, false])
  const all = readCommandLine([])
  assert.deepEqual([all.isWhole, all.keeps, all.plan.rounds], [true, true, 24])
  assert.equal(readCommandLine(['check', '--keep']).keeps, true)
  assert.ok(readCommandLine(['growth']).parts.has('streams'))
  for (const wrong of [
    ['nothing'],
    ['check:nothing'],
    ['--rounds', 'x'],
    ['check:sqlite', '--keep'],
    ['--quick', '--keep'],
  ])
    assert.throws(() => readCommandLine(wrong), wrong.join(' '))
})
