// Answers that stay open: sockets and event streams. They end with the session that opened them, wherever that ended, and after
// a reload if the new rules do not admit their caller.
import { decodedPath } from '../access/request-path.ts'
import type { Subject } from '../access/roles.ts'
import { admits, type Rules } from '../access/rules.ts'
import { errorFields } from '../errors.ts'
import type { Report } from '../events.ts'
import { runInRequest } from '../observe/observed-request.ts'
import type { LoadedSession } from '../session/session-cache.ts'
import type { Sessions } from '../session/sessions.ts'
import { createWatchList, type Watched } from '../util/watch-list.ts'
import type { Identification, ProxyRequest } from './proxy-request.ts'

export interface OpenStreams {
  /** Watches a stream until the returned function is called. */
  add(opened: OpenedRequest, owner: StreamOwner, close: () => void): () => void
  /** The same for a user with a session. */
  addSession(opened: OpenedRequest, ticket: string, loaded: LoadedSession, close: () => void): () => void
  stop(): void
}

/** The request that opened a stream, and the rules that admitted it. */
interface OpenedRequest {
  readonly request: ProxyRequest
  readonly rules: Rules
}

/** Who has opened a stream. */
interface StreamOwner {
  /** Whether nothing has changed, as far as this process knows without waiting; mostly true. */
  isCurrent?(): boolean
  /** Who they are now; `undefined` if their session or token has ended. */
  identify(): Promise<{ readonly who: Subject | undefined } | undefined>
}

const VISITOR: StreamOwner = { isCurrent: () => true, identify: async () => ({ who: undefined }) }

/** For a user, a machine, or a visitor of a public page. */
export function watchCaller(
  streams: OpenStreams,
  opened: OpenedRequest,
  { loaded, ticket, reidentify }: Identification,
  close: () => void,
): () => void {
  if (reidentify) return streams.add(opened, { identify: reidentify }, close)
  return loaded && ticket !== undefined
    ? streams.addSession(opened, ticket, loaded, close)
    : streams.add(opened, VISITOR, close)
}

interface Stream extends Watched, StreamOwner {
  readonly request: ProxyRequest
  close(): void
  isWatched: boolean
  /** The rules that admitted it last. */
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
  /** Streams that could not be checked last time. An outage is over when none is left. */
  const unchecked = new Set<Stream>()

  function isAsItWas(stream: Stream): boolean {
    if (stream.rules !== rulesNow()) return false
    try {
      const isCurrent = stream.isCurrent?.() ?? false
      if (isCurrent) unchecked.delete(stream)
      return isCurrent
    } catch {
      // The store fails: `watch` reports it.
      return false
    }
  }

  /** Each separately: a slow refresh must not keep the streams of others open. */
  async function watch(stream: Stream): Promise<void> {
    stream.isWatched = true
    if (!(await runInRequest(stream.request.observed, () => isOpen(stream)))) stream.close()
    stream.isWatched = false
  }

  /** A store or a provider that cannot answer proves nothing: the stream stays. */
  async function isOpen(stream: Stream): Promise<boolean> {
    try {
      const owner = await stream.identify()
      unchecked.delete(stream)
      return owner !== undefined && mayStay(stream, owner.who)
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

  /** False if it has ended while it was checked. */
  function isListed(stream: Stream): boolean {
    return streams.items[stream.index] === stream
  }

  function mayStay(stream: Stream, who: Subject | undefined): boolean {
    const { method, path } = stream.request
    stream.rules = rulesNow()
    return admits(stream.rules.ruleFor(method, decodedPath(path), who), who)
  }

  function add(opened: OpenedRequest, { isCurrent, identify }: StreamOwner, close: () => void): () => void {
    const rest = { ...opened, identify, close, isWatched: false, index: 0 }
    const stream: Stream = isCurrent ? { isCurrent, ...rest } : rest
    streams.add(stream)
    return () => {
      streams.remove(stream)
      unchecked.delete(stream)
    }
  }

  /** An open stream keeps its session refreshed, and in the memory of this process, whatever else the cache has to hold. */
  function sessionOwner(ticket: string, opened: LoadedSession): StreamOwner {
    let loaded = opened
    return {
      isCurrent: () => sessions.isCurrent(loaded),
      async identify() {
        const latest = await sessions.getFresh(ticket)
        if (latest === undefined || latest === 'ended') return undefined
        loaded = latest
        return latest
      },
    }
  }

  return {
    add,
    addSession: (opened, ticket, loaded, close) => add(opened, sessionOwner(ticket, loaded), close),
    stop: () => streams.stop(),
  }
}
