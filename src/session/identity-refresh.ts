// After a token refresh: asks the provider who the user is now, and saves what has changed. The tokens are saved before, so that a
// failure here leaves the session as it is. The session ends only if the answer is about another user or fails a `require`.
//
// The request that refreshed waits for at most MAX_WAIT_MS, and usually sees the new identity. After that it continues with the old
// one, while the call runs until its deadline. Open streams are checked again when the session is saved.

import type { Settings } from '../config/settings.ts'
import { errorFields, MenshenError } from '../errors.ts'
import type { Report } from '../events.ts'
import type { ProviderPlan } from '../provider/plan.ts'
import type { Provider } from '../provider/provider.ts'
import { createSlots } from '../provider/slots.ts'
import { SubjectMismatch, type TokenSet } from '../provider/token.ts'
import { type MappedUser, RequirementError, type UserInfo } from '../provider/user.ts'
import type { Store } from '../stores/store.ts'
import { withDeadline } from '../util/deadline.ts'
import type { LoadedSession } from './cache.ts'
import { isUnknownClaim, type StoredClaims, type selectClaims, withoutTokenClaims } from './claims.ts'
import type { EndReasons } from './end-reasons.ts'
import { sessionFields, userKey } from './fields.ts'
import { type Session, sameTokens } from './record.ts'
import type { SessionChange } from './stored-sessions.ts'

/** The session as it is now; `ended` if the refresh failed and ended it; `undefined` if it is gone for another reason. */
export type RefreshResult = LoadedSession | 'ended' | undefined

export interface IdentityProvider extends Partial<Pick<Provider, 'refreshUser' | 'discard'>> {
  readonly plan: Partial<Pick<ProviderPlan, 'preset'>>
}

export interface IdentityRefreshes {
  /** Called after new tokens were saved: starts an identity refresh if the settings want one. */
  begin(ticket: string, saved: LoadedSession, tokens: TokenSet, provider: IdentityProvider): void
  /** The session with its refreshed identity, if the provider answers soon. */
  latest(ticket: string, refreshed: RefreshResult): Promise<RefreshResult>
  /** Resolves when none is in flight. */
  settle(): Promise<void>
}

/** The user as the provider last confirmed them. */
export interface ConfirmedUser extends Pick<Session, 'userInfo' | 'groups' | 'provider' | 'idToken'> {
  readonly claims: StoredClaims
  /** When the provider was asked, or a moment before. An answer can arrive after that to a later question. */
  readonly askedAt: number
}

export type SelectClaims = (
  user: Pick<MappedUser, 'claims' | 'exclusiveClaims' | 'unknownClaims'>,
  tokens: Parameters<typeof selectClaims>[2],
) => ReturnType<typeof selectClaims>

export interface IdentityRefreshOptions {
  readonly store: Store
  readonly providers: { get(id: string | undefined): IdentityProvider | undefined }
  readonly settings: Pick<Settings, 'PROVIDER_PARALLEL_CALLS'> & Partial<Pick<Settings, 'IDENTITY_REFRESH'>>
  readonly now: () => number
  readonly report: Report
  readonly reasons?: Pick<EndReasons, 'note'>
  /** Called at a sign-in and after a refresh, when the provider has confirmed who the user is. */
  onUserConfirmed?(user: ConfirmedUser): Promise<void>
  /** Called when the user no longer meets a `require` of the provider's configuration. */
  onUserRefused?(loaded: LoadedSession): Promise<void>
  /** The session as the store has it; without reading it, if the store provably still holds `seen`. */
  reload(ticket: string, seen: LoadedSession): Promise<LoadedSession | undefined>
  readClaims(ticket: string): Promise<StoredClaims>
  /** Selects the claims to store. */
  readonly selectClaims: SelectClaims
  save(ticket: string, seen: LoadedSession, change: SessionChange): Promise<LoadedSession | undefined>
}

/** How long a request waits. A user info endpoint answers within a fraction of it. */
const MAX_WAIT_MS = 2000
/** Refreshes beyond this number are skipped: a provider that hangs must not fill the memory. */
const MAX_WAITING = 2000

export function createIdentityRefreshes(options: IdentityRefreshOptions): IdentityRefreshes {
  const { settings } = options
  /** Separate from the slots of token refreshes, which a hanging user info endpoint must not delay. */
  const slots = createSlots(settings.PROVIDER_PARALLEL_CALLS, MAX_WAITING)
  const underWay = new Map<string, Promise<RefreshResult>>()

  return {
    begin(ticket, saved, tokens, provider) {
      const { refreshUser } = provider
      if (!refreshUser || !isWanted(settings, provider)) return
      const fetchUser: FetchUser = before => slots.withSlot(() => refreshUser(tokens, before), userKey(saved.session))
      const result = refreshIdentity(options, { ticket, saved, tokens, provider, fetchUser }).finally(() => {
        if (underWay.get(saved.key) === result) underWay.delete(saved.key)
      })
      underWay.set(saved.key, result)
    },

    async latest(ticket, refreshed) {
      const result = typeof refreshed === 'object' ? underWay.get(refreshed.key) : undefined
      if (!result) return refreshed
      const latest = await withDeadline(result, MAX_WAIT_MS, () => refreshed)
      // A sign-out during the wait wins, whatever the result of the call.
      return typeof latest === 'object' ? options.reload(ticket, latest) : latest
    },

    async settle() {
      await Promise.all(underWay.values())
    },
  }
}

/** The refresh of the specification is one call. */
function isWanted({ IDENTITY_REFRESH }: IdentityRefreshOptions['settings'], { plan }: IdentityProvider): boolean {
  return (IDENTITY_REFRESH ?? (plan.preset === 'idaas' ? 'never' : 'always')) === 'always'
}

type FetchUser = (before: Parameters<NonNullable<IdentityProvider['refreshUser']>>[1]) => Promise<MappedUser>

interface IdentityRefresh {
  readonly ticket: string
  /** The session with its new tokens. */
  readonly saved: LoadedSession
  readonly tokens: TokenSet
  readonly provider: IdentityProvider
  readonly fetchUser: FetchUser
}

/** Never rejects: a failure leaves the session as it is. */
async function refreshIdentity(options: IdentityRefreshOptions, refresh: IdentityRefresh): Promise<RefreshResult> {
  const { report } = options
  const { saved } = refresh
  try {
    return await fetchAndSave(options, refresh)
  } catch (error) {
    const reason = error instanceof MenshenError ? error.code : 'unexpected'
    report('identity_refresh_failed', { ...sessionFields(saved), ...errorFields(error), reason })
    return saved
  }
}

async function fetchAndSave(options: IdentityRefreshOptions, refresh: IdentityRefresh): Promise<RefreshResult> {
  const { providers, now, report, readClaims, selectClaims, save } = options
  const { ticket, saved, tokens, provider, fetchUser } = refresh
  const { session } = saved
  const { userInfo, groups = [], idToken } = session
  const before = await readClaims(ticket)
  const { claims, exclusiveClaims } = before
  const askedAt = now()
  const answer = await orVerdict(
    fetchUser({ userInfo, groups, idToken, claims, exclusiveClaims, isLost: path => isUnknownClaim(before, path) }),
  )
  // The answer was mapped by the previous configuration, which no longer applies.
  if (providers.get(session.provider) !== provider)
    throw new MenshenError('provider_answer', 'the provider configuration changed during the call')
  if (answer === 'requirement_failed') await options.onUserRefused?.(saved)
  if (typeof answer === 'string') return endSession(options, saved, answer)
  // Includes the session's tokens, because a refresh may leave some out.
  const { storedClaims, droppedClaims } = selectClaims(answer, { ...session, ...tokens })
  await options.onUserConfirmed?.({ ...session, ...answer, claims: storedClaims, askedAt })
  const isSame = sameUser(session, answer) && claimsText(before) === claimsText(storedClaims)
  if (isSame) return saved
  const latest = await save(ticket, saved, { user: { ...answer, claims: storedClaims } })
  // A later refresh has asked the provider more recently.
  if (!latest || !sameTokens(latest.session, session)) return latest
  const changed = changedNames(session, latest.session)
  if (changed.length > 0) report('identity_changed', { ...sessionFields(latest), changed: changed.join(', ') })
  if (droppedClaims.some(name => !isUnknownClaim(before, name)))
    report('claims_left_out', { ...sessionFields(latest), claims: droppedClaims.slice(0, 20) })
  return latest
}

type Verdict = 'subject_changed' | 'requirement_failed'

async function orVerdict(answer: Promise<MappedUser>): Promise<MappedUser | Verdict> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof SubjectMismatch) return 'subject_changed'
    if (error instanceof RequirementError) return 'requirement_failed'
    throw error
  }
}

/** If the session is already gone, it ended for another reason. The browser keeps its ticket, so the login page can show why. */
export async function endSession(
  { store, report, reasons, providers }: Pick<IdentityRefreshOptions, 'store' | 'report' | 'reasons' | 'providers'>,
  loaded: LoadedSession,
  reason: Verdict,
  more: { readonly during?: 'refresh' } = {},
): Promise<undefined> {
  const ended = await store.take(loaded.key)
  if (!ended) return undefined
  providers.get(loaded.session.provider)?.discard?.(loaded.session)
  await reasons?.note(loaded.key, ended, reason)
  report('session_ended', { ...sessionFields(loaded), by: 'provider', ended: 1, reason, ...more })
  return undefined
}

function sameUser(session: Session, user: Pick<MappedUser, 'userInfo' | 'groups'>): boolean {
  return changedFields(session.userInfo, user.userInfo).length === 0 && sameGroups(session.groups, user.groups)
}

/** Names, never values. */
function changedNames(before: Session, after: Session): string[] {
  return [
    ...(before.userRole === after.userRole ? [] : ['role']),
    ...(sameGroups(before.groups, after.groups) ? [] : ['groups']),
    ...changedFields(before.userInfo, after.userInfo),
  ]
}

function changedFields(before: UserInfo, after: UserInfo): string[] {
  const [was, is] = [new Map(Object.entries(before)), new Map(Object.entries(after))]
  const names = [...new Set([...was.keys(), ...is.keys()])]
  return names.filter(name => (was.get(name) ?? '') !== (is.get(name) ?? ''))
}

function sameGroups(one: readonly string[] = [], other: readonly string[] = []): boolean {
  const names = new Set(one)
  return names.size === new Set(other).size && other.every(name => names.has(name))
}

function claimsText({ claims, unknownClaims, exclusiveClaims }: StoredClaims): string {
  const lasting = Object.entries(withoutTokenClaims(claims))
  return JSON.stringify([lasting.sort(([one], [other]) => (one < other ? -1 : 1)), unknownClaims, exclusiveClaims])
}
