// Our own routes: the table of paths and methods, and how a request reaches its handler.

import type { IncomingMessage } from 'node:http'
import { endDevices, showAccount } from '../account/account.ts'
import { createPersonalKey, revokePersonalKey } from '../account/keys.ts'
import { chooseLanguage } from '../account/language.ts'
import { enterHost, finishEntry, refuseEntry, toPortal } from '../hosts/routes.ts'
import { errorAnswer, type OwnAnswer, redirectAnswer, tooManyAnswer } from '../http/answers.ts'
import { type NoForm, readForm } from '../http/form.ts'
import type { GatewayRequest } from '../http/request.ts'
import type { SignedInCaller } from '../identify/identify.ts'
import { requestFields, runInRequest } from '../observe/observed-request.ts'
import { isResourceMetadataPath, OWN_PATHS, type OwnPaths } from '../paths.ts'
import { backchannelLogout } from '../sign-in/backchannel-logout.ts'
import { finishSignIn, reportFormPost } from '../sign-in/callback.ts'
import { loginAnswer, refusedAnswer } from '../sign-in/denial.ts'
import { showLogin, startSignIn } from '../sign-in/login.ts'
import { signOut, signOutEverywhere } from '../sign-in/logout.ts'
import { stepUp } from '../sign-in/step-up.ts'
import { startTestSignIn } from '../sign-in/test-sign-in.ts'
import { isByScript, isForPage, isFromOwnOrigin } from '../util/fetch-metadata.ts'
import type { MaybePromise } from '../util/maybe-promise.ts'
import type { admitWithoutStore } from './admit-without-store.ts'
import { sendAsset } from './assets.ts'
import type { GatewayContext } from './context.ts'
import { createCheck, isCheck } from './forward-auth.ts'
import { admit } from './pipeline.ts'
import { refreshDevice, registerDevice } from './routes/device.ts'
import { answerDoctor, health, me, publicKeys, ready, sendMetrics, stay } from './status.ts'

export type Handler = (context: GatewayContext, request: GatewayRequest, form: URLSearchParams) => Promise<OwnAnswer>

export type GuardedHandler = (
  context: GatewayContext,
  request: GatewayRequest,
  caller: SignedInCaller,
  form: URLSearchParams,
) => Promise<OwnAnswer>

/** Handlers by path, then by method. */
export type RouteTable = Readonly<Record<string, Readonly<Record<string, Handler>>>>

const ROUTES: RouteTable = {
  [OWN_PATHS.signOutEverywhere]: { POST: guarded(signOutEverywhere) },
  [OWN_PATHS.account]: { GET: guarded(showAccount), HEAD: guarded(showAccount) },
  [OWN_PATHS.accountEnd]: { POST: guarded(endDevices) },
  [OWN_PATHS.deviceRegister]: { POST: registerDevice },
  [OWN_PATHS.deviceRefresh]: { POST: refreshDevice },
  [OWN_PATHS.accountKeys]: { POST: guarded(createPersonalKey) },
  [OWN_PATHS.accountKeysRevoke]: { POST: guarded(revokePersonalKey) },
  [OWN_PATHS.backchannelLogout]: { POST: backchannelLogout },
  [OWN_PATHS.health]: { GET: health, HEAD: health },
  [OWN_PATHS.ready]: { GET: ready, HEAD: ready },
  [OWN_PATHS.jwks]: { GET: publicKeys, HEAD: publicKeys },
  [OWN_PATHS.me]: { GET: me, HEAD: me },
  [OWN_PATHS.stay]: { POST: stay },
  [OWN_PATHS.metrics]: { GET: sendMetrics, HEAD: sendMetrics },
  [OWN_PATHS.language]: { POST: chooseLanguage },
  [OWN_PATHS.stepUp]: { GET: stepUp },
  [OWN_PATHS.doctor]: { GET: answerDoctor },
  [OWN_PATHS.doctorSignIn]: { GET: startTestSignIn },
  [OWN_PATHS.assets]: { GET: sendAsset, HEAD: sendAsset },
}

function signInRoutes({ login, callback, logout }: OwnPaths): RouteTable {
  return {
    [login]: { GET: showLogin, HEAD: showLogin, POST: startSignIn },
    [callback]: { GET: finishSignIn },
    [logout]: { GET: signOut, POST: signOut },
  }
}

const enterSignedIn = guarded(enterHost)

/** Signs in first, if need be, and comes back. */
async function enter(context: GatewayContext, request: GatewayRequest, form: URLSearchParams): Promise<OwnAnswer> {
  return refuseEntry(context, request) ?? enterSignedIn(context, request, form)
}

/** At BASE_URL. */
function portalRoutes({ paths }: GatewayContext, routes: RouteTable): RouteTable {
  return {
    ...ROUTES,
    [OWN_PATHS.enter]: { GET: enter },
    [OWN_PATHS.entered]: { GET: finishEntry },
    ...routes,
    ...signInRoutes(paths),
  }
}

const TO_PORTAL = { GET: toPortal, HEAD: toPortal, POST: toPortal }

/** At a host of `hosts`: sign-in, account and console are the portal's. */
function hostRoutes({ paths }: GatewayContext): RouteTable {
  const ofPortal = Object.values(OWN_PATHS).filter(
    path => path.startsWith(OWN_PATHS.account) || path.startsWith(OWN_PATHS.console) || path === OWN_PATHS.doctorSignIn,
  )
  return {
    ...ROUTES,
    ...Object.fromEntries([...ofPortal, paths.login, paths.callback].map(path => [path, TO_PORTAL])),
    [paths.logout]: { GET: signOut, POST: signOut },
    [OWN_PATHS.entered]: { GET: finishEntry },
  }
}

export interface OwnRoutes {
  /** Answers a request to one of our own paths. A forward-auth check is answered without a promise where that is possible. */
  answer(request: GatewayRequest, incoming: IncomingMessage | Request): MaybePromise<OwnAnswer>
  /** Resolves when all sign-ins and sign-outs that have begun are done, even those of browsers that have left. */
  settle(): Promise<void>
}

interface OwnRoutesOptions {
  /** Besides the gateway's own, at the portal: those of the console. */
  readonly routes: RouteTable
  /** Answers that have begun. Shared with the routes of a former configuration, whose answers are waited for, too. */
  readonly pending: Set<Promise<OwnAnswer>>
}

export function createOwnRoutes(context: GatewayContext, { routes, pending }: OwnRoutesOptions): OwnRoutes {
  const table = context.host ? hostRoutes(context) : portalRoutes(context, routes)
  const check = createCheck(context)
  const { resources } = context

  async function answerRoute(request: GatewayRequest, incoming: IncomingMessage | Request): Promise<OwnAnswer> {
    const answer = runInRequest(request.observed, () => answerFrom(table, context, request, incoming))
    pending.add(answer)
    return answer.finally(() => pending.delete(answer))
  }

  return {
    answer(request, incoming) {
      if (isCheck(request.path)) return check(request)
      return resources && isResourceMetadataPath(request.path)
        ? resources.answer(context.pages, request)
        : answerRoute(request, incoming)
    },
    async settle() {
      await Promise.allSettled(pending)
    },
  }
}

async function answerFrom(
  table: RouteTable,
  context: GatewayContext,
  request: GatewayRequest,
  incoming: IncomingMessage | Request,
): Promise<OwnAnswer> {
  const { settings, paths, pages, observe } = context
  const name = routeName(paths, request.path)
  const route = Object.hasOwn(table, name) && table[name]
  if (!route) return errorAnswer(pages, request, 'not_found')
  const handler = Object.hasOwn(route, request.method) && route[request.method]
  if (!handler) {
    const allow = Object.keys(route).join(', ')
    if (name === paths.callback) await reportFormPost(context, request)
    return errorAnswer(pages, request, 'method_not_allowed', { headers: { allow } })
  }
  if (request.method !== 'POST') return handler(context, request, new URLSearchParams())
  const onCutOff = () => observe.report('client_cut_off', { ...requestFields(request), reason: 'form_takes_too_long' })
  const form = await readForm(incoming, settings.CLIENT_TIMEOUT_MS, onCutOff)
  return form instanceof URLSearchParams ? handler(context, request, form) : answerWithoutForm(context, request, form)
}

function routeName({ callback, callbacks }: OwnPaths, path: string): string {
  if (path.startsWith(OWN_PATHS.assets)) return OWN_PATHS.assets
  return callbacks.has(path) ? callback : path
}

function answerWithoutForm({ pages, observe }: GatewayContext, request: GatewayRequest, reason: NoForm): OwnAnswer {
  if (reason === 'already_read')
    observe.report('form_already_read', {
      ...requestFields(request),
      path: request.path,
      remedy: 'put Menshen in front of what reads the bodies of requests',
    })
  // The rest of the body is not waited for: the connection ends with the answer.
  const headers = { connection: 'close' }
  return errorAnswer(pages, request, reason === 'too_large' ? 'too_large' : 'bad_request', { headers })
}

/** For signed-in users whom the rules admit. */
export function guarded(
  handler: GuardedHandler,
  admitCaller: typeof admitWithoutStore | typeof admit = admit,
): Handler {
  return async (context, request, form) => {
    const { settings, pages } = context
    const admission = await admitCaller(context, request)
    const { outcome, loaded, cookies } = admission
    if (outcome === 'limited') return tooManyAnswer(pages, request)
    if (!loaded && !admission.isProviderAway && isOwnForm(request, settings.BASE_URL))
      return redirectAnswer(pages, request.method, pages.paths.login, { cookies, outcome: 'visitor' })
    if (!loaded) return loginAnswer(context, request, admission)
    if (outcome === 'refused') return refusedAnswer(context, request, admission)
    return handler(context, request, { ...admission, loaded }, form)
  }
}

/** A user pressed a button on one of our pages after the session had ended. */
function isOwnForm(request: GatewayRequest, ownOrigin: string): boolean {
  return request.method === 'POST' && isForPage(request) && !isByScript(request) && isFromOwnOrigin(request, ownOrigin)
}
