// The event streams of the console: each tells its page what is new, every few seconds, for as long as the page and the
// session of whoever looks at it live.
import type { SignedInCaller } from '../gateway/admission.ts'
import type { GatewayContext } from '../gateway/context.ts'
import type { GatewayRequest } from '../gateway/request.ts'
import { busyAnswer, type OwnAnswer, safetyHeaders } from '../gateway/respond.ts'
import { createWatchList, type Watched } from '../util/watch-list.ts'

/** What a page is told: the name of the event, and its content. */
export type Message = readonly [name: string, data: unknown]

export interface LiveStreams {
  /** `news` is asked at once and then again and again; nothing is said where there is none. */
  open(
    context: GatewayContext,
    request: GatewayRequest,
    caller: SignedInCaller,
    news: () => Promise<readonly Message[]>,
  ): OwnAnswer
  end(): void
}

const EVERY_MS = 5000
/** Beyond this somebody has forgotten to close something. */
const MOST_OPEN = 100

interface Live extends Watched {
  tell(): void
  close(): void
}

type OpenLives = ReturnType<typeof createWatchList<Live>>

export function createLiveStreams(): LiveStreams {
  const lives = createWatchList<Live>(EVERY_MS, live => live.tell())
  return {
    open(context, request, caller, news) {
      if (lives.items.length >= MOST_OPEN) return busyAnswer(context.pages, request)
      request.observed.isStream = true
      const headers = new Headers({
        ...safetyHeaders(context.settings),
        'content-type': 'text/event-stream; charset=utf-8',
      })
      for (const cookie of caller.cookies) headers.append('set-cookie', cookie)
      return { outcome: 'own', response: new Response(stream(context, request, caller, news, lives), { headers }) }
    },
    end() {
      for (const live of [...lives.items]) live.close()
      lives.stop()
    },
  }
}

function stream(
  context: GatewayContext,
  request: GatewayRequest,
  caller: SignedInCaller,
  news: () => Promise<readonly Message[]>,
  lives: OpenLives,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  let end = () => {}
  return new ReadableStream({
    start(controller) {
      let isTelling = false
      let isOpen = true
      async function tell(): Promise<void> {
        // A reader that is slower than the news gets the next ones only.
        if (isTelling || (controller.desiredSize ?? 0) <= -1) return
        isTelling = true
        // A store that is away has no news; the page says so by itself when it is loaded.
        const messages = await news().catch(() => [])
        isTelling = false
        const text = messages.map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`).join('')
        if (isOpen) controller.enqueue(encoder.encode(text || ': nothing new\n\n'))
      }
      const live = { tell: () => void tell().catch(close), close, index: 0 }
      const forget = context.proxy.watch(request, caller, close)
      end = () => {
        isOpen = false
        forget()
        lives.remove(live)
      }
      function close(): void {
        if (!isOpen) return
        end()
        controller.close()
      }
      lives.add(live)
      live.tell()
    },
    cancel: () => end(),
  })
}
