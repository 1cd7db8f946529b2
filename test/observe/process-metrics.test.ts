// The metrics of the process itself, and those of several processes as one.

import assert from 'node:assert/strict'
import { createHook } from 'node:async_hooks'
import { suite, test } from 'node:test'
import { mergeSnapshots, writeMetrics } from '../../src/observe/exposition.ts'
import { createProcessMetrics, PROCESS_METRICS } from '../../src/observe/process-metrics.ts'
import { readMetrics } from '../kit/scrape.ts'
import { until } from '../kit/until.ts'

/** What dashboards for Node ask for. */
const EXPECTED = [
  'process_cpu_user_seconds_total',
  'process_cpu_system_seconds_total',
  'process_cpu_seconds_total',
  'process_start_time_seconds',
  'process_resident_memory_bytes',
  'nodejs_eventloop_lag_seconds',
  'nodejs_eventloop_lag_min_seconds',
  'nodejs_eventloop_lag_max_seconds',
  'nodejs_eventloop_lag_mean_seconds',
  'nodejs_eventloop_lag_stddev_seconds',
  'nodejs_eventloop_lag_p50_seconds',
  'nodejs_eventloop_lag_p90_seconds',
  'nodejs_eventloop_lag_p99_seconds',
  'nodejs_active_resources{type="other"}',
  'nodejs_heap_size_total_bytes',
  'nodejs_heap_size_used_bytes',
  'nodejs_external_memory_bytes',
  'nodejs_heap_space_size_total_bytes{space="old"}',
  'nodejs_heap_space_size_used_bytes{space="new"}',
  'nodejs_heap_space_size_available_bytes{space="code"}',
  'nodejs_gc_duration_seconds_count{kind="minor"}',
  'nodejs_gc_duration_seconds_bucket{kind="major",le="5"}',
]
const EXPECTED_ON_LINUX = ['process_virtual_memory_bytes', 'process_heap_bytes', 'process_open_fds', 'process_max_fds']

test('a process reports its CPU time, memory, event loop, garbage collection and version', async () => {
  const read = createProcessMetrics()
  await read()
  let scraped = readMetrics('')
  await until(async () => {
    scraped = readMetrics(writeMetrics(await read()))
    return scraped.samples.has('nodejs_eventloop_lag_max_seconds')
  })
  const expected = process.platform === 'linux' ? [...EXPECTED, ...EXPECTED_ON_LINUX] : EXPECTED
  for (const series of expected) assert.ok(scraped.samples.has(series), series)
  const { value } = scraped
  assert.equal(value('process_start_time_seconds'), Math.round(performance.timeOrigin / 1000))
  assert.ok(value('process_resident_memory_bytes') > value('nodejs_heap_size_used_bytes'))
  assert.ok(value('process_cpu_seconds_total') > 0)
  const [major, minor, patch] = process.versions.node.split('.')
  assert.equal(
    value(`nodejs_version_info{version="${process.version}",major="${major}",minor="${minor}",patch="${patch}"}`),
    1,
  )
})

test('a value that has not been measured yet is absent instead of an implausible number', async () => {
  const { nodejs_eventloop_lag_min_seconds: lag, process_cpu_seconds_total: cpu } = await createProcessMetrics()()
  assert.ok(lag === undefined || (lag[0] ?? 0) < 3600, String(lag))
  assert.equal(cpu?.length, 1)
})

test('the first read starts one event loop monitor, and later reads reuse it', async t => {
  const created: string[] = []
  const hook = createHook({ init: (_id, type) => void created.push(type) }).enable()
  t.after(() => hook.disable())
  const watchers = () => created.filter(type => type === 'ELDHISTOGRAM').length
  const read = createProcessMetrics()
  assert.equal(watchers(), 0)
  await read()
  assert.equal(watchers(), 1)
  await read()
  assert.equal(watchers(), 1)
})

suite('the metrics of several processes', () => {
  test('are the sum, mean, minimum or maximum, as the row of the metric defines', () => {
    const merged = mergeSnapshots([
      { menshen_session_cache_total: [3, 1], menshen_sessions: [7], nodejs_eventloop_lag_mean_seconds: [1] },
      { menshen_session_cache_total: [2, 0], menshen_sessions: [8], nodejs_eventloop_lag_mean_seconds: [3] },
    ])
    assert.deepEqual(merged.menshen_session_cache_total, [5, 1])
    assert.deepEqual(merged.menshen_sessions, [8])
    assert.deepEqual(merged.nodejs_eventloop_lag_mean_seconds, [2])
    const started = mergeSnapshots([{ process_start_time_seconds: [20] }, { process_start_time_seconds: [10] }])
    assert.deepEqual(started.process_start_time_seconds, [10])
  })

  test('leave out a process that has no value', () => {
    const merged = mergeSnapshots([{ menshen_sessions: [] }, {}, { menshen_sessions: [4] }])
    assert.deepEqual(merged.menshen_sessions, [4])
    assert.deepEqual(merged.menshen_workers, [])
    assert.ok(!readMetrics(writeMetrics(merged)).samples.has('menshen_workers'))
  })

  test('have the version of Node only once', () => {
    const one = { nodejs_version_info: [1] }
    assert.deepEqual(mergeSnapshots([one, one]).nodejs_version_info, [1])
    assert.equal(PROCESS_METRICS.nodejs_version_info.merge, 'max')
  })
})
