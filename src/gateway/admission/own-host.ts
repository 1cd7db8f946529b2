// This machine has several names. A browser that comes under another one than BASE_URL's could never sign in there, because
// cookies belong to one name: it is sent to the same page under the right one.
import { isLoopback } from '../../settings/deployment.ts'
import type { GatewayContext } from '../context.ts'
import { readCookie, setCookie } from '../http/cookies.ts'
import { redirectAnswer } from '../http/page-answers.ts'
import type { Visit } from '../http/request.ts'
import { isTrusted } from '../http/trusted-proxies.ts'

/** A proxy that writes its own Host would make a circle of it. A browser that comes back with this cookie was in one. */
const CIRCLE_SECONDS = 5

/** `undefined` if it is at the right place, or is no browser that looks at a page. */
export function toOwnHost(context: GatewayContext, visit: Visit): Response | undefined {
  const { settings, cookies } = context
  const { method, path, search, headers } = visit
  if (method !== 'GET' || headers['sec-fetch-dest'] !== 'document') return undefined
  if (!isOtherNameOf(settings.BASE_URL, headers.host)) return undefined
  if (isTrusted(settings.TRUSTED_PROXIES, visit.address) || readCookie(headers.cookie, cookies.moved)) return undefined
  return redirectAnswer(context, method, settings.BASE_URL + path + search, [
    setCookie(cookies.moved, 'yes', CIRCLE_SECONDS),
  ])
}

function isOtherNameOf(baseUrl: string, host: string | undefined): boolean {
  const address = `http://${host}`
  if (!isLoopback(baseUrl) || !URL.canParse(address) || !isLoopback(address)) return false
  return new URL(address).hostname !== new URL(baseUrl).hostname
}
