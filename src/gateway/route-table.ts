// Our own routes, all on one screen. Everything that is not below one of these paths belongs to the application behind.

import type { IncomingMessage } from 'node:http'
import { OWN_PATHS } from '../own-paths.ts'
import { admit, type SignedInCaller } from './admission/admit.ts'
import { refusedAnswer } from './admission/refused.ts'
import { toLogin } from './admission/visitor.ts'
import { sendAuditCsv, sendAuditJson } from './console/audit-export.ts'
import { streamAudit } from './console/audit-live.ts'
import { showAudit } from './console/console-audit.ts'
import { askToEnd, endSession } from './console/console-end.ts'
import { showHealth } from './console/console-health.ts'
import { showRules } from './console/console-rules.ts'
import { showSession } from './console/console-session.ts'
import { showSessions } from './console/console-sessions.ts'
import { showSettings } from './console/console-settings.ts'
import { showOverview } from './console/overview.ts'
import { streamOverview } from './console/overview-live.ts'
import type { GatewayContext } from './context.ts'
import { type NoForm, readForm } from './http/form.ts'
import { errorAnswer, type OwnAnswer, redirectAnswer, tooMany } from './http/page-answers.ts'
import { isFromOwnOrigin } from './http/provenance.ts'
import { isByScript, isForPage, type Visit } from './http/request.ts'
import { whoAsks } from './http/who-asks.ts'
import { chooseLanguage } from './language/choose-language.ts'
import { showAccount } from './routes/account.ts'
import { endDevices } from './routes/account-end.ts'
import { sendAsset } from './routes/assets.ts'
import { backchannelLogout } from './routes/backchannel-logout.ts'
import { finishSignIn, tellOfFormPost } from './routes/callback.ts'
import { answerDoctor } from './routes/doctor-answer.ts'
import { showLogin, startAttempt } from './routes/login.ts'
import { signOut, signOutEverywhere } from './routes/logout.ts'
import { sendMetrics } from './routes/metrics-answer.ts'
import { health, me, publicKeys, ready } from './routes/status.ts'
import { startTrial } from './routes/trial.ts'

type Handler = (context: GatewayContext, visit: Visit, form: URLSearchParams) => Promise<OwnAnswer>
type GuardedHandler = (
  context: GatewayContext,
  visit: Visit,
  caller: SignedInCaller,
  form: URLSearchParams,
) => Promise<Response>

const ROUTES: Readonly<Record<string, Readonly<Record<string, Handler>>>> = {
  [OWN_PATHS.login]: { GET: showLogin, HEAD: showLogin, POST: startAttempt },
  [OWN_PATHS.callback]: { GET: finishSignIn },
  [OWN_PATHS.logout]: { GET: signOut, POST: signOut },
  [OWN_PATHS.signOutEverywhere]: { POST: guarded(signOutEverywhere) },
  [OWN_PATHS.account]: { GET: guarded(showAccount), HEAD: guarded(showAccount) },
  [OWN_PATHS.accountEnd]: { POST: guarded(endDevices) },
  [OWN_PATHS.backchannelLogout]: { POST: backchannelLogout },
  [OWN_PATHS.health]: { GET: health, HEAD: health },
  [OWN_PATHS.ready]: { GET: ready, HEAD: ready },
  [OWN_PATHS.jwks]: { GET: publicKeys, HEAD: publicKeys },
  [OWN_PATHS.me]: { GET: me, HEAD: me },
  [OWN_PATHS.metrics]: { GET: sendMetrics, HEAD: sendMetrics },
  [OWN_PATHS.console]: { GET: guarded(showOverview), HEAD: guarded(showOverview) },
  [OWN_PATHS.consoleLive]: { GET: guarded(streamOverview) },
  [OWN_PATHS.consoleSessions]: { GET: guarded(showSessions), HEAD: guarded(showSessions) },
  [OWN_PATHS.consoleAudit]: { GET: guarded(showAudit), HEAD: guarded(showAudit) },
  [OWN_PATHS.consoleAuditCsv]: { GET: guarded(sendAuditCsv) },
  [OWN_PATHS.consoleAuditJson]: { GET: guarded(sendAuditJson) },
  [OWN_PATHS.consoleAuditLive]: { GET: guarded(streamAudit) },
  [OWN_PATHS.consoleRules]: { GET: guarded(showRules), HEAD: guarded(showRules) },
  [OWN_PATHS.consoleSession]: { GET: guarded(showSession), HEAD: guarded(showSession) },
  [OWN_PATHS.consoleEndQuestion]: { GET: guarded(askToEnd), HEAD: guarded(askToEnd) },
  [OWN_PATHS.consoleSettings]: { GET: guarded(showSettings), HEAD: guarded(showSettings) },
  [OWN_PATHS.consoleHealth]: { GET: guarded(showHealth), HEAD: guarded(showHealth) },
  [OWN_PATHS.endSession]: { POST: guarded(endSession) },
  [OWN_PATHS.language]: { POST: chooseLanguage },
  [OWN_PATHS.doctor]: { GET: answerDoctor },
  [OWN_PATHS.doctorSignIn]: { GET: startTrial },
  [OWN_PATHS.assets]: { GET: sendAsset, HEAD: sendAsset },
}

export async function answerOwnRoute(
  context: GatewayContext,
  visit: Visit,
  request: IncomingMessage | Request,
): Promise<OwnAnswer> {
  const name = routeName(context, visit)
  const route = Object.hasOwn(ROUTES, name) && ROUTES[name]
  if (!route) return errorAnswer(context, visit, 'not_found')
  const handler = Object.hasOwn(route, visit.method) && route[visit.method]
  if (!handler) {
    const allow = Object.keys(route).join(', ')
    if (name === OWN_PATHS.callback) await tellOfFormPost(context, visit)
    return errorAnswer(context, visit, 'method_not_allowed', { headers: { allow } })
  }
  const onCutOff = () => context.report('client_cut_off', { ...whoAsks(context, visit), reason: 'form_takes_too_long' })
  const form =
    visit.method === 'POST'
      ? await readForm(request, context.settings.CLIENT_TIMEOUT_MS, onCutOff)
      : new URLSearchParams()
  return form instanceof URLSearchParams ? handler(context, visit, form) : withoutForm(context, visit, form)
}

function routeName({ providers }: Pick<GatewayContext, 'providers'>, { path }: Visit): string {
  if (path.startsWith(OWN_PATHS.assets)) return OWN_PATHS.assets
  return providers.callbackPaths.has(path) ? OWN_PATHS.callback : path
}

function withoutForm(context: GatewayContext, visit: Visit, reason: NoForm): Response {
  if (reason === 'already_read')
    context.report('form_already_read', {
      ...whoAsks(context, visit),
      path: visit.path,
      remedy: 'put Menshen in front of what reads the bodies of requests',
    })
  // The rest of the body is not waited for: the connection ends with the answer.
  const headers = { connection: 'close' }
  return errorAnswer(context, visit, reason === 'too_large' ? 'too_large' : 'bad_request', { headers })
}

/** For signed-in users whom the rules admit. */
function guarded(handler: GuardedHandler): Handler {
  return async (context, visit, form) => {
    const admission = await admit(context, visit)
    const { outcome, loaded, cookies } = admission
    if (outcome === 'limited') return tooMany(context, visit)
    if (!loaded && isOwnForm(context, visit)) return redirectAnswer(context, visit.method, OWN_PATHS.login, cookies)
    if (!loaded) return toLogin(context, visit, admission)
    if (outcome === 'refused') return refusedAnswer(context, visit, admission)
    visit.observed.outcome = 'own'
    return handler(context, visit, { loaded, cookies }, form)
  }
}

/** A person pressed a button on one of our pages, and their session has ended meanwhile. */
function isOwnForm({ settings }: Pick<GatewayContext, 'settings'>, visit: Visit): boolean {
  return visit.method === 'POST' && isForPage(visit) && !isByScript(visit) && isFromOwnOrigin(visit, settings.BASE_URL)
}
