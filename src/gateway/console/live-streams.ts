// The event streams of the console: each tells its page what is new, every few seconds, for as long as the page and the
// session of whoever looks at it live.
import type { SignedInCaller } from '../admission/admit.ts'
import type { GatewayContext } from '../context.ts'
import { watchCaller } from '../forward/open-streams.ts'
import { busyAnswer, safetyHeaders } from '../http/page-answers.ts'
import type { Visit } from '../http/request.ts'

/** What a page is told: the name of the event, and its content. */
export type Message = readonly [name: string, data: unknown]

export interface LiveStreams {
  /** `news` is asked at once and then again and again; nothing is said where there is none. */
  open(context: GatewayContext, visit: Visit, caller: SignedInCaller, news: () => Promise<readonly Message[]>): Response
  end(): void
}

const EVERY_MS = 5000
/** Beyond this somebody has forgotten to close something. */
const MOST_OPEN = 100

export function createLiveStreams(): LiveStreams {
  const open = new Set<() => void>()
  return {
    open(context, visit, caller, news) {
      if (open.size >= MOST_OPEN) return busyAnswer(context, visit)
      visit.observed.isStream = true
      const headers = new Headers({ ...safetyHeaders(context), 'content-type': 'text/event-stream; charset=utf-8' })
      for (const cookie of caller.cookies) headers.append('set-cookie', cookie)
      return new Response(stream(context, visit, caller, news, open), { headers })
    },
    end() {
      for (const close of open) close()
    },
  }
}

function stream(
  context: GatewayContext,
  visit: Visit,
  caller: SignedInCaller,
  news: () => Promise<readonly Message[]>,
  open: Set<() => void>,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  let end = () => {}
  return new ReadableStream({
    start(controller) {
      let isTelling = false
      async function tell(): Promise<void> {
        // A reader that is slower than the news gets the next ones only.
        if (isTelling || (controller.desiredSize ?? 0) <= -1) return
        isTelling = true
        // A store that is away has no news; the page says so by itself when it is loaded.
        const messages = await news().catch(() => [])
        isTelling = false
        const text = messages.map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`).join('')
        if (open.has(close)) controller.enqueue(encoder.encode(text || ': nothing new\n\n'))
      }
      const timer = setInterval(() => void tell(), EVERY_MS)
      const forget = watchCaller(context, visit, caller, () => close())
      end = () => {
        clearInterval(timer)
        forget?.()
        open.delete(close)
      }
      function close(): void {
        if (!open.has(close)) return
        end()
        controller.close()
      }
      open.add(close)
      void tell()
    },
    cancel: () => end(),
  })
}
