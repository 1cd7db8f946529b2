// Instances of Menshen's sessions in the test's own process, on one store, with a clock that the test sets and a provider
// whose answers it gives one by one.

import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'

import { DEFAULT_ROLES } from '../../src/access/roles.ts'
import { Secret } from '../../src/config/secret.ts'
import { MenshenError } from '../../src/errors.ts'
import type { TokenSet } from '../../src/provider/token.ts'
import { createDataKeyring } from '../../src/session/data-keys.ts'
import { deriveKeys } from '../../src/session/derived-keys.ts'
import { leaseLife } from '../../src/session/lease.ts'
import type { SignInDetails } from '../../src/session/record.ts'
import { createSessions, type Sessions } from '../../src/session/sessions.ts'
import { createMemoryStore } from '../../src/stores/memory.ts'
import type { Store } from '../../src/stores/store.ts'

export const START = Date.parse('2026-03-01T08:00:00Z')
export const LIFE = 7200
export const PROVIDER_TIMEOUT_MS = 5000
export const LEASE_MS = leaseLife(PROVIDER_TIMEOUT_MS)

interface Asked {
  readonly by: string
  readonly refreshToken: string
  /** They are received at this moment. */
  readonly give: (tokens: TokenSet) => void
  readonly fail: (code: 'provider_refused' | 'provider_unreachable') => void
}

export interface Options {
  readonly keep?: boolean
  /** How many calls to the provider an instance makes at the same time. */
  readonly parallel?: number
  /** What stands between an instance and the store. */
  readonly through?: (store: Store, name: string) => Store
  /** Whose keys follow a sign-in. */
  readonly onUserConfirmed?: Parameters<typeof createSessions>[0]['onUserConfirmed']
}

export function createScene({ keep = false, parallel = 64, through = store => store, onUserConfirmed }: Options = {}) {
  const clock = { now: START }
  const now = () => clock.now
  const store = createMemoryStore({ now })
  const asked: Asked[] = []
  const revoked: (string | undefined)[] = []
  const arrivals = new EventEmitter().setMaxListeners(0)
  const events: { by: string; event: string; fields: object }[] = []
  const keys = deriveKeys({ SECRET: undefined, CLIENT_SECRET: new Secret('gateway') })

  function instance(name: string): Sessions {
    const provider = {
      plan: { refreshLead: 'fixed' as const },
      refresh({ refreshToken }: { refreshToken: string }): Promise<TokenSet> {
        const { promise, resolve, reject } = Promise.withResolvers<TokenSet>()
        const fail: Asked['fail'] = code => reject(new MenshenError(code, 'as the test says'))
        const give: Asked['give'] = tokens => resolve({ ...tokens, receivedAt: now() })
        asked.push({ by: name, refreshToken, give, fail })
        arrivals.emit('asked')
        return promise
      },
      signOut: async ({ refreshToken }: { refreshToken?: string | undefined }) => void revoked.push(refreshToken),
    }
    const report = (event: string, fields: object = {}) => void events.push({ by: name, event, fields })
    return createSessions({
      store: through(store, name),
      providers: { get: () => provider },
      roles: DEFAULT_ROLES,
      keyring: createDataKeyring({ store, keys, now, report }),
      settings: {
        REFRESH_LEAD_SECONDS: 300,
        REFRESH_FAILURE: keep ? 'keep' : 'clear',
        PROVIDER_TIMEOUT_MS,
        PROVIDER_PARALLEL_CALLS: parallel,
        SESSION_MAX_HOURS: 168,
        SESSION_CACHE_SIZE: 100,
        SESSION_CACHE_MB: 1,
      },
      now,
      report,
      ...(onUserConfirmed && { onUserConfirmed }),
    })
  }

  return {
    store,
    now,
    asked,
    /** The refresh tokens of which the provider was told that they are not needed any more. */
    revoked,
    events,
    instance,
    pass(ms: number): void {
      clock.now += ms
    },
    /** Resolves with the n-th call to the provider as soon as it is made. */
    async call(n: number): Promise<Asked> {
      while (asked.length < n) await once(arrivals, 'asked', { signal: AbortSignal.timeout(5000) })
      return asked[n - 1] ?? assert.fail()
    },
  }
}

export const tokens = (name: string, receivedAt = START): TokenSet => ({
  accessToken: `access-${name}`,
  refreshToken: `refresh-${name}`,
  expiresIn: LIFE,
  receivedAt,
})

const ZHANGSAN = {
  sub: '1',
  ou_id: '1',
  nickname: '张三',
  phone_number: '',
  ou_name: '',
  email: '',
  username: 'zhangsan',
}

/** What a sign-in of one and the same user brings. */
export function signedIn(received: TokenSet): SignInDetails {
  return { tokens: received, user: { userInfo: ZHANGSAN, groups: [], claims: {} }, provider: undefined }
}

/** Opens a session whose token is due, and gives its ticket. */
export async function openDue(scene: ReturnType<typeof createScene>, sessions: Sessions): Promise<string> {
  const { ticket } = await sessions.open(signedIn(tokens('first', scene.now())))
  scene.pass((LIFE - 200) * 1000)
  return ticket
}

/** Lets everything run that does not wait for a timer. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await nextTurn()
}
