// What the overview shows at this moment: what is wrong, and the plots.
import { MenshenError } from '../../errors.ts'
import { createFresh, type Fresh } from '../../observe/fresh.ts'
import { problemsIn } from '../../observe/problems.ts'
import { RANGES, type Range } from '../../observe/series/history.ts'
import { plotOf } from '../../observe/series/plot.ts'
import type { OverviewView } from '../../pages/console/overview-page.ts'
import { adviceFor } from '../../settings/advice.ts'
import type { GatewayContext } from '../context.ts'
import type { Visit } from '../http/request.ts'

const HOUR_MS = 3_600_000
/** What says whether users can sign in and stay so. */
const TELLING = ['sign_in', 'sign_in_failed', 'session_refresh_failed']
/** As many of each are looked at. */
const MOST_EVENTS = 1000

export function rangeOf({ search }: Visit): Range {
  const wanted = new URLSearchParams(search).get('range') ?? ''
  return Object.hasOwn(RANGES, wanted) ? (wanted as Range) : 'hour'
}

/** However many look, the trail is read once within this time. */
const FRESH_MS = 4000

const views = new WeakMap<GatewayContext, Record<Range, Fresh<OverviewView>>>()

export function overviewView(context: GatewayContext, range: Range): Promise<OverviewView> {
  const known = views.get(context) ?? freshViews(context)
  views.set(context, known)
  return known[range].get()
}

function freshViews(context: GatewayContext): Record<Range, Fresh<OverviewView>> {
  const fresh = (range: Range) => createFresh(() => makeView(context, range), FRESH_MS, context.now)
  return { hour: fresh('hour'), day: fresh('day'), week: fresh('week') }
}

async function makeView(context: GatewayContext, range: Range): Promise<OverviewView> {
  const { series, providers, settings, findings } = context
  const [{ slots, isPartial }, lastHour, { events, isStoreAway }] = await Promise.all([
    series.read(range),
    series.read('hour'),
    recentEvents(context),
  ])
  return {
    range,
    plot: plotOf(slots),
    isStoreAway: isPartial || isStoreAway,
    problems: problemsIn(events, lastHour.slots),
    providerNames: new Map(providers.all.map(({ plan }) => [plan.id, plan.name])),
    advice: adviceFor(
      settings,
      providers.all.map(({ plan }) => plan),
      context.roles,
    ).map(({ code }) => code),
    failures: findings.latest().filter(({ level }) => level === 'failure'),
  }
}

/** Whatever else is wrong is shown without the store, too. */
async function recentEvents({ auditTrail, now }: Pick<GatewayContext, 'auditTrail' | 'now'>) {
  try {
    const since = now() - HOUR_MS
    // Each by itself: a flood of refusals must not hide that nobody can sign in.
    const pages = await Promise.all(TELLING.map(event => auditTrail.find({ event, since, limit: MOST_EVENTS })))
    return { events: pages.flatMap(({ events }) => events), isStoreAway: false }
  } catch (error) {
    if (!(error instanceof MenshenError)) throw error
    return { events: [], isStoreAway: true }
  }
}
