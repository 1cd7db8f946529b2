// Answers that stay open: sockets and event streams. They end with the session that loaded them, wherever it ended.
import { factsOf } from '../../errors.ts'
import type { Report } from '../../events.ts'
import type { Sessions } from '../../session/sessions.ts'

export interface OpenStreams {
  /** Watches a stream until the returned function is called. */
  add(ticket: string, close: () => void): () => void
  stop(): void
}

interface Stream {
  readonly ticket: string
  close(): void
  isWatched: boolean
  /** Where it is in the list. */
  place: number
}

const LOOK_EVERY_MS = 1000

export function createOpenStreams(sessions: Sessions, report: Report): OpenStreams {
  // Every answer comes and goes here. A Set would leave behind old tables that keep what it has forgotten in memory.
  const streams: Stream[] = []
  const timer = setInterval(() => {
    // Those that close are taken out in between.
    for (const stream of [...streams]) if (!stream.isWatched) void watch(stream)
  }, LOOK_EVERY_MS).unref()

  /** Each by itself: a refresh that takes its time must not keep the streams of others open. */
  async function watch(stream: Stream): Promise<void> {
    stream.isWatched = true
    if (!(await isOpen(stream.ticket))) stream.close()
    stream.isWatched = false
  }

  /** A store that cannot answer proves nothing: the stream stays. An open stream keeps its session refreshed. */
  async function isOpen(ticket: string): Promise<boolean> {
    try {
      const current = sessions.getCached(ticket) ?? (await sessions.getFresh(ticket))
      return current !== undefined && current !== 'ended'
    } catch (error) {
      report('streams_unchecked', factsOf(error))
      return true
    }
  }

  /** The last one takes its place. */
  function remove(stream: Stream): void {
    if (streams[stream.place] !== stream) return
    const last = streams.pop() as Stream
    if (last === stream) return
    streams[stream.place] = last
    last.place = stream.place
  }

  return {
    add(ticket, close) {
      const stream = { ticket, close, isWatched: false, place: streams.length }
      streams.push(stream)
      return () => remove(stream)
    },
    stop: () => clearInterval(timer),
  }
}
