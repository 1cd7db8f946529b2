// Answers that stay open: sockets and event streams. They end with the session that opened them, wherever it ended.
import { factsOf } from '../../errors.ts'
import type { Report } from '../../events.ts'
import { during, type ObservedRequest } from '../../observe/observed-request.ts'
import type { LoadedSession } from '../../session/session-cache.ts'
import type { Sessions } from '../../session/sessions.ts'
import type { Caller } from '../admission/admit.ts'
import type { GatewayContext } from '../context.ts'
import { readCookie } from '../http/cookies.ts'
import type { Visit } from '../http/request.ts'
import { createWatchList, type Watched } from '../slow-clients/watch-list.ts'

export interface OpenStreams {
  /** Watches the stream that a request has opened, until the returned function is called. */
  add(observed: ObservedRequest, ticket: string, loaded: LoadedSession, close: () => void): () => void
  /** The same for whoever has no session: `isValid` says whether they may still have it. */
  addChecked(observed: ObservedRequest, isValid: () => Promise<boolean>, close: () => void): () => void
  stop(): void
}

/** Of a user or of a machine; a visitor on a public page has nothing that could end. */
export function watchCaller(
  { streams, cookies }: Pick<GatewayContext, 'streams' | 'cookies'>,
  { headers, observed }: Visit,
  { loaded, isValid }: Caller,
  close: () => void,
): (() => void) | undefined {
  if (isValid) return streams.addChecked(observed, isValid, close)
  const ticket = loaded && readCookie(headers.cookie, cookies.session)
  return ticket ? streams.add(observed, ticket, loaded, close) : undefined
}

interface Stream extends Watched {
  readonly observed: ObservedRequest
  /** Whether it is known without asking anybody; most are, as long as nothing has changed. */
  isCurrent?(): boolean
  isValid(): Promise<boolean>
  close(): void
  isWatched: boolean
}

const LOOK_EVERY_MS = 1000

export function createOpenStreams(sessions: Pick<Sessions, 'isCurrent' | 'getFresh'>, report: Report): OpenStreams {
  const streams = createWatchList<Stream>(LOOK_EVERY_MS, stream => {
    if (!stream.isWatched && !isAsItWas(stream)) void watch(stream)
  })
  let isStoreAway = false

  function isAsItWas(stream: Stream): boolean {
    try {
      const isCurrent = stream.isCurrent?.() ?? false
      if (isCurrent) isStoreAway = false
      return isCurrent
    } catch {
      // The store fails: `watch` tells of it.
      return false
    }
  }

  /** Each by itself: a refresh that takes its time must not keep the streams of others open. */
  async function watch(stream: Stream): Promise<void> {
    stream.isWatched = true
    if (!(await during(stream.observed, () => isOpen(stream)))) stream.close()
    stream.isWatched = false
  }

  /** A store or a provider that cannot answer proves nothing: the stream stays. */
  async function isOpen(stream: Stream): Promise<boolean> {
    try {
      const isValid = await stream.isValid()
      isStoreAway = false
      return isValid
    } catch (error) {
      // Once for an outage, not for each stream and second of it.
      if (!isStoreAway) report('streams_unchecked', factsOf(error))
      isStoreAway = true
      return true
    }
  }

  function add(stream: Stream): () => void {
    streams.add(stream)
    return () => streams.remove(stream)
  }

  /** An open stream keeps its session refreshed, and in the memory of this process, whatever else the cache has to hold. */
  function sessionOf(ticket: string, opened: LoadedSession): Pick<Stream, 'isCurrent' | 'isValid'> {
    let loaded = opened
    return {
      isCurrent: () => sessions.isCurrent(loaded),
      async isValid() {
        const latest = await sessions.getFresh(ticket)
        if (latest === undefined || latest === 'ended') return false
        loaded = latest
        return true
      },
    }
  }

  return {
    add: (observed, ticket, loaded, close) =>
      add({ ...sessionOf(ticket, loaded), observed, close, isWatched: false, place: 0 }),
    addChecked: (observed, isValid, close) => add({ isValid, observed, close, isWatched: false, place: 0 }),
    stop: () => streams.stop(),
  }
}
