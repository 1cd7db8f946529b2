// Instances of Menshen's sessions on one store, each with a clock that may be off, for tests of how sessions end.

import { DEFAULT_ROLES } from '../../src/access/roles.ts'
import { Secret } from '../../src/config/secret.ts'
import { MenshenError } from '../../src/errors.ts'
import type { LoadedSession } from '../../src/session/cache.ts'
import { createDataKeyring } from '../../src/session/data-keys.ts'
import { deriveKeys } from '../../src/session/derived-keys.ts'
import type { SignInDetails } from '../../src/session/record.ts'
import { createSessions, type Sessions } from '../../src/session/sessions.ts'
import { createMemoryStore } from '../../src/stores/memory.ts'
import type { Store } from '../../src/stores/store.ts'
import { until } from '../kit/until.ts'

export const START = Date.parse('2026-03-01T08:00:00Z')
export const MINUTE = 60_000

interface InstanceOptions {
  readonly idleMinutes?: number
  readonly perUser?: number
  /** How far its clock is ahead. */
  readonly aheadMs?: number
  /** Other than that of the scene. */
  readonly store?: Store
}

export function createEndScene({ expiresIn = 100 * 3600 } = {}) {
  const clock = { now: START }
  const now = () => clock.now
  const store = createMemoryStore({ now })
  const keys = deriveKeys({ SECRET: undefined, CLIENT_SECRET: new Secret('gateway') })
  const events: { event: string; fields: Record<string, unknown> }[] = []
  const writes: string[] = []
  const outage = { writes: false }
  const opened: Sessions[] = []

  function watched(of: Store): Store {
    return {
      ...of,
      async replace(key, entry, version) {
        if (outage.writes) throw new MenshenError('store_unavailable', 'the disk is full')
        writes.push(key)
        return of.replace(key, entry, version)
      },
    }
  }

  async function instance(options: InstanceOptions = {}): Promise<Sessions> {
    const { idleMinutes = 0, perUser = 0, aheadMs = 0 } = options
    const instanceNow = () => clock.now + aheadMs
    const report = (event: string, fields: object = {}) => void events.push({ event, fields: { ...fields } })
    const own = watched(options.store ?? store)
    const provider = {
      plan: { refreshLead: 'fixed' as const },
      refresh: async () => ({ accessToken: 'new', refreshToken: 'next', expiresIn, receivedAt: instanceNow() }),
      signOut: async () => {},
    }
    const sessions = createSessions({
      store: own,
      providers: { get: () => provider },
      roles: DEFAULT_ROLES,
      keyring: createDataKeyring({ store: own, keys, now: instanceNow, report }),
      settings: {
        REFRESH_LEAD_SECONDS: 300,
        REFRESH_FAILURE: 'clear',
        PROVIDER_TIMEOUT_MS: 5000,
        PROVIDER_PARALLEL_CALLS: 64,
        SESSION_MAX_HOURS: 168,
        SESSION_CACHE_SIZE: 1000,
        SESSION_CACHE_MB: 10,
      },
      now: instanceNow,
      report,
    })
    await sessions.begin({ SESSION_IDLE_MINUTES: idleMinutes, SESSIONS_PER_USER: perUser })
    opened.push(sessions)
    return sessions
  }

  async function signIn(sessions: Sessions, username = 'zhangsan', provider?: string) {
    const { ticket, loaded } = await sessions.open(signedInAs(username, now(), expiresIn, provider))
    await sessions.enforceLimit(loaded)
    return { ticket, key: loaded.key }
  }

  return {
    store,
    now,
    instance,
    signIn,
    events,
    writes,
    outage,
    pass(ms: number): void {
      clock.now += ms
    },
    ended: () => events.filter(({ event }) => event === 'session_ended').map(({ fields }) => fields),
    /** Activity with this ticket, and waits until it is written if `isWritten`. */
    async act(sessions: Sessions, ticket: string, isWritten = true): Promise<LoadedSession> {
      const loaded = await sessions.getFresh(ticket)
      if (typeof loaded !== 'object') throw new Error('the session has ended')
      const before = writes.length
      sessions.noteActivity(loaded)
      if (isWritten) await until(() => writes.length > before)
      return loaded
    },
    async close(): Promise<void> {
      outage.writes = false
      await Promise.all(opened.map(sessions => sessions.settle()))
      await store.close()
    },
  }
}

function signedInAs(
  username: string,
  receivedAt: number,
  expiresIn: number,
  provider: string | undefined,
): SignInDetails {
  const userInfo = { sub: '1', ou_id: '', nickname: '', phone_number: '', ou_name: '', email: '', username }
  return {
    tokens: { accessToken: 'access', refreshToken: 'refresh', expiresIn, receivedAt },
    user: { userInfo, groups: [], claims: {} },
    provider,
  }
}
