// A refresh from its beginning to its end: keeps the record alive, tries when it has a slot, and waits while somebody else
// is refreshing.
import { setTimeout as pause } from 'node:timers/promises'
import type { LoadedSession } from '../session-cache.ts'
import { sameTokens } from '../session-record.ts'
import { attemptRefresh, keepSession, mayKeep } from './refresh-attempt.ts'
import type { Refresh, RefreshContext, Refreshed } from './refresher.ts'

const POLL_MS = 100
/** How long a record is kept alive for a refresh that has to wait its turn. */
const QUEUE_MS = 10 * 60_000

export async function runRefresh(context: RefreshContext, refresh: Refresh): Promise<Refreshed> {
  const { slots, longestMs, now, save } = context
  const { ticket, seen } = refresh
  let latest: LoadedSession | undefined = seen
  let alive = seen.expiresAt
  for (;;) {
    if (!latest || !sameTokens(latest.session, seen.session)) return latest
    // A record that expired while the refresh waits or takes its time would sign the user out by accident.
    const needed = slots.isFull() ? QUEUE_MS : longestMs
    if (alive < now() + needed) {
      alive = now() + needed * 2
      latest = await save(ticket, latest, { until: alive })
      continue
    }
    const outcome = await slots.withSlot(() => attemptRefresh(context, refresh))
    if (outcome !== 'taken') return outcome
    const waited = await waitForHolder(context, refresh)
    latest = waited.latest
    // Its failure counts for all.
    if (latest && waited.failed && mayKeep(context, latest)) return keepSession(context, latest)
  }
}

/** Until there are new tokens, or the lease is free: given back without them, or run out. */
async function waitForHolder(
  { leases, load, now }: RefreshContext,
  { ticket, seen }: Refresh,
): Promise<{ latest: LoadedSession | undefined; failed: boolean }> {
  let runsOut = (await leases.endOf(seen.key)) ?? 0
  for (;;) {
    await pause(POLL_MS)
    const latest = await load(ticket)
    if (!latest || !sameTokens(latest.session, seen.session)) return { latest, failed: false }
    const end = await leases.endOf(seen.key)
    if (end === undefined) return { latest, failed: now() < runsOut }
    // Its holder has renewed it.
    runsOut = end
  }
}
