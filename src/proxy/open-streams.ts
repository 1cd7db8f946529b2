// Answers that stay open: sockets and event streams. They end with the session that opened them, wherever it ended, and when
// other rules count by now that would not admit whoever opened them.
import { decodedPath } from '../access/request-path.ts'
import type { Subject } from '../access/roles.ts'
import { admits, type Rules } from '../access/rules.ts'
import { errorFields } from '../errors.ts'
import type { Report } from '../events.ts'
import type { Caller } from '../gateway/admission.ts'
import type { GatewayContext } from '../gateway/context.ts'
import { readCookie } from '../gateway/cookies.ts'
import type { GatewayRequest } from '../gateway/request.ts'
import { runInRequest } from '../observe/observed-request.ts'
import type { LoadedSession } from '../session/session-cache.ts'
import type { Sessions } from '../session/sessions.ts'
import { createWatchList, type Watched } from '../util/watch-list.ts'

export interface OpenStreams {
  /** Watches the stream that a user has opened, until the returned function is called. */
  add(admitted: Admitted, ticket: string, loaded: LoadedSession, close: () => void): () => void
  /** The same for whoever has no session. */
  addHeld(admitted: Admitted, held: StreamOwner, close: () => void): () => void
  stop(): void
}

/** What was asked for, and the rules that have admitted it. */
interface Admitted {
  readonly request: GatewayRequest
  readonly rules: Rules
}

/** By whom a stream is open. */
interface StreamOwner {
  /** Whether it is known without asking anybody; most are, as long as nothing has changed. */
  isCurrent?(): boolean
  /** Who they are; `undefined` if what let them in has ended. */
  holder(): Promise<{ readonly who: Subject | undefined } | undefined>
}

const VISITOR: StreamOwner = { isCurrent: () => true, holder: async () => ({ who: undefined }) }

/** Of a user, of a machine, or of a visitor on a public page. */
export function watchCaller(
  { streams, cookies, rules }: Pick<GatewayContext, 'streams' | 'cookies' | 'rules'>,
  request: GatewayRequest,
  { loaded, identifyAgain }: Caller,
  close: () => void,
): () => void {
  const admitted = { request, rules }
  if (identifyAgain) return streams.addHeld(admitted, { holder: identifyAgain }, close)
  const ticket = loaded && readCookie(request.headers.cookie, cookies.session)
  return ticket ? streams.add(admitted, ticket, loaded, close) : streams.addHeld(admitted, VISITOR, close)
}

interface Stream extends Watched, StreamOwner {
  readonly request: GatewayRequest
  close(): void
  isWatched: boolean
  /** Those that have admitted it last. */
  rules: Rules
}

const LOOK_EVERY_MS = 1000

export function createOpenStreams(
  sessions: Pick<Sessions, 'isCurrent' | 'getFresh'>,
  rulesNow: () => Rules,
  report: Report,
): OpenStreams {
  const streams = createWatchList<Stream>(LOOK_EVERY_MS, stream => {
    if (!stream.isWatched && !isAsItWas(stream)) void watch(stream)
  })
  /** Those that could not be looked at last time. An outage is over when there is none left. */
  const unchecked = new Set<Stream>()

  function isAsItWas(stream: Stream): boolean {
    if (stream.rules !== rulesNow()) return false
    try {
      const isCurrent = stream.isCurrent?.() ?? false
      if (isCurrent) unchecked.delete(stream)
      return isCurrent
    } catch {
      // The store fails: `watch` tells of it.
      return false
    }
  }

  /** Each by itself: a refresh that takes its time must not keep the streams of others open. */
  async function watch(stream: Stream): Promise<void> {
    stream.isWatched = true
    if (!(await runInRequest(stream.request.observed, () => isOpen(stream)))) stream.close()
    stream.isWatched = false
  }

  /** A store or a provider that cannot answer proves nothing: the stream stays. */
  async function isOpen(stream: Stream): Promise<boolean> {
    try {
      const holder = await stream.holder()
      unchecked.delete(stream)
      return holder !== undefined && mayStay(stream, holder.who)
    } catch (error) {
      if (isListed(stream)) noteUnchecked(stream, error)
      return true
    }
  }

  /** Once for an outage, not for each stream and second of it. */
  function noteUnchecked(stream: Stream, error: unknown): void {
    if (unchecked.size === 0) report('streams_unchecked', errorFields(error))
    unchecked.add(stream)
  }

  /** Not if it has ended while it was looked at. */
  function isListed(stream: Stream): boolean {
    return streams.items[stream.place] === stream
  }

  function mayStay(stream: Stream, who: Subject | undefined): boolean {
    const { method, path } = stream.request
    stream.rules = rulesNow()
    return admits(stream.rules.ruleFor(method, decodedPath(path), who), who)
  }

  function addHeld(admitted: Admitted, { isCurrent, holder }: StreamOwner, close: () => void): () => void {
    const rest = { ...admitted, holder, close, isWatched: false, place: 0 }
    const stream: Stream = isCurrent ? { isCurrent, ...rest } : rest
    streams.add(stream)
    return () => {
      streams.remove(stream)
      unchecked.delete(stream)
    }
  }

  /** An open stream keeps its session refreshed, and in the memory of this process, whatever else the cache has to hold. */
  function heldBy(ticket: string, opened: LoadedSession): StreamOwner {
    let loaded = opened
    return {
      isCurrent: () => sessions.isCurrent(loaded),
      async holder() {
        const latest = await sessions.getFresh(ticket)
        if (latest === undefined || latest === 'ended') return undefined
        loaded = latest
        return latest
      },
    }
  }

  return {
    add: (admitted, ticket, loaded, close) => addHeld(admitted, heldBy(ticket, loaded), close),
    addHeld,
    stop: () => streams.stop(),
  }
}
