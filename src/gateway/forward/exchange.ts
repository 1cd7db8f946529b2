// One request to an application and its answer, streamed both ways at the speed of the slower side.
import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Dispatcher } from 'undici'
import type { Upstream } from './upstreams.ts'

export interface Exchange {
  readonly upstream: Pick<Upstream, 'pool' | 'servername'>
  readonly method: string
  readonly path: string
  readonly headers: string[]
  readonly body: AsyncIterable<Buffer> | null
  readonly response: ServerResponse
  /** What of the application's headers goes to the browser. */
  answerHeaders(headers: IncomingHttpHeaders): OutgoingHttpHeaders
}

/** Resolves when the answer has been delivered, or its receiver has gone; rejects if there was nothing to deliver. */
export function relay(exchange: Exchange): Promise<void> {
  return new Promise((resolve, reject) => {
    const { upstream, method, path, headers, body, response } = exchange
    let isDone = false
    const done = (error?: Error) => {
      isDone = true
      if (!error) resolve()
      else if (response.headersSent) {
        response.destroy()
        resolve()
      } else reject(error)
    }

    const { pool, servername } = upstream
    pool.dispatch({ method, path, headers, body, servername } as Dispatcher.DispatchOptions, {
      onRequestStart(controller) {
        // A browser that has gone away ends the request to the application too.
        const gone = () => {
          if (!isDone) controller.abort(new Error('the browser has gone'))
        }
        if (response.destroyed) gone()
        else response.once('close', gone)
      },
      onResponseStart(_controller, status, received, statusMessage) {
        if (status < 200) return inform(response, status, received)
        response.writeHead(status, plainReason(statusMessage), exchange.answerHeaders(received))
        // An event stream may have nothing to say yet, but its reader waits for the head. A page is here by then.
        process.nextTick(flush, response)
      },
      onResponseData(controller, chunk) {
        if (response.write(chunk)) return
        controller.pause()
        response.once('drain', () => controller.resume())
      },
      onResponseEnd(_controller, trailers) {
        addTrailers(response, trailers)
        response.end()
        done()
      },
      onResponseError: (_controller, error) => done(response.destroyed && response.headersSent ? undefined : error),
    })
  })
}

function flush(response: ServerResponse): void {
  if (!response.writableEnded && !response.destroyed) response.flushHeaders()
}

/** Any interim answer but `100`, which is ours to give. Browsers use the links of `103`, and no other header of these. */
function inform(response: ServerResponse, status: number, { link }: IncomingHttpHeaders): void {
  if (response.req.httpVersion === '1.0') return
  // Newer than the oldest Node that we run on; there an application's hints get lost.
  response.writeInformation?.(status, link ? { link } : {})
}

/** A proxy in front may count them among the headers, and a cookie there would be beyond our filter. */
function addTrailers(response: ServerResponse, trailers: IncomingHttpHeaders): void {
  if (Object.keys(trailers).length === 0) return
  const { 'set-cookie': _, ...kept } = trailers
  response.addTrailers(kept as Record<string, string>)
}

/** Some applications put words of any encoding here, which Node would refuse to send. Nobody has to read them. */
function plainReason(reason = ''): string {
  return /^[\x20-\x7e]*$/.test(reason) ? reason : ''
}
