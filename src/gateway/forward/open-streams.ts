// Answers that stay open: sockets and event streams. They end with the session that opened them, wherever it ended.
import { factsOf } from '../../errors.ts'
import type { Report } from '../../events.ts'
import type { Sessions } from '../../session/sessions.ts'
import { createWatchList, type Watched } from '../http/watch-list.ts'

export interface OpenStreams {
  /** Watches a stream until the returned function is called. */
  add(ticket: string, close: () => void): () => void
  stop(): void
}

interface Stream extends Watched {
  readonly ticket: string
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
    if (!(await isOpen(stream.ticket))) stream.close()
    stream.isWatched = false
  }

  /** A store that cannot answer proves nothing: the stream stays. An open stream keeps its session refreshed. */
  async function isOpen(ticket: string): Promise<boolean> {
    if (sessions.getCached(ticket)) return true
    try {
      const current = await sessions.getFresh(ticket)
      isStoreAway = false
      return current !== undefined && current !== 'ended'
    } catch (error) {
      // Once for an outage, not for each stream and second of it.
      if (!isStoreAway) report('streams_unchecked', factsOf(error))
      isStoreAway = true
      return true
    }
  }

  return {
    add(ticket, close) {
      const stream = { ticket, close, isWatched: false, place: 0 }
      streams.add(stream)
      return () => streams.remove(stream)
    },
    stop: () => streams.stop(),
  }
}
