// Our own routes: the table of paths and methods, and how a request reaches its handler.

import type { IncomingMessage } from 'node:http'
import { sendAuditCsv, sendAuditJson, showAudit, streamAudit } from '../console/audit-tab.ts'
import { askToEnd, endSession } from '../console/end-sessions.ts'
import { showHealth } from '../console/health-tab.ts'
import { showOverview, streamOverview } from '../console/overview.ts'
import { showRules } from '../console/rules-tab.ts'
import { showSession, showSessions } from '../console/sessions-tab.ts'
import { showSettings } from '../console/settings-tab.ts'
import { runInRequest } from '../observe/observed-request.ts'
import { OWN_PATHS } from '../paths.ts'
import type { MaybePromise } from '../util/maybe-promise.ts'
import { admit, refusedAnswer, type SignedInCaller, toLogin } from './admission.ts'
import type { GatewayContext } from './context.ts'
import { type NoForm, readForm } from './form.ts'
import { createCheck, isCheck } from './forward-auth.ts'
import { chooseLanguage } from './language.ts'
import { type GatewayRequest, isByScript, isForPage, isFromOwnOrigin, requestFields } from './request.ts'
import { errorAnswer, type OwnAnswer, redirectAnswer, tooMany } from './respond.ts'
import { endDevices, showAccount } from './routes/account.ts'
import { sendAsset } from './routes/assets.ts'
import { backchannelLogout } from './routes/backchannel-logout.ts'
import { finishSignIn, tellOfFormPost } from './routes/callback.ts'
import { showLogin, startAttempt } from './routes/login.ts'
import { signOut, signOutEverywhere } from './routes/logout.ts'
import { answerDoctor, health, me, publicKeys, ready, sendMetrics } from './routes/status.ts'
import { startTrial } from './routes/test-sign-in.ts'

type Handler = (context: GatewayContext, request: GatewayRequest, form: URLSearchParams) => Promise<OwnAnswer>
type GuardedHandler = (
  context: GatewayContext,
  request: GatewayRequest,
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
  request: GatewayRequest,
  incoming: IncomingMessage | Request,
): Promise<OwnAnswer> {
  const name = routeName(context, request)
  const route = Object.hasOwn(ROUTES, name) && ROUTES[name]
  if (!route) return errorAnswer(context, request, 'not_found')
  const handler = Object.hasOwn(route, request.method) && route[request.method]
  if (!handler) {
    const allow = Object.keys(route).join(', ')
    if (name === OWN_PATHS.callback) await tellOfFormPost(context, request)
    return errorAnswer(context, request, 'method_not_allowed', { headers: { allow } })
  }
  const onCutOff = () =>
    context.report('client_cut_off', { ...requestFields(context, request), reason: 'form_takes_too_long' })
  const form =
    request.method === 'POST'
      ? await readForm(incoming, context.settings.CLIENT_TIMEOUT_MS, onCutOff)
      : new URLSearchParams()
  return form instanceof URLSearchParams ? handler(context, request, form) : withoutForm(context, request, form)
}

function routeName({ providers }: Pick<GatewayContext, 'providers'>, { path }: GatewayRequest): string {
  if (path.startsWith(OWN_PATHS.assets)) return OWN_PATHS.assets
  return providers.callbackPaths.has(path) ? OWN_PATHS.callback : path
}

function withoutForm(context: GatewayContext, request: GatewayRequest, reason: NoForm): Response {
  if (reason === 'already_read')
    context.report('form_already_read', {
      ...requestFields(context, request),
      path: request.path,
      remedy: 'put Menshen in front of what reads the bodies of requests',
    })
  // The rest of the body is not waited for: the connection ends with the answer.
  const headers = { connection: 'close' }
  return errorAnswer(context, request, reason === 'too_large' ? 'too_large' : 'bad_request', { headers })
}

/** For signed-in users whom the rules admit. */
function guarded(handler: GuardedHandler): Handler {
  return async (context, request, form) => {
    const admission = await admit(context, request)
    const { outcome, loaded, cookies } = admission
    if (outcome === 'limited') return tooMany(context, request)
    if (!loaded && isOwnForm(context, request)) return redirectAnswer(context, request.method, OWN_PATHS.login, cookies)
    if (!loaded) return toLogin(context, request, admission)
    if (outcome === 'refused') return refusedAnswer(context, request, admission)
    request.observed.outcome = 'own'
    return handler(context, request, { loaded, cookies }, form)
  }
}

/** A person pressed a button on one of our pages, and their session has ended meanwhile. */
function isOwnForm({ settings }: Pick<GatewayContext, 'settings'>, request: GatewayRequest): boolean {
  return (
    request.method === 'POST' &&
    isForPage(request) &&
    !isByScript(request) &&
    isFromOwnOrigin(request, settings.BASE_URL)
  )
}

// Our own routes as Request in, Response out, whichever way the request came; and what they have begun is finished.

export interface OwnRoutes {
  /** Of a visit to one of our own paths. A proxy's question is answered at once, where it can be. */
  answer(request: GatewayRequest, incoming: IncomingMessage | Request): MaybePromise<OwnAnswer>
  /** Resolves when what they have begun is done, even for browsers that have gone: a sign-in, a sign-out. */
  settle(): Promise<void>
}

/** `underway` may be shared with own routes of a former configuration: what they began is waited for, too. */
export function createOwnRoutes(context: GatewayContext, underway = new Set<Promise<OwnAnswer>>()): OwnRoutes {
  const check = createCheck(context)

  async function answerRoute(request: GatewayRequest, incoming: IncomingMessage | Request): Promise<OwnAnswer> {
    const answer = runInRequest(request.observed, () => answerOwnRoute(context, request, incoming))
    underway.add(answer)
    return answer.finally(() => underway.delete(answer))
  }

  return {
    answer: (request, incoming) => (isCheck(request.path) ? check(request) : answerRoute(request, incoming)),
    async settle() {
      await Promise.allSettled(underway)
    },
  }
}
