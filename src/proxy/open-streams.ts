// Answers that stay open: sockets and event streams. They are closed when the session that opened them ends, in whichever
// process, when the hours of their rule end, and after a reload if the new rules do not admit their caller. `maxAge` of a rule
// closes none: it applies at the moment at which a stream is opened.
import { type Conditions, meets } from '../access/conditions.ts'
import type { Subject } from '../access/roles.ts'
import { admits, type Rules } from '../access/rules.ts'
import { errorFields } from '../errors.ts'
import type { Report } from '../events.ts'
import type { Caller, Identification, ProxyRequest } from '../http/caller.ts'
import { runInRequest } from '../observe/observed-request.ts'
import type { LoadedSession } from '../session/cache.ts'
import { FollowedSession } from '../session/end-signals.ts'
import { authenticationOf } from '../session/record.ts'
import type { Sessions } from '../session/sessions.ts'
import { createWatchList, type WatchItem } from '../util/watch-list.ts'

export interface OpenStreams {
  /** Watches a stream until the returned function is called. */
  add(opened: OpenedRequest, owner: StreamOwner, close: () => void): () => void
  /** Watches a stream of a user with a session. */
  addSession(opened: OpenedRequest, ticket: string, loaded: LoadedSession, close: () => void): () => void
  stop(): void
}

/** The request that opened a stream, and the rules that admitted it. */
interface OpenedRequest {
  readonly request: ProxyRequest
  readonly rules: Rules
  /** At a host of `hosts`: its rules in the configuration in use at that time; `undefined` if the host was removed. */
  readonly currentRules?: (() => Rules | undefined) | undefined
}

/** The owner of an open stream. */
interface StreamOwner {
  /** Whether nothing has changed, as far as this process knows without waiting; mostly true. */
  isCurrent?(): boolean
  /** Who they are now; `undefined` if their session or token has ended. */
  identify(): Promise<StreamCaller | undefined>
}

interface StreamCaller extends Pick<Caller, 'authentication'> {
  readonly who: Subject | undefined
}

const VISITOR: StreamOwner = { isCurrent: () => true, identify: async () => ({ who: undefined }) }

/** Watches a stream of a user, a machine, or a visitor of a public page. */
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

interface Stream extends WatchItem {
  readonly owner: StreamOwner
  readonly request: ProxyRequest
  close(): void
  isWatched: boolean
  /** The rules that admitted it last. */
  rules: Rules
  readonly currentRules?: OpenedRequest['currentRules']
  /** Its rules that have hours; absent before the first check. */
  timed?: readonly Conditions[] | undefined
}

/** An open stream keeps its session refreshed. */
class SessionOwner extends FollowedSession implements StreamOwner {
  async identify(): Promise<StreamCaller | undefined> {
    const latest = await this.latest()
    return latest && { who: latest.who, authentication: authenticationOf(latest) }
  }
}

const UNTIMED: readonly Conditions[] = []

const CHECK_INTERVAL_MS = 1000

export function createOpenStreams(
  sessions: Pick<Sessions, 'isCurrent' | 'get' | 'getFresh'>,
  rulesNow: () => Rules,
  report: Report,
  now: () => number,
): OpenStreams {
  const streams = createWatchList<Stream>(CHECK_INTERVAL_MS, stream => {
    if (!isWithinHours(stream)) return stream.close()
    if (!stream.isWatched && !isUnchanged(stream)) void watch(stream)
  })

  /** Independent of the store and the provider: an outage does not keep a stream open. */
  function isWithinHours(stream: Stream): boolean {
    stream.timed ??= timedConditions(stream)
    return stream.timed.length === 0 || stream.timed.every(({ hours }) => hours?.isOpen(now()))
  }
  /** Streams that could not be checked last time. An outage is over when none is left. */
  const unchecked = new Set<Stream>()

  function rulesOf({ currentRules }: Stream): Rules | undefined {
    return currentRules ? currentRules() : rulesNow()
  }

  function isUnchanged(stream: Stream): boolean {
    if (stream.rules !== rulesOf(stream)) return false
    try {
      const isCurrent = stream.owner.isCurrent?.() ?? false
      if (isCurrent) unchecked.delete(stream)
      return isCurrent
    } catch {
      // The store fails: `watch` reports it.
      return false
    }
  }

  /** Each separately: a slow store must not keep the streams of others open. */
  async function watch(stream: Stream): Promise<void> {
    stream.isWatched = true
    if (!(await runInRequest(stream.request.observed, () => isOpen(stream)))) stream.close()
    stream.isWatched = false
  }

  /** A store or a provider that cannot answer proves nothing: the stream stays. */
  async function isOpen(stream: Stream): Promise<boolean> {
    try {
      const owner = await stream.owner.identify()
      unchecked.delete(stream)
      return owner !== undefined && mayContinue(stream, owner)
    } catch (error) {
      if (isListed(stream)) noteUnchecked(stream, error)
      return true
    }
  }

  /** Reports once per outage, not for each stream and second of it. */
  function noteUnchecked(stream: Stream, error: unknown): void {
    if (unchecked.size === 0) report('streams_unchecked', errorFields(error))
    unchecked.add(stream)
  }

  /** False if it has ended while it was checked. */
  function isListed(stream: Stream): boolean {
    return streams.items[stream.index] === stream
  }

  function mayContinue(stream: Stream, { who, authentication }: StreamCaller): boolean {
    const { method, path, observed } = stream.request
    const rules = rulesOf(stream)
    if (!rules) return false
    stream.rules = rules
    stream.timed = timedConditions(stream)
    const { rule, conditions = [] } = stream.rules.decide(method, path, who)
    if (!admits(rule, who) || !isWithinHours(stream)) return false
    return conditions.every(
      ({ networks, demand }) =>
        (!networks || networks.has(observed.address)) &&
        (!demand || meets(authentication, { ...demand, maxAge: undefined }, now())),
    )
  }

  /** The rules of every interpretation of the path. */
  function timedConditions({ rules, request }: Stream): readonly Conditions[] {
    const timed = rules.conditionsFor(request.method, request.path).filter(({ hours }) => hours)
    return timed.length === 0 ? UNTIMED : timed
  }

  function add(opened: OpenedRequest, owner: StreamOwner, close: () => void): () => void {
    const stream: Stream = { ...opened, owner, close, isWatched: false, index: 0 }
    streams.add(stream)
    return () => {
      streams.remove(stream)
      unchecked.delete(stream)
    }
  }

  return {
    add,
    addSession: (opened, ticket, loaded, close) => add(opened, new SessionOwner(loaded, ticket, sessions), close),
    stop: () => streams.stop(),
  }
}
