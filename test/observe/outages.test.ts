// What scripts/outages.ts recorded of real outages, given to the alerts of the example: those that should fire do, and no other.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { requireProgram } from '../kit/requirements.ts'
import { tempFolder } from '../kit/temp.ts'
import { compactValues } from './recorded-values.ts'

const RULES = fileURLToPath(new URL('../../examples/prometheus/alerts.yml', import.meta.url))
const RECORDED: Readonly<Record<string, Readonly<Record<string, string>>>> = JSON.parse(
  readFileSync(new URL('outages.json', import.meta.url), 'utf8'),
)
/** An outage lasts from minute 2 to minute 10 of a recording, and the recording for almost three minutes more. */
const [BEGINS, ENDS, AFTER] = ['2m', '10m', '12m45s']
/** Others look at ten minutes, or are warnings. */
const OVER_AFTER = 'MenshenDown|MenshenErrors|MenshenStoreFailing'

/** By outage: the alerts that fire at its end. */
const FIRING: Readonly<Record<string, readonly string[]>> = {
  'nothing fails': [],
  'the application stops': ['MenshenErrors'],
  'the provider stops': ['MenshenErrors', 'MenshenRefreshesFail'],
  'the token endpoint of the provider fails': ['MenshenErrors', 'MenshenRefreshesFail', 'MenshenSignInsFail'],
  'Redis stops': ['MenshenErrors', 'MenshenStoreFailing', 'MenshenStoreSlow'],
  'Redis stops at night': ['MenshenStoreFailing', 'MenshenStoreSlow'],
  // A refreshed token cannot be saved, and a sign-in ends before it reaches the provider.
  'the disk is full': ['MenshenErrors', 'MenshenRefreshesFail', 'MenshenStoreFailing', 'MenshenStoreSlow'],
  'the disk is full at night': ['MenshenStoreFailing', 'MenshenStoreSlow'],
  'Menshen hangs': ['MenshenDown'],
}

/** Those that still fire almost three minutes after the end. This Redis came back without sessions, and no user signed in again. */
const STILL_FIRING: Readonly<Record<string, readonly string[]>> = { 'Redis stops': ['MenshenErrors'] }

test('every recorded outage is tested', () => {
  assert.deepEqual(Object.keys(RECORDED), Object.keys(FIRING))
})

for (const [outage, alerts] of Object.entries(FIRING))
  test(`when ${outage}, exactly these alerts fire: ${alerts.join(', ') || 'none'}`, t => {
    const firing = (eval_time: string, expected: readonly string[], among = '.*') => ({
      expr: `count by (alertname) (ALERTS{alertstate="firing",alertname=~"${among}"})`,
      eval_time,
      exp_samples: expected.map(alertname => ({ labels: `{alertname="${alertname}"}`, value: 1 })),
    })
    const file = join(tempFolder(t), 'outage.yml')
    const recording = {
      interval: '15s',
      input_series: Object.entries(RECORDED[outage] ?? {}).map(([name, values]) => ({ series: scraped(name), values })),
      promql_expr_test: [
        firing(BEGINS, []),
        firing(ENDS, alerts),
        firing(AFTER, STILL_FIRING[outage] ?? [], OVER_AFTER),
      ],
    }
    // JSON is YAML too.
    writeFileSync(file, JSON.stringify({ rule_files: [RULES], evaluation_interval: '15s', tests: [recording] }))
    const { status, stdout, stderr } = spawnSync(requireProgram('promtool'), ['test', 'rules', file])
    assert.equal(status, 0, `${stdout}${stderr}`)
  })

test('values are written in the compact notation that promtool reads', () => {
  assert.equal(compactValues([0, 0, 0, 1, 3, 5, undefined, undefined, 2.5]), '0x2 1+2x2 _x2 2.5')
  assert.equal(compactValues([5, 3, 1, 1]), '5-2x2 1')
  assert.equal(compactValues([]), '')
})

/** With the labels that Prometheus adds. */
function scraped(series: string): string {
  const [, name, labels] = /^(\w+)(?:\{(.*)\})?$/.exec(series) ?? assert.fail(series)
  return `${name}{job="menshen",instance="a"${labels ? `,${labels}` : ''}}`
}
