// A real Prometheus reads /_menshen/metrics, and what the examples ask it for exists.

import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { METRICS } from '../../src/observe/metrics.ts'
import { freePort } from '../kit/free-port.ts'
import { requireProgram } from '../kit/requirements.ts'
import { scrape } from '../kit/scrape.ts'
import { setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'

const EXAMPLES = fileURLToPath(new URL('../../examples/', import.meta.url))
const example = (path: string) => readFileSync(join(EXAMPLES, path), 'utf8')

test('Prometheus with the example configuration sees a sign-in, and no alert fires', async t => {
  const scene = await setUp(t)
  const folder = tempFolder(t)
  // As it is, but for the port and for how long a test can wait.
  const config = example('prometheus/prometheus.yml')
    .replaceAll('127.0.0.1:3000', new URL(scene.url).host)
    .replaceAll('15s', '200ms')
  writeFileSync(join(folder, 'prometheus.yml'), config)
  writeFileSync(join(folder, 'alerts.yml'), example('prometheus/alerts.yml'))
  const address = `127.0.0.1:${await freePort()}`
  const options = [
    `--config.file=${join(folder, 'prometheus.yml')}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    `--web.listen-address=${address}`,
    '--log.level=error',
  ]
  const prometheus = spawn(requireProgram('prometheus'), options, { stdio: 'ignore' })
  t.after(async () => {
    prometheus.kill('SIGKILL')
    if (prometheus.exitCode === null && prometheus.signalCode === null) await once(prometheus, 'exit')
  })

  const query = async (expression: string): Promise<string | undefined> => {
    const url = `http://${address}/api/v1/query?${new URLSearchParams({ query: expression })}`
    const answer = await fetch(url).catch(() => undefined)
    const body = answer?.ok ? ((await answer.json()) as { data: { result: { value: [number, string] }[] } }) : undefined
    return body?.data.result[0]?.value[1]
  }

  await until(async () => (await query('menshen_sign_ins_total{result="ok"}')) === '0', 30_000)
  await scene.user()
  await until(async () => (await query('menshen_sign_ins_total{result="ok"}')) === '1', 30_000)
  // A scrape has the 200 ms until the next one, and a busy machine may miss some.
  await until(async () => (await query('up{job="menshen"}')) === '1', 30_000)
  await until(async () => (await query('count({__name__=~"menshen_.*"}) > 100')) !== undefined, 30_000)
  assert.equal(await query('count(ALERTS{alertstate="firing"})'), undefined)
})

suite('the examples', () => {
  test('the example alerts pass promtool, each with a test in which it fires and one in which it does not', () => {
    for (const args of [
      ['check', 'config', 'prometheus.yml'],
      ['test', 'rules', 'alerts-test.yml'],
    ]) {
      const { status, stdout, stderr } = spawnSync(requireProgram('promtool'), args, {
        cwd: join(EXAMPLES, 'prometheus'),
      })
      assert.equal(status, 0, `${stdout}${stderr}`)
    }
    const alerts = [...example('prometheus/alerts.yml').matchAll(/- alert: (\w+)/g)].map(([, name]) => name)
    const tests = example('prometheus/alerts-test.yml')
    for (const name of alerts) {
      assert.match(tests, new RegExp(`alertname: ${name} \\}`), `a test in which ${name} does not fire`)
      assert.match(tests, new RegExp(`alertname: ${name},`), `a test in which ${name} fires`)
    }
  })

  test('every metric in the alerts and the dashboard exists, and the dashboard shows every metric of Menshen', async t => {
    const scene = await setUp(t)
    const { samples } = await scrape(scene.url)
    // That of a certificate exists only where there is one.
    const names = new Set([...samples.keys(), ...Object.keys(METRICS)].map(series => series.replace(/\{.*/, '')))
    const dashboard = JSON.stringify(JSON.parse(example('grafana/menshen.json')))
    for (const text of [example('prometheus/alerts.yml'), dashboard]) {
      const asked = new Set(text.match(/\b(menshen|process|nodejs)_\w+/g))
      assert.ok(asked.size >= 5)
      assert.deepEqual(
        [...asked].filter(name => !names.has(name)),
        [],
      )
    }
    assert.deepEqual(
      Object.keys(METRICS).filter(name => name.startsWith('menshen_') && !dashboard.includes(name)),
      [],
      'the dashboard leaves out none of ours',
    )
  })

  test('Prometheus accepts every expression of the dashboard', t => {
    const { panels } = JSON.parse(example('grafana/menshen.json')) as { panels: { targets?: { expr: string }[] }[] }
    const expressions = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
    const rules = expressions.map((expr, n) => ({
      record: `menshen:panel:${n}`,
      expr: expr.replaceAll('$__rate_interval', '1m').replaceAll('$job', 'menshen'),
    }))
    const file = join(tempFolder(t), 'rules.yml')
    // JSON is YAML too.
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }))
    const { status, stdout, stderr } = spawnSync(requireProgram('promtool'), ['check', 'rules', file])
    assert.equal(status, 0, `${stdout}${stderr}`)
  })
})
