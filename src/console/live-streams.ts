// The event streams of the console: each sends its page what is new, every few seconds, until the page is closed or the session
// of its user ends.

import { busyAnswer, type OwnAnswer, safetyHeaders } from '../http/answers.ts'
import type { GatewayRequest } from '../http/request.ts'
import type { SignedInCaller } from '../identify/admission.ts'
import { createWatchList, type WatchItem } from '../util/watch-list.ts'
import type { ConsoleContext } from './context.ts'

/** A message to the page: the name of the event, and its content. */
export type Message = readonly [name: string, data: unknown]

export interface LiveStreams {
  /** `news` is called immediately and then every few seconds. */
  open(
    context: ConsoleContext,
    request: GatewayRequest,
    caller: SignedInCaller,
    news: () => Promise<readonly Message[]>,
  ): OwnAnswer
  /** From now on, none can be opened. */
  end(): void
}

const UPDATE_INTERVAL_MS = 5000
/** More would indicate a leak. */
const MAX_OPEN_STREAMS = 100

interface LiveStream extends WatchItem {
  update(): void
  close(): void
}

type OpenLiveStreams = ReturnType<typeof createWatchList<LiveStream>>

export function createLiveStreams(): LiveStreams {
  const streams = createWatchList<LiveStream>(UPDATE_INTERVAL_MS, stream => stream.update())
  let hasEnded = false
  return {
    open(context, request, caller, news) {
      if (hasEnded || streams.items.length >= MAX_OPEN_STREAMS) return busyAnswer(context.pages, request)
      request.observed.isStream = true
      const headers = new Headers({
        ...safetyHeaders(context.settings),
        'content-type': 'text/event-stream; charset=utf-8',
      })
      for (const cookie of caller.cookies) headers.append('set-cookie', cookie)
      return { outcome: 'own', response: new Response(stream(context, request, caller, news, streams), { headers }) }
    },
    end() {
      hasEnded = true
      for (const stream of [...streams.items]) stream.close()
      streams.stop()
    },
  }
}

function stream(
  context: ConsoleContext,
  request: GatewayRequest,
  caller: SignedInCaller,
  news: () => Promise<readonly Message[]>,
  streams: OpenLiveStreams,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  let end = () => {}
  return new ReadableStream({
    start(controller) {
      let isUpdating = false
      let isOpen = true
      async function update(): Promise<void> {
        // A slow reader misses some messages.
        if (isUpdating || (controller.desiredSize ?? 0) <= -1) return
        isUpdating = true
        // Nothing is sent while the store is unavailable; a page that is loaded then reports it.
        const messages = await news().catch(() => [])
        isUpdating = false
        const text = messages.map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`).join('')
        if (isOpen) controller.enqueue(encoder.encode(text || ': nothing new\n\n'))
      }
      const stream = { update: () => void update().catch(close), close, index: 0 }
      const forget = context.proxy.watch(request, caller, close)
      end = () => {
        isOpen = false
        forget()
        streams.remove(stream)
      }
      function close(): void {
        if (!isOpen) return
        end()
        controller.close()
      }
      streams.add(stream)
      stream.update()
    },
    cancel: () => end(),
  })
}
