// A request with more than 200 header fields gets 431 on every transport, before anything else is done with it: reading
// 900 of them takes 2 ms. A server that was told to read fewer (`maxHeadersCount`) may have left fields out, among them the one
// that names the client's address, so a request that reaches that lower number is refused too. Apache and Envoy accept 100 fields.

import type { IncomingMessage } from 'node:http'
import { errorFields } from '../errors.ts'
import { isRequest } from '../http/form.ts'
import { type RequestHead, readPath } from '../http/request.ts'
import { REQUEST_ID } from '../observe/observed-request.ts'
import { answerSocket } from '../proxy/tunnel.ts'
import { Http2Request, MAX_HEADERS } from '../server/http2-messages.ts'
import { answerLargeHead, chosenHeaders, refuseLargeHead } from './bad-requests.ts'
import type { GatewayContext } from './context.ts'
import { type Admitted, cutOff, headOf, type RequestSource, toResponse, wasUpgraded } from './embedded.ts'
import { isOwn } from './pipeline.ts'
import type { SiteHandlers } from './site.ts'
import { announcesBody } from './upgrade.ts'

export function limitHeads(context: GatewayContext, site: SiteHandlers): SiteHandlers {
  const { observe } = context

  function admittedOf(request: IncomingMessage | Request, source: RequestSource): Admitted {
    if (!isRequest(request) && wasUpgraded(request)) {
      request.socket.on('error', () => request.socket.destroy())
      if (announcesBody(request)) cutOff(request)
    }
    const head = isRequest(request) ? headOf(request, source) : headOfMany(request)
    const { observed, answer } = refuseLargeHead(context, head)
    const response = toResponse(answer)
    const { requestId } = observed
    response.headers.set(REQUEST_ID, requestId)
    observe.ended(observed, response.status)
    return { answer: response, cookies: [], requestId, require: () => response }
  }

  return {
    ownRoutes: site.ownRoutes,

    listener(incoming, response) {
      if (!isTooLarge(incoming)) return site.listener(incoming, response)
      try {
        // The rest of a body is not waited for.
        response.shouldKeepAlive = false
        incoming.resume()
        answerLargeHead(context, headOfMany(incoming), response)
      } catch (error) {
        // An error that is thrown from here ends the process.
        observe.report('request_failed', { ...errorFields(error), method: incoming.method ?? '', path: '' })
        response.destroy()
      }
    },

    upgradeListener(incoming, stream, head) {
      if (!isTooLarge(incoming)) return site.upgradeListener(incoming, stream, head)
      const { socket } = incoming
      socket.on('error', () => socket.destroy())
      if (stream !== socket) stream.on('error', () => socket.destroy()).resume()
      const { observed, answer } = refuseLargeHead(context, headOfMany(incoming))
      const { status } = answer.response
      socket.once('close', () => observe.ended(observed, status, socket))
      answerSocket(socket, observed, { status })
    },

    embedded: {
      ...site.embedded,
      async fetch(request, source = {}) {
        if (!hasTooMany(request, source)) return site.embedded.fetch(request, source)
        const path = readPath({ url: new URL(request.url).pathname })
        return path !== undefined && isOwn(context, path) ? admittedOf(request, source).answer : undefined
      },
      async admit(request, source = {}) {
        return hasTooMany(request, source) ? admittedOf(request, source) : site.embedded.admit(request, source)
      },
    },
  }
}

function isTooLarge(incoming: IncomingMessage): boolean {
  if (incoming instanceof Http2Request) return incoming.isHeadTooLarge
  const count = incoming.rawHeaders.length / 2
  return count > MAX_HEADERS || count >= mostReadBy(incoming)
}

/** How many fields the application's server reads; node:net keeps the server on each socket. Absent and 0 mean more than our limit. */
function mostReadBy({ socket }: { readonly socket?: object }): number {
  const { server } = (socket ?? {}) as { server?: { maxHeadersCount?: number | null } }
  return server?.maxHeadersCount || Number.POSITIVE_INFINITY
}

function hasTooMany(request: IncomingMessage | Request, { incoming }: RequestSource): boolean {
  if (incoming && isTooLarge(incoming)) return true
  if (!isRequest(request)) return request.rawHeaders !== undefined && isTooLarge(request)
  let count = 0
  for (const _ of request.headers) if (++count > MAX_HEADERS) return true
  return false
}

/** The head, without reading all headers. */
function headOfMany(incoming: IncomingMessage): RequestHead {
  const { method = 'GET', url = '', socket } = incoming
  if (incoming instanceof Http2Request) return { method, url, headers: incoming.headers, socket }
  return { method, url, headers: chosenHeaders(incoming.rawHeaders), socket }
}
