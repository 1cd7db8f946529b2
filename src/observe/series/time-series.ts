// What the console plots: counted as it happens, kept for a week, the same for all processes that share the store.
import { EVENTS } from '../../events.ts'
import type { Store } from '../../stores/store.ts'
import type { Observer } from '../observation.ts'
import { createHistory, type Range, slotsOf } from './history.ts'
import type { Instance } from './instance-record.ts'
import { createInstances, WRITE_EVERY_MS } from './instances.ts'
import { addTime, count, type Slot } from './slot.ts'

export interface Series {
  readonly observer: Observer
  /** Slot by slot, oldest first; `isPartial` if only this process is known, because the store is away. */
  read(range: Range): Promise<{ readonly slots: Slot[]; readonly isPartial: boolean }>
  /** The processes that share the store and are alive. */
  instances(): Promise<Instance[]>
  /** From now on it is written to the store. */
  begin(store: Store): void
  close(): Promise<void>
}

interface SeriesOptions {
  readonly instance: Instance
  readonly now: () => number
}

/** The names under which a slot counts. */
export const COUNTED = {
  request: {
    admitted: 'request admitted',
    visitor: 'request visitor',
    refused: 'request refused',
    own: 'request own',
    error: 'request error',
  },
  signIn: 'sign_in',
  failedSignIn: (reason: string) => `sign_in_failed ${reason}`,
  event: (code: string) => `event ${code}`,
} as const

export function createSeries({ instance, now }: SeriesOptions): Series {
  const history = createHistory(now)
  let kept: ReturnType<typeof keep> | undefined

  function keep(store: Store) {
    const instances = createInstances({ store, instance, history, now })
    // A store that is away is told of by those who cannot do without it.
    const whileAway = () => {}
    async function countSessions(): Promise<void> {
      history.current().sessions = await store.count()
    }
    async function save(hasEnded = false): Promise<void> {
      await countSessions()
      await instances.write(hasEnded)
    }
    const begun = instances
      .adopt()
      .then(() => save())
      .catch(whileAway)
    const timer = setInterval(() => void save().catch(whileAway), WRITE_EVERY_MS).unref()
    return {
      instances,
      countSessions,
      async close() {
        clearInterval(timer)
        await begun
        await save(true).catch(whileAway)
      },
    }
  }

  return {
    observer: {
      onRequest({ outcome, isStream }, _status, ms) {
        const slot = history.current()
        count(slot, COUNTED.request[outcome])
        if (!isStream) addTime(slot, 'request', ms)
      },
      onWork(kind, _what, _result, seconds) {
        if (kind === 'provider' || kind === 'store') addTime(history.current(), kind, seconds * 1000)
      },
      onEvent(code, { reason }) {
        const slot = history.current()
        if (EVENTS[code].level !== 'info') count(slot, COUNTED.event(code))
        if (code === 'sign_in') count(slot, COUNTED.signIn)
        if (code === 'sign_in_failed') count(slot, COUNTED.failedSignIn(String(reason)))
      },
    },

    async read(range) {
      await kept?.countSessions().catch(() => {})
      const own = history.all()
      const others = await kept?.instances.others().catch(() => undefined)
      return { slots: slotsOf(range, [own, ...(others ?? [])], now()), isPartial: others === undefined }
    },

    instances: async () => (await kept?.instances.alive()) ?? [instance],

    begin(store) {
      kept = keep(store)
    },

    async close() {
      await kept?.close()
    },
  }
}
