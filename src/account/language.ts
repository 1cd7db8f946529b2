// POST /_menshen/language: sets the language of our pages in this browser. It needs neither a session nor a script.

import { readTarget } from '../access/request-path.ts'
import { errorAnswer, foreignAnswer, languageCookie, type OwnAnswer, redirectAnswer } from '../http/answers.ts'
import type { GatewayRequest } from '../http/request.ts'
import { safeReturnPath } from '../http/return-path.ts'
import type { RouteTable } from '../http/route-table.ts'
import { LANGUAGE_FIELDS } from '../pages/layout.ts'
import { isOwnPath, OWN_PATHS, type OwnPaths } from '../paths.ts'
import type { SignInContext } from '../sign-in/context.ts'
import { CONFIRM_QUERY } from '../sign-in/logout.ts'
import { isFromOwnOrigin } from '../util/fetch-metadata.ts'

async function chooseLanguage(
  context: SignInContext,
  request: GatewayRequest,
  form: URLSearchParams,
): Promise<OwnAnswer> {
  const { settings, pages } = context
  if (!isFromOwnOrigin(request, settings.BASE_URL)) return foreignAnswer(context, request)
  const chosen = pages.languages.get(form.get(LANGUAGE_FIELDS.language) ?? '')
  if (!chosen) return errorAnswer(pages, request, 'bad_request')
  // With forward-auth, only the browser knows the address of the page.
  const shown = form.get(LANGUAGE_FIELDS.returnTo) ?? request.headers.referer ?? ''
  const location = pageToShow(shown, settings.BASE_URL, pages.paths)
  return redirectAnswer(pages, request.method, location, { cookies: [languageCookie(pages, chosen.lang)] })
}

/** The page with the language switch: always a path of our own origin, and of our own routes only those that just show something. */
function pageToShow(shown: string, ownOrigin: string, { login, logout, signIn }: OwnPaths): string {
  const url = URL.parse(shown, ownOrigin)
  if (url?.origin !== ownOrigin) return HOME
  if (url.pathname === login) return url.search.length <= MAX_QUERY_LENGTH ? url.pathname + url.search : url.pathname
  if (url.pathname === logout) return logout + CONFIRM_QUERY
  const wanted = safeReturnPath(shown, ownOrigin, signIn)
  const path = wanted && readTarget(wanted)?.path
  return path && (!isOwnPath(path, signIn) || isShown(path)) ? wanted : HOME
}

const HOME = '/'
/** Long enough for a login page with a long return path. */
const MAX_QUERY_LENGTH = 8300
const SHOWN_BELOW = [OWN_PATHS.console, OWN_PATHS.account]

function isShown(path: string): boolean {
  return SHOWN_BELOW.some(own => path === own || path.startsWith(`${own}/`))
}

export const LANGUAGE_ROUTES: RouteTable<SignInContext> = { [OWN_PATHS.language]: { POST: chooseLanguage } }
