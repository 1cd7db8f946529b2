// Counts what it observes, and tells it when asked. It is on the path of every request: an array's place, no more.
import type { EventCode, Work } from '../../events.ts'
import type { Observer } from '../observation.ts'
import { METRICS, type MetricName } from './metric-rows.ts'
import { readProcess } from './process-metrics.ts'
import type { Reading } from './reading.ts'
import { createCounter, createHistogram, type Series } from './series.ts'

/** What is asked for when it is read; absent if it is not known then. */
export interface Gauges {
  readonly menshen_upstream_queue: number
  readonly menshen_open_streams: number
  readonly menshen_sessions?: number
}

export interface Metrics {
  readonly observer: Observer
  read(gauges: Gauges): Promise<Reading>
}

export function createMetrics(): Metrics {
  const all = new Map<MetricName, Series>()
  const counter = (name: MetricName) => kept(all, name, createCounter(METRICS[name]))
  const histogram = (name: MetricName) => kept(all, name, createHistogram(METRICS[name]))
  const requests = counter('menshen_requests_total')
  const requestSeconds = histogram('menshen_request_seconds')
  const cache = counter('menshen_session_cache_total')
  const upstreamSeconds = histogram('menshen_upstream_seconds')
  const storeSeconds = histogram('menshen_store_seconds')
  const providerSeconds = histogram('menshen_provider_seconds')
  const signIns = counter('menshen_sign_ins_total')
  const signOuts = counter('menshen_sign_outs_total')
  const refreshes = counter('menshen_refreshes_total')
  const rateLimited = counter('menshen_rate_limited_total')

  const byEvent: Partial<Record<EventCode, (facts: Readonly<Record<string, unknown>>) => void>> = {
    sign_in: () => signIns.add('ok'),
    sign_in_failed: ({ reason }) => signIns.add(String(reason)),
    sign_out: () => signOuts.add('user'),
    // Somebody may have asked for the end of sessions that there were not.
    session_ended: ({ by, ended }) => ended !== 0 && signOuts.add(String(by)),
    session_refreshed: () => refreshes.add('ok'),
    session_refresh_failed: ({ reason }) => refreshes.add(String(reason)),
    rate_limited: () => rateLimited.add(),
  }

  return {
    observer: {
      onEvent: (code, facts) => byEvent[code]?.(facts),

      onWork<Kind extends keyof Work>(kind: Kind, what: Work[Kind], result: string, seconds: number) {
        if (kind === 'store') storeSeconds.observe(seconds, what, result)
        else if (kind === 'provider') providerSeconds.observe(seconds, what, result)
        // What became of any other was an event.
        else if (kind === 'refresh' && result !== 'ok') refreshes.add(result)
      },

      onAnswer({ askedAt }, status) {
        if (askedAt === undefined) return
        upstreamSeconds.observe((performance.now() - askedAt) / 1000, statusClass(status))
      },

      onRequest({ outcome, isStream, isAtHand }, _status, ms) {
        requests.add(outcome)
        if (!isStream) requestSeconds.observe(ms / 1000)
        if (isAtHand !== undefined) cache.add(isAtHand ? 'hit' : 'miss')
      },
    },

    async read(gauges) {
      const counts = [...all].map(([name, series]) => [name, series.read()])
      return { counts: Object.fromEntries(counts), gauges: { ...gauges }, process: await readProcess() }
    },
  }
}

function kept<Kind extends Series>(all: Map<MetricName, Series>, name: MetricName, series: Kind): Kind {
  all.set(name, series)
  return series
}

const CLASSES = ['error', '1xx', '2xx', '3xx', '4xx', '5xx'] as const

/** An application may answer with any number. */
function statusClass(status: number): string {
  return CLASSES[Math.floor(status / 100)] ?? 'error'
}
