// Chooses the site that answers a request, if the configuration has `hosts`: by the Host that the browser sent or, for a
// forward-auth check, by the host that a trusted proxy names.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { isTrusted, type Networks } from '../config/networks.ts'
import type { Settings } from '../config/settings.ts'
import type { GatewayContext } from '../gateway/context.ts'
import { headersOf, headOf, type WithHeaders } from '../gateway/embedded.ts'
import { isForwardAuth } from '../gateway/forward-auth.ts'
import type { SiteHandlers } from '../gateway/site.ts'
import { type RequestHead, readPath } from '../http/request.ts'
import { drain, sentBy } from '../http/send.ts'
import { type ObservedRequest, observedFields } from '../observe/observed-request.ts'
import { isOwnPath, OWN_PATHS } from '../paths.ts'
import { answerSocket } from '../proxy/tunnel.ts'

/** The site that answers a request; `undefined` if there is none. */
export type ChooseSite<Site> = (head: SiteHead) => Site | undefined

type SiteHead = Pick<RequestHead, 'url' | 'headers' | 'socket'> & Partial<Pick<IncomingMessage, 'rawHeaders'>>

interface SitesOptions<Site> {
  readonly settings: Pick<Settings, 'BASE_URL' | 'TRUSTED_PROXIES'>
  readonly authHost: Site
  /** Keyed by the names of `hosts`. */
  readonly hosts: ReadonlyMap<string, Site>
}

/** For monitoring, which connects by address: their answers do not depend on a host. */
const ANY_HOST: ReadonlySet<string> = new Set([OWN_PATHS.health, OWN_PATHS.ready, OWN_PATHS.metrics])
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/

export function createChooseSite<Site>({ settings, authHost, hosts }: SitesOptions<Site>): ChooseSite<Site> {
  const { BASE_URL, TRUSTED_PROXIES } = settings
  const { host: ownHost, protocol } = new URL(BASE_URL)
  const defaultPort = protocol === 'https:' ? ':443' : ':80'
  const sites = new Map([...hosts, [ownHost, authHost]])

  function siteOf(host: string | undefined): Site | undefined {
    if (host === undefined) return undefined
    // As browsers send it; other clients may write it differently.
    return sites.get(host) ?? siteOfOther(host.toLowerCase(), true)
  }

  function siteOfOther(host: string, acceptsLoopback: boolean): Site | undefined {
    const name = host.endsWith(defaultPort) ? host.slice(0, -defaultPort.length) : host
    return sites.get(name) ?? (acceptsLoopback && LOOPBACK.test(name) ? authHost : undefined)
  }

  /**
   * The site of a host that a proxy asks about. A proxy that does not name the host sends a loopback name, and any client can
   * send one to a proxy: the rules of BASE_URL must not decide about the application of another host.
   */
  function siteOfCheckedHost(host: string): Site | undefined {
    return siteOfOther(host.toLowerCase(), LOOPBACK.test(ownHost))
  }

  function siteOfOwnPath(head: SiteHead): Site | undefined {
    const { headers } = head
    if (ANY_HOST.has(pathOf(head))) return siteOf(headers.host) ?? authHost
    const asked = checkedHost(TRUSTED_PROXIES, head)
    return asked === undefined ? siteOf(headers.host) : siteOfCheckedHost(asked)
  }

  return head => {
    if (head.rawHeaders && namesHostTwice(head.rawHeaders)) return undefined
    return head.url?.startsWith('/_menshen/') ? siteOfOwnPath(head) : siteOf(head.headers.host)
  }
}

/** The header in which each kind of proxy names the host that it asks about. Envoy sends the request's own Host. */
const HOST_HEADERS: Readonly<Record<string, string>> = {
  [OWN_PATHS.check]: 'x-original-host',
  [OWN_PATHS.forward]: 'x-forwarded-host',
}

function pathOf({ url = '' }: Pick<SiteHead, 'url'>): string {
  return url.split('?', 1)[0] ?? ''
}

/** The host that a trusted proxy asks about; `undefined` if this is not a check that names one. */
function checkedHost(proxies: Networks | undefined, head: SiteHead): string | undefined {
  const { headers, socket } = head
  const path = pathOf(head)
  if (!isForwardAuth(path) || !isTrusted(proxies, socket.remoteAddress ?? '')) return undefined
  const named = headers[HOST_HEADERS[path] ?? '']
  // A check without an address checks only the session.
  if (named === undefined && path === OWN_PATHS.check && headers['x-original-uri'] === undefined) return undefined
  return String(named ?? headers.host ?? '')
}

/** A proxy in front may have used one of them, and Node the other (RFC 9112, 3.2). */
function namesHostTwice(rawHeaders: readonly string[]): boolean {
  let count = 0
  for (let n = 0; n < rawHeaders.length; n += 2) {
    const name = rawHeaders[n] as string
    if (name.length === 4 && name.toLowerCase() === 'host') count++
  }
  return count > 1
}

// The transports of all hosts as one.

/** Chooses the site for each request. A request for another host gets 421 and nothing else. */
export function chooseBetween(
  context: GatewayContext,
  authHost: SiteHandlers,
  hosts: ReadonlyMap<string, SiteHandlers>,
): SiteHandlers {
  const choose = createChooseSite({ settings: context.settings, authHost, hosts })

  return {
    ownRoutes: authHost.ownRoutes,

    listener(incoming, response) {
      const site = choose(incoming)
      if (site) return site.listener(incoming, response)
      refuseHost(context, incoming, response)
    },

    upgradeListener(incoming, stream, head) {
      const site = choose(incoming)
      if (site) return site.upgradeListener(incoming, stream, head)
      refuseSocket(context, incoming, stream)
    },

    embedded: {
      ...authHost.embedded,
      async fetch(request, source = {}) {
        const head = headOf(request, source)
        const site = choose(head)
        if (site) return site.embedded.fetch(request, source)
        return isOwnPath(readPath(head) ?? '', context.paths.signIn) ? unknownHostResponse() : undefined
      },
      async session(request, response) {
        return choose(headOfHeaders(request))?.embedded.session(request, response)
      },
      async accessToken(request, target) {
        return choose(headOfHeaders(request))?.embedded.accessToken(request, target)
      },
      async admit(request, source = {}) {
        const head = headOf(request, source)
        const site = choose(isMessage(request) ? { ...head, rawHeaders: request.rawHeaders } : head)
        if (site) return site.embedded.admit(request, source)
        const observed = beginRefused(context, head)
        context.observe.ended(observed, MISDIRECTED)
        const answer = unknownHostResponse()
        return { answer, cookies: [], requestId: observed.requestId, require: () => answer }
      },
    },
  }
}

const MISDIRECTED = 421
const MISDIRECTED_TEXT = 'This server does not serve this host.\n'
const HEADERS = { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' }
/** A longer one would only fill the log. */
const MAX_HOST_LENGTH = 260

function beginRefused({ observe, settings }: GatewayContext, head: RequestHead): ObservedRequest {
  const observed = observe.beginRequest(head)
  observed.outcome = 'refused'
  observe.report('unknown_host', {
    ...observedFields(observed),
    host: (checkedHost(settings.TRUSTED_PROXIES, head) ?? head.headers.host ?? '').slice(0, MAX_HOST_LENGTH),
  })
  return observed
}

function refuseHost(context: GatewayContext, incoming: IncomingMessage, response: ServerResponse): void {
  const { observe } = context
  const observed = beginRefused(context, incoming)
  response.once('close', () => observe.ended(observed, response.statusCode, sentBy(response)))
  // A connection is for one host; the rest of a body is not waited for.
  response.shouldKeepAlive = false
  response.writeHead(MISDIRECTED, { ...HEADERS, 'content-length': Buffer.byteLength(MISDIRECTED_TEXT) })
  response.end(MISDIRECTED_TEXT)
  drain(incoming)
}

function refuseSocket(context: GatewayContext, incoming: IncomingMessage, stream: Duplex): void {
  const { socket } = incoming
  socket.on('error', () => socket.destroy())
  if (stream !== socket) stream.on('error', () => socket.destroy()).resume()
  const observed = beginRefused(context, incoming)
  socket.once('close', () => context.observe.ended(observed, MISDIRECTED, socket))
  answerSocket(socket, observed, { status: MISDIRECTED })
}

function unknownHostResponse(): Response {
  return new Response(MISDIRECTED_TEXT, { status: MISDIRECTED, headers: HEADERS })
}

function isMessage(request: IncomingMessage | Request): request is IncomingMessage {
  return 'rawHeaders' in request
}

/** A Request has its host only in its address. */
function headOfHeaders(request: WithHeaders & { readonly url?: unknown }): RequestHead {
  const headers = headersOf(request)
  const { host = hostIn(request.url) } = headers
  return { method: 'GET', url: '/', headers: { ...headers, host }, socket: {} }
}

function hostIn(url: unknown): string | undefined {
  return typeof url === 'string' ? URL.parse(url)?.host : undefined
}
