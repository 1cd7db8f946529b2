// Answers that stay open: sockets and event streams. They end with the session that opened them, wherever it ended.
import { factsOf } from '../../errors.ts'
import type { Report } from '../../events.ts'
import { during, type ObservedRequest } from '../../observe/observed-request.ts'
import type { Sessions } from '../../session/sessions.ts'
import type { Caller } from '../admission/admit.ts'
import type { GatewayContext } from '../context.ts'
import { readCookie } from '../http/cookies.ts'
import type { Visit } from '../http/request.ts'
import { createWatchList, type Watched } from '../slow-clients/watch-list.ts'

export interface OpenStreams {
  /** Watches the stream that a request has opened, until the returned function is called. */
  add(observed: ObservedRequest, ticket: string, close: () => void): () => void
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
  return ticket ? streams.add(observed, ticket, close) : undefined
}

interface Stream extends Watched {
  readonly observed: ObservedRequest
  isValid(): Promise<boolean>
  close(): void
  isWatched: boolean
}

const LOOK_EVERY_MS = 1000

export function createOpenStreams(sessions: Pick<Sessions, 'getCached' | 'getFresh'>, report: Report): OpenStreams {
  const streams = createWatchList<Stream>(LOOK_EVERY_MS, stream => {
    if (!stream.isWatched) void watch(stream)
  })
  let isStoreAway = false

  /** Each by itself: a refresh that takes its time must not keep the streams of others open. */
  async function watch(stream: Stream): Promise<void> {
    stream.isWatched = true
    if (!(await during(stream.observed, () => isOpen(stream)))) stream.close()
    stream.isWatched = false
  }

  /** An open stream keeps its session refreshed. */
  async function hasSession(ticket: string): Promise<boolean> {
    if (sessions.getCached(ticket)) return true
    const current = await sessions.getFresh(ticket)
    return current !== undefined && current !== 'ended'
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

  function addChecked(observed: ObservedRequest, isValid: () => Promise<boolean>, close: () => void): () => void {
    const stream = { observed, isValid, close, isWatched: false, place: 0 }
    streams.add(stream)
    return () => streams.remove(stream)
  }

  return {
    add: (observed, ticket, close) => addChecked(observed, () => hasSession(ticket), close),
    addChecked,
    stop: () => streams.stop(),
  }
}
