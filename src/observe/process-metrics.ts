// The metrics of the process itself, under the names that dashboards for Node expect. Each row has the function that reads it from a sample.
// The event loop and the garbage collection are watched from the first read on: without Prometheus they cost nothing.

import { readdir, readFile } from 'node:fs/promises'
import {
  constants,
  type ELDHistogram,
  monitorEventLoopDelay,
  type PerformanceNodeEntry,
  PerformanceObserver,
} from 'node:perf_hooks'
import { setImmediate } from 'node:timers/promises'
import { getHeapSpaceStatistics } from 'node:v8'
import { createHistogram, type Histogram, type MetricRow, type MetricsSnapshot } from './series.ts'

/** What one scrape reads. A value that is not a number is unknown. */
export interface ProcessSample {
  readonly cpu: NodeJS.CpuUsage
  readonly memory: NodeJS.MemoryUsage
  readonly spaces: ReturnType<typeof getHeapSpaceStatistics>
  readonly resources: readonly string[]
  readonly lagSeconds: number
  /** In nanoseconds, since the last sample. */
  readonly delay: Pick<ELDHistogram, 'min' | 'max' | 'mean' | 'stddev' | 'percentile'>
  readonly gc: Histogram
  /** Files of /proc/self; empty on other systems than Linux. */
  readonly status: string
  readonly limits: string
  readonly openFiles: number
}

interface ProcessRow extends MetricRow {
  read(sample: ProcessSample): number | readonly number[]
}

const [MAJOR, MINOR, PATCH] = process.versions.node.split('.') as [string, string, string]
const SPACES = getHeapSpaceStatistics().map(({ space_name }) => space_name.replace(/_space$/, ''))
const GC_KINDS: Readonly<Record<number, string>> = {
  [constants.NODE_PERFORMANCE_GC_MAJOR]: 'major',
  [constants.NODE_PERFORMANCE_GC_MINOR]: 'minor',
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: 'incremental',
  [constants.NODE_PERFORMANCE_GC_WEAKCB]: 'weakcb',
}
const RESOURCES = [
  'TCPServerWrap',
  'TCPSocketWrap',
  'TCPConnectWrap',
  'PipeWrap',
  'FSReqCallback',
  'FSReqPromise',
  'GetAddrInfoReqWrap',
  'Timeout',
  'Immediate',
  'other',
]

export const PROCESS_METRICS = {
  process_cpu_user_seconds_total: {
    type: 'counter',
    help: 'Total user CPU time spent in seconds.',
    read: ({ cpu }) => cpu.user / 1e6,
  },
  process_cpu_system_seconds_total: {
    type: 'counter',
    help: 'Total system CPU time spent in seconds.',
    read: ({ cpu }) => cpu.system / 1e6,
  },
  process_cpu_seconds_total: {
    type: 'counter',
    help: 'Total user and system CPU time spent in seconds.',
    read: ({ cpu }) => (cpu.user + cpu.system) / 1e6,
  },
  process_start_time_seconds: {
    type: 'gauge',
    help: 'Start time of the process since unix epoch in seconds.',
    merge: 'min',
    read: () => Math.round(performance.timeOrigin / 1000),
  },
  process_resident_memory_bytes: {
    type: 'gauge',
    help: 'Resident memory size in bytes.',
    read: ({ memory }) => memory.rss,
  },
  process_virtual_memory_bytes: {
    type: 'gauge',
    help: 'Virtual memory size in bytes.',
    read: ({ status }) => numberAfter('VmSize:', status) * 1024,
  },
  process_heap_bytes: {
    type: 'gauge',
    help: 'Process heap size in bytes.',
    read: ({ status }) => numberAfter('VmData:', status) * 1024,
  },
  process_open_fds: {
    type: 'gauge',
    help: 'Number of open file descriptors.',
    read: ({ openFiles }) => openFiles,
  },
  process_max_fds: {
    type: 'gauge',
    help: 'Maximum number of open file descriptors.',
    read: ({ limits }) => numberAfter('Max open files', limits),
  },
  nodejs_eventloop_lag_seconds: {
    type: 'gauge',
    help: 'Lag of event loop in seconds.',
    merge: 'average',
    read: ({ lagSeconds }) => lagSeconds,
  },
  nodejs_eventloop_lag_min_seconds: {
    type: 'gauge',
    help: 'The minimum recorded event loop delay.',
    merge: 'min',
    read: ({ delay }) => delay.min / 1e9,
  },
  nodejs_eventloop_lag_max_seconds: {
    type: 'gauge',
    help: 'The maximum recorded event loop delay.',
    merge: 'max',
    read: ({ delay }) => delay.max / 1e9,
  },
  nodejs_eventloop_lag_mean_seconds: {
    type: 'gauge',
    help: 'The mean of the recorded event loop delays.',
    merge: 'average',
    read: ({ delay }) => delay.mean / 1e9,
  },
  nodejs_eventloop_lag_stddev_seconds: {
    type: 'gauge',
    help: 'The standard deviation of the recorded event loop delays.',
    merge: 'average',
    read: ({ delay }) => delay.stddev / 1e9,
  },
  nodejs_eventloop_lag_p50_seconds: {
    type: 'gauge',
    help: 'The 50th percentile of the recorded event loop delays.',
    merge: 'average',
    read: ({ delay }) => delay.percentile(50) / 1e9,
  },
  nodejs_eventloop_lag_p90_seconds: {
    type: 'gauge',
    help: 'The 90th percentile of the recorded event loop delays.',
    merge: 'average',
    read: ({ delay }) => delay.percentile(90) / 1e9,
  },
  nodejs_eventloop_lag_p99_seconds: {
    type: 'gauge',
    help: 'The 99th percentile of the recorded event loop delays.',
    merge: 'average',
    read: ({ delay }) => delay.percentile(99) / 1e9,
  },
  nodejs_active_resources: {
    type: 'gauge',
    help: 'Number of active resources that are currently keeping the event loop alive, grouped by async resource type.',
    labels: { type: RESOURCES },
    read({ resources }) {
      const counts = RESOURCES.map(type => resources.filter(name => name === type).length)
      const other = resources.length - counts.reduce((sum, count) => sum + count)
      return [...counts.slice(0, -1), other]
    },
  },
  nodejs_heap_size_total_bytes: {
    type: 'gauge',
    help: 'Process heap size from Node.js in bytes.',
    read: ({ memory }) => memory.heapTotal,
  },
  nodejs_heap_size_used_bytes: {
    type: 'gauge',
    help: 'Process heap size used from Node.js in bytes.',
    read: ({ memory }) => memory.heapUsed,
  },
  nodejs_external_memory_bytes: {
    type: 'gauge',
    help: 'Node.js external memory size in bytes.',
    read: ({ memory }) => memory.external,
  },
  nodejs_heap_space_size_total_bytes: {
    type: 'gauge',
    help: 'Process heap space size total from Node.js in bytes.',
    labels: { space: SPACES },
    shownLabels: '`space`',
    read: ({ spaces }) => spaces.map(({ space_size }) => space_size),
  },
  nodejs_heap_space_size_used_bytes: {
    type: 'gauge',
    help: 'Process heap space size used from Node.js in bytes.',
    labels: { space: SPACES },
    shownLabels: '`space`',
    read: ({ spaces }) => spaces.map(({ space_used_size }) => space_used_size),
  },
  nodejs_heap_space_size_available_bytes: {
    type: 'gauge',
    help: 'Process heap space size available from Node.js in bytes.',
    labels: { space: SPACES },
    shownLabels: '`space`',
    read: ({ spaces }) => spaces.map(({ space_available_size }) => space_available_size),
  },
  nodejs_version_info: {
    type: 'gauge',
    help: 'Node.js version info.',
    labels: { version: [process.version], major: [MAJOR], minor: [MINOR], patch: [PATCH] },
    shownLabels: '`version`, `major`, `minor`, `patch`',
    merge: 'max',
    read: () => 1,
  },
  nodejs_gc_duration_seconds: {
    type: 'histogram',
    help: 'Garbage collection duration by kind, one of major, minor, incremental or weakcb.',
    labels: { kind: Object.values(GC_KINDS) },
    bounds: [0.001, 0.01, 0.1, 1, 2, 5],
    read: ({ gc }) => gc.read(),
  },
} as const satisfies Record<string, ProcessRow>

const ROWS: readonly [name: string, row: ProcessRow][] = Object.entries(PROCESS_METRICS)

interface Watch {
  readonly gc: Histogram
  readonly delay: ELDHistogram
}

export function createProcessMetrics(): () => Promise<MetricsSnapshot> {
  let watch: Watch | undefined
  return async () => {
    watch ??= { gc: watchGc(), delay: watchDelay() }
    const sample = await takeSample(watch)
    const read = ROWS.map(([name, row]) => [name, [row.read(sample)].flat()] as const)
    watch.delay.reset()
    return Object.fromEntries(read.filter(([, values]) => values.every(Number.isFinite)))
  }
}

function watchGc(): Histogram {
  const durations = createHistogram(PROCESS_METRICS.nodejs_gc_duration_seconds)
  const observer = new PerformanceObserver(list => {
    for (const { detail, duration } of list.getEntries() as PerformanceNodeEntry[])
      durations.observe(duration / 1000, GC_KINDS[detail.kind] ?? 'minor')
  })
  observer.observe({ entryTypes: ['gc'] })
  return durations
}

function watchDelay(): ELDHistogram {
  const delay = monitorEventLoopDelay()
  delay.enable()
  return delay
}

/** A histogram without a recorded delay has a minimum of 292 years. */
const NO_DELAY: ProcessSample['delay'] = {
  min: Number.NaN,
  max: Number.NaN,
  mean: Number.NaN,
  stddev: Number.NaN,
  percentile: () => Number.NaN,
}

async function takeSample({ gc, delay }: Watch): Promise<ProcessSample> {
  const [status, limits, openFiles] = await Promise.all([
    readFile('/proc/self/status', 'utf8').catch(() => ''),
    readFile('/proc/self/limits', 'utf8').catch(() => ''),
    // One of them is open for this reading.
    readdir('/proc/self/fd').then(
      files => files.length - 1,
      () => Number.NaN,
    ),
  ])
  const askedAt = performance.now()
  await setImmediate()
  return {
    cpu: process.cpuUsage(),
    memory: process.memoryUsage(),
    spaces: getHeapSpaceStatistics(),
    resources: process.getActiveResourcesInfo(),
    lagSeconds: (performance.now() - askedAt) / 1000,
    delay: delay.count > 0 ? delay : NO_DELAY,
    gc,
    status,
    limits,
    openFiles,
  }
}

/** Reads lines such as `VmSize:   1234 kB` and `Max open files   20000`. */
function numberAfter(name: string, text: string): number {
  return Number(text.match(new RegExp(`^${name}\\s+(\\d+)`, 'm'))?.[1])
}
