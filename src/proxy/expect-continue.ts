// A request with `Expect: 100-continue` goes to the application as one: the application says whether it wants the body. undici
// does not have that header, so node:http sends these requests, each on its own connection.

import { type ClientRequest, request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { Socket } from 'node:net'
import { type Dispatcher, errors } from 'undici'

/** How long the application has to ask for the body. After that it gets the body unasked, as from curl and from Go's client. */
const CONTINUE_MS = 1000

export interface Deadlines {
  readonly connectMs: number
  readonly headersMs: number
  readonly idleMs: number
}

export interface ExpectingRequest {
  readonly method: string
  readonly path: string
  readonly headers: readonly string[]
  readonly body: AsyncIterable<Buffer>
  readonly destination: {
    readonly origin: string
    readonly socketPath?: string
    readonly ca?: string
    readonly cert?: string
    readonly key?: string
    readonly maxHeaderSize?: number
  }
  readonly deadlines: Deadlines
  /** The application wants the body, or has not said anything for too long. */
  onContinue(): void
}

/** Calls the handler as undici does. The returned function cuts the request off. */
export function dispatchExpecting(
  request: ExpectingRequest,
  handler: Dispatcher.DispatchHandler,
): (reason: Error) => void {
  const { body, deadlines } = request
  const outgoing = dial(request)
  let answer: IncomingMessage | undefined
  let isOver = false
  let isSending = false

  const controller = {
    abort: (reason: Error) => end(reason),
    pause: () => void answer?.pause(),
    resume: () => void answer?.resume(),
  } as unknown as Dispatcher.DispatchController

  function end(error?: Error): void {
    if (isOver) return
    isOver = true
    clearTimeout(connecting)
    clearTimeout(waiting)
    if (error) handler.onResponseError?.(controller, error)
    // An application that has answered does not need the rest of the body.
    outgoing.destroy()
  }

  function proceed(): void {
    clearTimeout(waiting)
    if (isSending || isOver || answer) return
    isSending = true
    request.onContinue()
    sendBody(outgoing, body).catch((error: Error) => end(error))
  }

  const connecting = setTimeout(() => end(new errors.ConnectTimeoutError('no connection')), deadlines.connectMs)
  let waiting: NodeJS.Timeout | undefined
  outgoing.once('socket', (socket: Socket) => {
    writeBytes(socket)
    socket.once('connect', () => {
      clearTimeout(connecting)
      waiting = setTimeout(proceed, CONTINUE_MS)
    })
  })
  outgoing.setTimeout(deadlines.headersMs, () => {
    if (answer) end(new errors.BodyTimeoutError())
    // Otherwise we wait for the client.
    else if (outgoing.writableEnded || outgoing.writableNeedDrain) end(new errors.HeadersTimeoutError())
  })
  outgoing.on('continue', proceed)
  outgoing.on('information', ({ statusCode, rawHeaders }) => {
    if (statusCode !== 100 && !isOver) handler.onResponseStart?.(controller, statusCode, headersIn(rawHeaders))
  })
  outgoing.on('response', received => {
    clearTimeout(waiting)
    if (isOver) return
    answer = received
    outgoing.setTimeout(deadlines.idleMs)
    const { statusCode = 502, statusMessage, rawHeaders } = received
    received.on('data', (chunk: Buffer) => handler.onResponseData?.(controller, chunk))
    received.on('error', end)
    received.on('end', () => {
      if (isOver) return
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

/** With `Expect`, node:http writes the head as UTF-8: bytes above 0x7f would be encoded twice. */
function writeBytes(socket: Socket): void {
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean
  socket.write = (chunk: unknown, ...more: unknown[]) =>
    typeof chunk === 'string'
      ? write(Buffer.from(chunk, 'latin1'), ...more.filter(one => typeof one === 'function'))
      : write(chunk, ...more)
}

async function sendBody(outgoing: ClientRequest, body: AsyncIterable<Buffer>): Promise<void> {
  for await (const chunk of body) {
    if (outgoing.destroyed) return
    if (!outgoing.write(chunk)) await drained(outgoing)
  }
  if (!outgoing.destroyed) outgoing.end()
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

/** As undici gives them: a list for a name that comes several times. */
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
