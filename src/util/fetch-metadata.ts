// What a browser reports about a request: what the answer is for (a page, a part of one, a script), and which site asks for it.
// Browsers send `Sec-Fetch-*` on https and on loopback. On plain http there is at most the Origin of a POST.

import type { IncomingHttpHeaders } from 'node:http'
import { parseAccept } from 'hono/utils/accept'
import { isGrpc } from './grpc.ts'
import { startOfList } from './header-list.ts'
import { KEY_HEADER } from './key-form.ts'

interface WithHeaders {
  readonly headers: IncomingHttpHeaders
}

/** A script cannot follow a redirect to a login page: it gets a status instead. */
export function isByScript({ headers }: WithHeaders): boolean {
  const accept = (headers.accept ?? '').toLowerCase()
  return (
    (headers['sec-fetch-dest'] === 'empty' && !isPassedOn(headers)) ||
    hasToken(headers) ||
    isSocket(headers) ||
    isGrpc(headers) ||
    String(headers['x-requested-with']).toLowerCase() === 'xmlhttprequest' ||
    (/json|text\/event-stream/.test(accept) && !accept.includes('text/html'))
  )
}

/**
 * A service worker of the application passes on the request for a page (`fetch(event.request)`): Chromium then sends no other
 * destination. A script cannot send this mode.
 */
function isPassedOn(headers: IncomingHttpHeaders): boolean {
  return headers['sec-fetch-dest'] === 'empty' && headers['sec-fetch-mode'] === 'navigate'
}

/** A client of an API, which has never seen our login page. */
export function hasToken({ authorization = '' }: IncomingHttpHeaders): boolean {
  return /^bearer(\s|$)/i.test(authorization)
}

export function sendsPassword({ authorization = '' }: IncomingHttpHeaders): boolean {
  return /^basic(\s|$)/i.test(authorization)
}

/** Files that a browser fetches without cookies and outside of any page: a login page in their place would break an application. */
const NON_PAGE_DESTINATIONS = new Set<unknown>(['manifest', 'serviceworker'])

/** Git, JGit, libgit2: they ask without credentials first. */
const GIT = /^j?git\//i

export function isGit({ 'user-agent': agent = '' }: IncomingHttpHeaders): boolean {
  return GIT.test(agent)
}

/** The script of a service worker: some browsers send `Service-Worker: script` without `Sec-Fetch-Dest`. */
function isWorkerScript(headers: IncomingHttpHeaders): boolean {
  return headers['service-worker'] !== undefined
}

/** A program that cannot use a login page: it sends credentials, is git, or fetches the manifest or the worker of a web app. */
export function isProgram({ headers }: WithHeaders): boolean {
  return (
    Boolean(headers.authorization) ||
    headers[KEY_HEADER] !== undefined ||
    NON_PAGE_DESTINATIONS.has(headers['sec-fetch-dest']) ||
    isWorkerScript(headers) ||
    isGit(headers)
  )
}

/** Whether a browser loads a page. Everything else, including an Accept of any type, may be a program. */
export function loadsPage({ headers }: WithHeaders): boolean {
  return headers['sec-fetch-mode'] === 'navigate' || headers.accept?.toLowerCase().includes('text/html') === true
}

/** Methods of WebDAV, CalDAV and CardDAV, which no browser sends for a page. */
const WEBDAV = /^(?:COPY|MOVE|LOCK|UNLOCK|MKCOL|MKCALENDAR|PROPFIND|PROPPATCH|SEARCH|REPORT|ACL|BIND|REBIND|UNBIND)$/

export function isWebDav(method: string): boolean {
  return WEBDAV.test(method)
}

/** Every browser's user agent begins with this. */
export function isBrowser({ 'user-agent': agent = '', 'sec-fetch-mode': mode }: IncomingHttpHeaders): boolean {
  return agent.startsWith('Mozilla/') || mode !== undefined
}

/** A browser shows the answer in place of the page, whatever the method. */
export function isShownAsPage({ headers }: WithHeaders): boolean {
  const { 'sec-fetch-mode': mode, 'sec-fetch-dest': destination } = headers
  if (isWorkerScript(headers)) return false
  if (mode !== undefined || destination !== undefined) return mode === 'navigate'
  return String(headers['x-requested-with']).toLowerCase() !== 'xmlhttprequest' && prefersHtml(headers.accept ?? '')
}

/** Browsers send less. */
const MAX_ACCEPT_LENGTH = 1024

function prefersHtml(accept: string): boolean {
  const accepted = parseAccept(startOfList(accept, MAX_ACCEPT_LENGTH).toLowerCase())
  const qualityOf = (pattern: RegExp) => Math.max(0, ...accepted.map(({ type, q }) => (pattern.test(type) ? q : 0)))
  const html = qualityOf(/^(?:text\/html|application\/xhtml\+xml)$/)
  return html > 0 && html >= qualityOf(/json$/)
}

/** A user follows a link on another site, or was redirected by one. */
export function isFromOtherSite({ headers }: WithHeaders): boolean {
  const { 'sec-fetch-mode': mode, 'sec-fetch-site': site } = headers
  return mode === 'navigate' && (site === 'cross-site' || site === 'same-site')
}

/** Without `Sec-Fetch-Dest`, a request may be for a part of a page unless it accepts HTML or JSON. */
export function mayBePartOfPage(request: WithHeaders): boolean {
  const { accept = '', 'sec-fetch-dest': destination } = request.headers
  if (destination !== undefined) return isPartOfPage(request.headers)
  return !accept.toLowerCase().includes('text/html') && !isByScript(request)
}

const PAGES_AND_SCRIPTS = new Set<unknown>(['document', 'empty', 'iframe', 'frame', undefined])

/** An image, a style or a script of a page. A browser caches them, unless they set a cookie. */
export function isPartOfPage(headers: IncomingHttpHeaders): boolean {
  return !PAGES_AND_SCRIPTS.has(headers['sec-fetch-dest'])
}

/** A browser shows the answer as a page: it sends `Sec-Fetch-Dest` for one, or it accepts HTML and sends no `Sec-Fetch-Dest`. */
export function isForPage({ headers }: WithHeaders): boolean {
  const { accept = '', 'sec-fetch-dest': destination } = headers
  if (destination !== undefined) return destination === 'document' || isPassedOn(headers)
  return accept.toLowerCase().includes('text/html')
}

/** A user opens a page. Not an icon, an image or a script that the page asks for. */
export function isNavigation({
  method,
  path,
  headers,
}: WithHeaders & { readonly method: string; readonly path: string }): boolean {
  if (method !== 'GET' || path === '/favicon.ico' || isWorkerScript(headers)) return false
  const destination = headers['sec-fetch-dest']
  if (destination !== undefined) return destination === 'document' || isPassedOn(headers)
  const accept = (headers.accept ?? '*/*').toLowerCase()
  return accept.includes('text/html') || accept === '*/*'
}

/**
 * A page of another site opens a WebSocket: browsers send our cookies along, and only Origin reveals it. A proxy that asks
 * about it may not have passed Upgrade on.
 */
export function isForeignSocket({ headers }: WithHeaders, ownOrigin: string): boolean {
  return isSocket(headers) && headers.origin !== undefined && headers.origin !== ownOrigin
}

function isSocket(headers: IncomingHttpHeaders): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket' || headers['sec-websocket-key'] !== undefined
}

/**
 * A user opens a page, or sends something. What a page does without its user is not activity: scripts that fetch, event streams,
 * sockets. A client without `Sec-Fetch-*` does not reveal what a request is for.
 */
export function isActivity({ method, headers }: WithHeaders & { readonly method: string }): boolean {
  if (method !== 'GET' && method !== 'HEAD') return true
  const { 'sec-fetch-mode': mode, 'sec-fetch-dest': destination, 'sec-fetch-site': site } = headers
  if (mode !== undefined) return mode === 'navigate'
  if (destination !== undefined || site !== undefined || headers['sec-fetch-user'] !== undefined) return false
  return !isSocket(headers) && !headers.accept?.toLowerCase().includes('text/event-stream')
}

/** Whether a POST was sent by one of our own pages, or by a client that is not a browser (browsers name the origin of every POST). */
export function isFromOwnOrigin(request: WithHeaders, ownOrigin: string): boolean {
  const { origin, referer, 'sec-fetch-site': site } = request.headers
  if (isPrefetch(request)) return false
  if (origin !== undefined && origin !== 'null' && origin !== ownOrigin) return false
  if (site !== undefined) return isOwnSite(site)
  if (origin !== undefined) return origin === ownOrigin
  return referer === undefined || (URL.canParse(referer) && new URL(referer).origin === ownOrigin)
}

/** A form on one of our own pages, sent by the user and not by a script. Browsers without `Sec-Fetch-*` (plain http) send only the origin. */
export function isOwnForm(request: WithHeaders, ownOrigin: string): boolean {
  const { 'sec-fetch-mode': mode, 'sec-fetch-dest': destination, 'sec-fetch-user': user } = request.headers
  const isByUser = (mode === undefined && destination === undefined) || (mode === 'navigate' && user === '?1')
  return isByUser && isFromOwnOrigin(request, ownOrigin)
}

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS'])

/** A request that may change something, and is not provably from one of our own pages (`origin: 'own'` of a rule). */
export function isCrossSiteWrite(
  { method, headers }: WithHeaders & { readonly method: string },
  ownOrigin: string,
): boolean {
  if (SAFE_METHODS.has(method)) return false
  const { origin, 'sec-fetch-site': site } = headers
  return site === undefined ? origin !== ownOrigin : !isOwnSite(site)
}

/**
 * A GET whose address was typed in, or is a link on one of our own pages, and that opens a page. Without `Sec-Fetch-*` it could come
 * from anywhere: an image of the application sends the same referrer as its links, and another site can send none.
 */
export function isOwnNavigation(request: WithHeaders, ownOrigin: string): boolean {
  const { 'sec-fetch-site': site, 'sec-fetch-dest': destination, 'sec-fetch-mode': mode = 'navigate' } = request.headers
  const isPage = destination === 'document' && mode === 'navigate'
  return isPage && isOwnSite(site) && isFromOwnOrigin(request, ownOrigin)
}

/** An image, a frame, a script, a service worker, or a page that is prefetched. Without `Sec-Fetch-Dest` it may be a page. */
export function isNotDocument(request: WithHeaders): boolean {
  const { 'sec-fetch-dest': destination = 'document' } = request.headers
  return destination !== 'document' || isPrefetch(request) || isWorkerScript(request.headers)
}

const PREFETCH_HEADERS = ['sec-purpose', 'purpose', 'x-purpose', 'x-moz']

function isPrefetch({ headers }: WithHeaders): boolean {
  return PREFETCH_HEADERS.some(name => headers[name] !== undefined)
}

function isOwnSite(site: string | string[] | undefined): boolean {
  return site === 'same-origin' || site === 'none'
}
