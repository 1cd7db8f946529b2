// That a day fails when it should: without processes, on a record written by hand.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRandom } from '../../security/random.ts'
import { planDay, readOptions } from './plan.ts'
import { drawDay } from './plot.ts'
import { createRecord } from './record.ts'
import { faultTable, judgeLevels, judgePages } from './report.ts'

const DAY = { minutes: 30, seed: 1, keeps: false }
const plan = planDay(DAY, createRandom(1))

test('the same seed plans the same faults, and no fault in the afternoon ends a process', () => {
  const faultsOf = (seed: number, isAfternoon: boolean) => {
    const { nextFaults } = planDay(DAY, createRandom(seed))
    return Array.from({ length: 40 }, () => nextFaults(isAfternoon)).flat()
  }
  const namesOf = (seed: number) => faultsOf(seed, false).map(({ fault, where }) => `${fault.name} ${where}`)
  assert.deepEqual(namesOf(1), namesOf(1))
  assert.notDeepEqual(namesOf(1), namesOf(2))
  assert.ok(!faultsOf(1, true).some(({ fault }) => fault.endsProcesses))
  for (const text of ['1', 'x']) assert.throws(() => readOptions({ LONG_MINUTES: text }), /--minutes takes/)
})

test('an error is excused only by a fault that is still active and expects it', () => {
  const record = createRecord()
  const fail = (kind: string) => record.failed({ began: record.now(), site: 'sqlite', user: 'a', kind, action: 'page' })
  const fault = record.beginFault('store away', 'sqlite', ['503'])
  fail('503')
  assert.equal(record.violations.length, 0)
  fail('500')
  fault.over = record.now() - 1
  fail('503')
  assert.deepEqual(
    record.violations.map(sentence => sentence.replace(/^.* s: /, '')),
    ['a of sqlite, page: 500 during store away (sqlite)', 'a of sqlite, page: 503 during no fault'],
  )
  assert.match(faultTable(record), /store away +\| 1 +\| 1 × 503/)
  assert.ok(drawDay(record, plan).includes('<title>store away (sqlite)</title>'))
})

test('a day fails if memory grows, or if the p99 of pages between the faults more than doubles', () => {
  const judge = (growth: number, slowness: number) => {
    const record = createRecord()
    const fault = record.beginFault('reload', 'sqlite', [])
    Object.assign(fault, { began: plan.firstFault, over: plan.firstFault + 10 })
    for (let at = 0; at < plan.end; at++) {
      const isLate = at > plan.end / 2
      const memory = 300e6 * (isLate ? growth : 1)
      record.samples.push({ at, site: 'sqlite', memory, descriptors: 50, store: 1e6 })
      const isBetween = at > plan.firstFault && at < plan.lastFault
      record.answers.push({ began: at, ended: at + 0.01 * (isBetween ? slowness : 1), isPage: true })
    }
    return [...judgePages(record, plan).problems, ...judgeLevels(record, plan).problems]
  }
  assert.deepEqual(judge(1.2, 1.9), [])
  assert.deepEqual(judge(1.4, 1.9), ['sqlite: memory, MB went from 300.0 to 420.0'])
  assert.deepEqual(judge(1.2, 2.1), ['p99 between the faults is 21.0 ms, and 10.0 ms when it is quiet'])
})
