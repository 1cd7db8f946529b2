// Where a request came from, as far as the browser tells: one of our own pages, the user's own hand, or another site.
// Browsers say it (`Sec-Fetch-*`) on https and on loopback; on plain http there is the Origin of a POST at most.
import type { Visit } from './request.ts'

/** A browser, or something that pretends to be one, looks ahead without being asked. */
const PREFETCH_HEADERS = ['sec-purpose', 'purpose', 'x-purpose', 'x-moz']

/** Of a POST: sent by one of our own pages, or by something that is no browser (those name the origin of every POST). */
export function isFromOwnOrigin(visit: Pick<Visit, 'headers'>, ownOrigin: string): boolean {
  const { origin, referer, 'sec-fetch-site': site } = visit.headers
  if (isPrefetch(visit)) return false
  if (origin !== undefined && origin !== 'null' && origin !== ownOrigin) return false
  if (site !== undefined) return isOwnSite(site)
  if (origin !== undefined) return origin === ownOrigin
  return referer === undefined || (URL.canParse(referer) && new URL(referer).origin === ownOrigin)
}

/**
 * Of a GET: typed in, or a link of one of our own pages, and opened as a page. Without the browser's word it could come
 * from anywhere: an image of the application sends the same referrer as its links, and another site can send none.
 */
export function isOwnNavigation(visit: Pick<Visit, 'headers'>, ownOrigin: string): boolean {
  const { 'sec-fetch-site': site, 'sec-fetch-dest': destination, 'sec-fetch-mode': mode = 'navigate' } = visit.headers
  const isPage = destination === 'document' && mode === 'navigate'
  return isPage && isOwnSite(site) && isFromOwnOrigin(visit, ownOrigin)
}

/** An image, a frame, a script, or a page that nobody looks at yet. Where the browser says nothing, it may be a page. */
export function isNoPage(visit: Pick<Visit, 'headers'>): boolean {
  const { 'sec-fetch-dest': destination = 'document' } = visit.headers
  return destination !== 'document' || isPrefetch(visit)
}

function isPrefetch({ headers }: Pick<Visit, 'headers'>): boolean {
  return PREFETCH_HEADERS.some(name => headers[name] !== undefined)
}

function isOwnSite(site: string | string[] | undefined): boolean {
  return site === 'same-origin' || site === 'none'
}
