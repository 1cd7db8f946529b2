// Forwards an admitted request to the application behind it.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Admission } from '../admission/admit.ts'
import type { GatewayContext } from '../context.ts'
import { readCookie } from '../http/cookies.ts'
import { drain } from '../http/form.ts'
import { errorAnswer } from '../http/page-answers.ts'
import type { Visit } from '../http/request.ts'
import { sayContinue, send } from '../http/send.ts'
import { type Exchange, relay } from './exchange.ts'
import { requestHeaders } from './request-headers.ts'
import { responseHeaders } from './response-headers.ts'
import type { Upstream } from './upstreams.ts'

export async function forward(
  context: GatewayContext,
  upstream: Upstream,
  visit: Visit,
  { loaded, cookies }: Admission,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { 'content-length': length, 'transfer-encoding': coding, expect } = visit.headers
  const hasBody = length !== undefined || coding !== undefined
  const body = hasBody ? request.iterator({ destroyOnReturn: false }) : null
  const headers = requestHeaders(context, upstream, request, visit, loaded)
  const exchange: Exchange = {
    upstream,
    method: visit.method,
    path: visit.path + visit.search,
    headers: headers instanceof Promise ? await headers : headers,
    body,
    response,
    answerHeaders(received) {
      if (context.lifecycle.closing) response.shouldKeepAlive = false
      return responseHeaders(context, received, { signedIn: loaded !== undefined, cookies })
    },
  }
  if (expect && request.httpVersion !== '1.0') sayContinue(response)
  const ticket = loaded && readCookie(visit.headers.cookie, context.cookies.session)
  const forget = ticket ? context.streams.add(ticket, () => response.destroy()) : undefined
  try {
    await relayAgain(exchange)
  } catch (error) {
    await answerError(context, visit, response, error)
  } finally {
    forget?.()
    drain(request)
    // An application that answered early has left the rest: while it can still ask for it, nothing is thrown away.
    body?.return?.().then(
      () => request.resume(),
      () => {},
    )
  }
}

/** A kept connection may have been closed by the application just now: what changes nothing is simply asked again. */
async function relayAgain(exchange: Exchange): Promise<void> {
  try {
    await relay(exchange)
  } catch (error) {
    const harmless = (exchange.method === 'GET' || exchange.method === 'HEAD') && !exchange.body
    if (!harmless || !STALE.has(codeOf(error))) throw error
    await relay(exchange)
  }
}

const STALE = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'])
const TOO_SLOW = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'ETIMEDOUT'])

async function answerError(
  context: GatewayContext,
  visit: Visit,
  response: ServerResponse,
  error: unknown,
): Promise<void> {
  if (response.destroyed) return
  const code = codeOf(error)
  context.report('upstream_failed', { reason: code, method: visit.method, path: visit.path })
  await send(response, errorAnswer(context, visit, TOO_SLOW.has(code) ? 'gateway_timeout' : 'bad_gateway'))
}

function codeOf(error: unknown): string {
  return String((error as { code?: unknown }).code ?? error)
}
