// One attempt to refresh a session, by whoever has its lease: asks the provider, and saves what it gave or decides what
// its failure means.
import { factsOf, MenshenError } from '../../errors.ts'
import type { LoadedSession } from '../session-cache.ts'
import { sessionFacts } from '../session-facts.ts'
import { type Session, sameTokens, tokenExpiresAt } from '../session-record.ts'
import type { Lease } from './lease.ts'
import type { Refresh, RefreshContext, Refreshed, SessionProvider } from './refresher.ts'
import { revokeTokens, saveTokens } from './token-saving.ts'

/** `taken` if somebody else is refreshing. */
export async function attemptRefresh(context: RefreshContext, refresh: Refresh): Promise<Refreshed | 'taken'> {
  const lease = await context.leases.take(refresh.seen.key)
  if (!lease) return 'taken'
  let outcome: Refreshed | 'taken' = 'taken'
  try {
    outcome = await refreshAsHolder(context, refresh, lease)
    return outcome
  } finally {
    if (isWantedSoon(context, outcome)) lease.release()
    else lease.leave()
  }
}

/** Whether somebody may ask for the lease before it runs out by itself: to give it back costs a write. */
function isWantedSoon({ isDueAt, leaseMs, now }: RefreshContext, outcome: Refreshed | 'taken'): boolean {
  if (outcome === undefined || outcome === 'ended') return false
  return outcome === 'taken' || isDueAt(outcome.session, now() + leaseMs)
}

async function refreshAsHolder(context: RefreshContext, refresh: Refresh, lease: Lease): Promise<Refreshed | 'taken'> {
  const { reload, backoffs, report } = context
  const { ticket, seen } = refresh
  try {
    const latest = await reload(ticket, seen)
    if (!latest || !sameTokens(latest.session, seen.session)) return latest
    const { session } = latest
    const { refreshToken } = session
    if (!refreshToken || !(await lease.isOurs())) return 'taken'
    const provider = providerOf(context, session)
    const tokens = await provider.refresh({ ...session, refreshToken })
    const saved = await saveTokens(context, refresh, latest, tokens)
    backoffs.forget(seen.key)
    if (saved) report('session_refreshed', sessionFacts(seen))
    else await revokeTokens(context, provider, latest, { refreshToken, ...tokens })
    return saved
  } catch (error) {
    if (!(error instanceof MenshenError) || error.code === 'store_unavailable') throw error
    return await failRefresh(context, refresh, error, lease)
  }
}

/** A provider that was taken out of the configuration vouches for nobody any more. */
function providerOf({ providers }: RefreshContext, { provider }: Session): SessionProvider {
  const found = providers.get(provider)
  if (!found) throw new MenshenError('provider_refused', 'the provider of this session is not configured any more')
  return found
}

async function failRefresh(
  context: RefreshContext,
  { ticket, seen }: Refresh,
  error: MenshenError,
  lease: Lease,
): Promise<Refreshed | 'taken'> {
  const { store, load, backoffs, report } = context
  const latest = await load(ticket)
  if (!latest || !sameTokens(latest.session, seen.session)) return latest
  const facts = { ...sessionFacts(seen), ...factsOf(error), reason: error.code }
  // Only a refusal is a verdict on the session. Everything else may be over in a moment, or be the operator's to mend.
  if (error.code !== 'provider_refused' && mayKeep(context, latest)) {
    report('session_refresh_failed', { ...facts, outcome: 'kept' })
    return keepSession(context, latest)
  }
  // Whoever has the lease now may be about to succeed.
  if (!(await lease.isOurs())) return 'taken'
  backoffs.forget(seen.key)
  await store.remove(seen.key)
  report('session_refresh_failed', { ...facts, outcome: 'ended' })
  return 'ended'
}

export function mayKeep({ settings, now }: RefreshContext, loaded: LoadedSession): boolean {
  return settings.REFRESH_FAILURE === 'keep' && isValid(loaded, now())
}

export function keepSession({ backoffs }: RefreshContext, loaded: LoadedSession): LoadedSession {
  backoffs.lengthen(loaded.key)
  return loaded
}

export function isValid({ session }: LoadedSession, now: number): boolean {
  return tokenExpiresAt(session) > now
}
