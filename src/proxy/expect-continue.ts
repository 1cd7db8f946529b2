// A request with `Expect: 100-continue` reaches the application with that header, so that the application decides whether it
// wants the body. undici does not support the header, so node:http sends these requests, each on its own connection.

import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { Socket } from 'node:net'
import { type Dispatcher, errors } from 'undici'
import { writeTextAsBytes } from '../server/fast-path.ts'
import { request as httpRequest } from '../util/node-http.ts'

/** How long the application has to ask for the body. After that it gets the body unasked, as from curl and from Go's client. */
const CONTINUE_MS = 1000

export interface Deadlines {
  readonly connectMs: number
  readonly headersMs: number
  readonly idleMs: number
}

export interface Http1Destination {
  readonly origin: string
  readonly socketPath?: string
  readonly ca?: string
  /** Our certificate, and its key. */
  readonly cert?: string
  readonly key?: string
  /** The largest head of an answer, in bytes. */
  readonly maxHeaderSize?: number
}

export interface ExpectingRequest {
  readonly method: string
  readonly path: string
  readonly headers: readonly string[]
  readonly body: AsyncIterable<Buffer>
  readonly destination: Http1Destination
  readonly deadlines: Deadlines
  /** The application wants the body, or was silent for too long. */
  onContinue(): void
}

/** Calls the handler as undici does. The returned function cuts the request off. */
export function dispatchExpecting(
  request: ExpectingRequest,
  handler: Dispatcher.DispatchHandler,
): (reason: Error) => void {
  const { body, deadlines } = request
  const outgoing = dial(request)
  let state: 'connecting' | 'asking' | 'sending' | 'answered' | 'over' = 'connecting'
  let answer: IncomingMessage | undefined
  /**
   * The deadline of the current step: until the application is connected, until it asks for the body, and then for each further
   * step.
   */
  let timer: NodeJS.Timeout | undefined
  setDeadline(deadlines.connectMs, () => end(new errors.ConnectTimeoutError('no connection')))

  const controller = {
    abort: (reason: Error) => end(reason),
    pause: () => void answer?.pause(),
    resume() {
      timer?.refresh()
      answer?.resume()
    },
  } as unknown as Dispatcher.DispatchController

  function end(error?: Error): void {
    if (state === 'over') return
    state = 'over'
    setDeadline(0, end)
    if (error) handler.onResponseError?.(controller, error)
    // An application that has answered does not need the rest of the body.
    outgoing.destroy()
  }

  /** Replaces the previous deadline; 0 sets none. */
  function setDeadline(ms: number, onDeadline: () => void): void {
    clearTimeout(timer)
    timer = ms > 0 ? setTimeout(onDeadline, ms) : undefined
  }

  /** The application's deadline does not pass while we wait for the client. */
  function onNoAnswer(): void {
    if (outgoing.writableEnded || outgoing.writableNeedDrain) end(new errors.HeadersTimeoutError())
    else timer?.refresh()
  }

  function onPause(): void {
    if (answer?.isPaused()) timer?.refresh()
    else end(new errors.BodyTimeoutError())
  }

  function proceed(): void {
    if (state !== 'asking') return
    state = 'sending'
    setDeadline(deadlines.headersMs, onNoAnswer)
    request.onContinue()
    sendBody(outgoing, body, () => state === 'sending' && timer?.refresh()).catch((error: Error) => end(error))
  }

  outgoing.once('socket', (socket: Socket) => {
    writeTextAsBytes(socket)
    socket.once('connect', () => {
      if (state !== 'connecting') return
      state = 'asking'
      setDeadline(CONTINUE_MS, proceed)
    })
  })
  outgoing.on('continue', proceed)
  outgoing.on('information', ({ statusCode, rawHeaders }) => {
    if (statusCode !== 100 && state !== 'over') handler.onResponseStart?.(controller, statusCode, headersIn(rawHeaders))
  })
  outgoing.on('response', received => {
    if (state === 'over') return
    state = 'answered'
    answer = received
    setDeadline(deadlines.idleMs, onPause)
    const { statusCode = 502, statusMessage, rawHeaders } = received
    received.on('data', (chunk: Buffer) => {
      timer?.refresh()
      handler.onResponseData?.(controller, chunk)
    })
    received.on('error', end)
    received.on('end', () => {
      if (state === 'over') return
      handler.onResponseEnd?.(controller, received.trailers)
      end()
    })
    try {
      handler.onResponseStart?.(controller, statusCode, headersIn(rawHeaders), statusMessage)
    } catch (error) {
      end(error as Error)
    }
  })
  outgoing.on('error', end)
  outgoing.on('close', () => end(new errors.SocketError('other side closed')))
  handler.onRequestStart?.(controller, undefined)
  return end
}

function dial({ method, path, headers, destination }: ExpectingRequest): ClientRequest {
  const { origin, ...how } = destination
  const open = origin.startsWith('https:') ? httpsRequest : httpRequest
  const hasLength = headers.some((name, i) => i % 2 === 0 && name.toLowerCase() === 'content-length')
  const framing = hasLength ? [] : ['transfer-encoding', 'chunked']
  return open(origin, {
    ...how,
    method,
    path,
    headers: [...headers, 'expect', '100-continue', ...framing],
    agent: false,
  })
}

async function sendBody(outgoing: ClientRequest, body: AsyncIterable<Buffer>, onProgress: () => void): Promise<void> {
  for await (const chunk of body) {
    if (outgoing.destroyed) return
    onProgress()
    if (!outgoing.write(chunk)) await drained(outgoing)
    onProgress()
  }
  if (!outgoing.destroyed) outgoing.end()
  onProgress()
}

function drained(outgoing: ClientRequest): Promise<void> {
  return new Promise(resolve => {
    const done = () => {
      outgoing.off('drain', done).off('close', done)
      resolve()
    }
    outgoing.on('drain', done).on('close', done)
  })
}

/** As undici returns them: a list for a name that occurs several times. */
function headersIn(rawHeaders: readonly string[]): IncomingHttpHeaders {
  const headers: Record<string, string | string[]> = Object.create(null)
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] as string).toLowerCase()
    const value = rawHeaders[i + 1] as string
    const before = headers[name]
    headers[name] = before === undefined ? value : [before, value].flat()
  }
  return headers
}
