// The developer's console: the list of sessions, and ending one.

import { BlockList } from 'node:net'
import { OWN_PATHS } from '../../own-paths.ts'
import { consolePage } from '../../pages/console-page.ts'
import { shortKey } from '../../session/session-facts.ts'
import { adviceFor } from '../../settings/advice.ts'
import type { Settings } from '../../settings/read.ts'
import { SETTINGS } from '../../settings/rows.ts'
import { hidePassword } from '../../settings/secret.ts'
import type { SignedInCaller } from '../admission/admit.ts'
import type { GatewayContext } from '../context.ts'
import { foreignAnswer, pageAnswer, redirectAnswer } from '../http/page-answers.ts'
import { isFromOwnOrigin } from '../http/provenance.ts'
import type { Visit } from '../http/request.ts'
import { whoAsks } from '../http/who-asks.ts'
import { languageOf } from '../language/language-of.ts'

const PAGE_SIZE = 50

export async function showConsole(
  context: GatewayContext,
  visit: Visit,
  { loaded, cookies }: SignedInCaller,
): Promise<Response> {
  const query = new URLSearchParams(visit.search)
  const username = query.get('username')?.trim() ?? ''
  const after = query.get('after')
  const { sessions, next } = await context.sessions.list({
    limit: PAGE_SIZE,
    ...(username && { username }),
    ...(after && { after }),
  })
  const view = {
    sessions,
    ownKey: loaded.key,
    providerNames: context.providers.names,
    username,
    next,
    warnings: adviceFor(
      context.settings,
      context.providers.all.map(({ plan }) => plan),
    ).map(({ code }) => code),
    settings: shownSettings(context.settings),
  }
  return pageAnswer(context, consolePage(languageOf(context, visit), view), { cookies })
}

export async function endSession(
  context: GatewayContext,
  visit: Visit,
  { loaded, cookies }: SignedInCaller,
  form: URLSearchParams,
): Promise<Response> {
  if (!isFromOwnOrigin(visit, context.settings.BASE_URL)) return foreignAnswer(context, visit, cookies)
  const key = form.get('session') ?? ''
  // Only what looks like a session's key: leases and attempts live in the same store.
  if (/^[\w-]{43}$/.test(key)) {
    const listed = await context.sessions.getListed(key)
    const ended = form.has('all') ? await context.sessions.endAllLike(key) : Number(await context.sessions.end(key))
    context.report('session_ended', {
      ...whoAsks(context, visit),
      session: shortKey(key),
      user: listed?.publicPart?.username,
      by: 'developer',
      byUser: loaded.session.userInfo.username,
      ended,
    })
  }
  return redirectAnswer(context, visit.method, OWN_PATHS.console, cookies)
}

function shownSettings(settings: Settings): [string, string][] {
  return (Object.keys(SETTINGS) as (keyof Settings)[]).map(name => [name, shown(settings[name])])
}

function shown(value: Settings[keyof Settings]): string {
  if (value instanceof BlockList) return value.rules.join(', ')
  return hidePassword(String(value ?? '—'))
}
