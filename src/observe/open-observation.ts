// Opens everything that observes: the log, the metrics, what the console plots, traces.
import { createEventLog, type Log } from '../log.ts'
import type { Settings } from '../settings/read.ts'
import { createAccessLog } from './access-log.ts'
import { createMetrics } from './metrics/metrics.ts'
import { createObservation, type Observer } from './observation.ts'
import { thisInstance } from './series/this-instance.ts'
import { createSeries } from './series/time-series.ts'
import { createShadowRefusals } from './shadow-refusals.ts'
import { openTracing } from './tracing/open-tracing.ts'

interface ObservationOptions {
  readonly settings: Settings
  readonly log: Log
  readonly now: () => number
  /** The id of the provider of those who do not say which is theirs. */
  readonly mainProvider: () => string
}

/** What it opens is closed with the rest of `opened`. */
export async function openObservation(
  opened: AsyncDisposableStack,
  { settings, log, now, mainProvider }: ObservationOptions,
) {
  const eventLog = opened.adopt(createEventLog(log, now), events => events.close())
  const metrics = settings.METRICS_FROM === 'none' ? undefined : createMetrics()
  const series = createSeries({ instance: thisInstance(now()), now })
  const shadowRefusals = createShadowRefusals(now)
  const tracing = await openTracing({ baseUrl: settings.BASE_URL, store: settings.STORE })
  opened.defer(() => tracing?.flush())
  const observers: Observer[] = [{ onEvent: eventLog.report }, series.observer, shadowRefusals.observer]
  if (metrics) observers.push(metrics.observer)
  if (settings.ACCESS_LOG) observers.push(createAccessLog(eventLog.write))
  if (tracing) observers.push(tracing.observer)
  return {
    metrics,
    series,
    shadowRefusals,
    observation: createObservation(observers, mainProvider, tracing),
    /** For one that needs what is opened only later, and hears of events alone. */
    join: (observer: Pick<Observer, 'onEvent'>) => void observers.push(observer),
  }
}
