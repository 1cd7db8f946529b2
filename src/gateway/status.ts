// Small answers for machines: liveness, readiness, keys, the current user, metrics, the doctor.

import { isProduction } from '../config/deployment.ts'
import { isTrusted, plainAddress } from '../config/networks.ts'
import type { Settings } from '../config/settings.ts'
import { type Arrival, CHALLENGE_HEADER, proofFor } from '../doctor/proxy-probe.ts'
import { errorFields } from '../errors.ts'
import {
  errorAnswer,
  foreignAnswer,
  jsonAnswer,
  languageOf,
  type OwnAnswer,
  textAnswer,
  tooManyAnswer,
} from '../http/answers.ts'
import type { GatewayRequest } from '../http/request.ts'
import type { RouteTable } from '../http/route-table.ts'
import { admit } from '../identify/admit.ts'
import { CONTENT_TYPE } from '../observe/exposition.ts'
import { observedFields, requestFields } from '../observe/observed-request.ts'
import type { Words } from '../pages/words.ts'
import { OWN_PATHS, type OwnPaths } from '../paths.ts'
import type { LoadedSession } from '../session/cache.ts'
import { unauthenticated } from '../sign-in/denial.ts'
import { type StoreProblem, storeProblemOf } from '../stores/write-watch.ts'
import { isFromOwnOrigin } from '../util/fetch-metadata.ts'
import { systemCodeOf } from '../util/system-code.ts'
import { sendAsset } from './assets.ts'
import type { GatewayContext } from './context.ts'

async function health(context: GatewayContext): Promise<OwnAnswer> {
  return jsonAnswer(context.pages, { status: 'ok' })
}

async function ready(context: GatewayContext, request: GatewayRequest): Promise<OwnAnswer> {
  // The load balancer sends the next requests to another process.
  if (context.lifecycle.closing) return notReady(context, 'closing')
  // During setup, a page that names what is missing helps more than no page.
  if (isProduction(context.settings) && context.auth.providers.missing.length > 0) return notReady(context, 'settings')
  try {
    await context.store.ready()
  } catch (error) {
    context.observe.report('not_ready', { ...errorFields(error), ...requestFields(request) })
    const code = systemCodeOf(error)
    return notReady(context, storeProblemOf(code), code)
  }
  // A busy application is not a reason: signing in and every other application still work, here as well as elsewhere.
  return jsonAnswer(context.pages, { status: 'ready' })
}

/** `code` is that of the failure behind it, such as ENOSPC. */
function notReady(context: GatewayContext, reason: 'closing' | 'settings' | StoreProblem, code?: string): OwnAnswer {
  return jsonAnswer(context.pages, { status: 'unavailable', reason, ...(code && { code }) }, { status: 503 })
}

async function publicKeys(context: GatewayContext): Promise<OwnAnswer> {
  const headers = { 'cache-control': 'public, max-age=300' }
  return jsonAnswer(context.pages, await context.identityIssuer.publicKeys(), { headers })
}

async function me(context: GatewayContext, request: GatewayRequest): Promise<OwnAnswer> {
  const { pages } = context
  const admission = await admit(context, request)
  const { outcome, loaded, cookies } = admission
  if (outcome === 'limited') return tooManyAnswer(pages, request)
  const headers = { link: signInLinks(pages.paths) }
  if (!loaded)
    return unauthenticated(pages, request, admission, { ended: endedDialog(languageOf(pages, request)) }, headers)
  const { userInfo, userRole, groups, provider } = loaded.session
  const shown = {
    userInfo,
    userRole,
    ...(groups && { groups }),
    ...(provider && { provider }),
    expiresAt: loaded.expiresAt,
    ...idleFields(context, request, loaded),
  }
  return jsonAnswer(pages, shown, { cookies, headers })
}

/** Longer than the last minute before the end, in which session.js warns. */
const WARNING_MS = 2 * 60_000

/** When the session expires without activity and, shortly before that, the texts of the warning. */
function idleFields({ now, auth, pages }: GatewayContext, request: GatewayRequest, loaded: LoadedSession) {
  const idleEndsAt = auth.sessions.idleEndOf(loaded)
  if (idleEndsAt === undefined) return {}
  // Clocks of browsers can be hours off.
  const idleLeftMs = Math.max(0, idleEndsAt - now())
  if (idleLeftMs > WARNING_MS) return { idleEndsAt, idleLeftMs }
  return { idleEndsAt, idleLeftMs, idleWarning: idleDialog(languageOf(pages, request)) }
}

// POST /_menshen/stay: the button of that warning. Every POST is activity, so nothing is left to do.

async function stay(context: GatewayContext, request: GatewayRequest): Promise<OwnAnswer> {
  if (!isFromOwnOrigin(request, context.settings.BASE_URL)) return foreignAnswer(context, request)
  return me(context, request)
}

/** For scripts of the application, which do not know the settings. */
function signInLinks({ login, logout }: OwnPaths): string {
  return `<${login}>; rel="login", <${logout}>; rel="logout"`
}

/** The warning that session.js shows before an idle end. */
function idleDialog({ lang, t, branding }: Words) {
  return {
    lang,
    title: t('session.idle_title'),
    text: t('session.idle_text'),
    stay: t('session.idle_stay'),
    leave: t('session.sign_out'),
    ...(branding.dialogColors && { colors: branding.dialogColors }),
  }
}

/** The dialog that session.js shows on a page of the application. */
function endedDialog({ lang, t, branding }: Words) {
  return {
    lang,
    title: t('session_ended.title'),
    text: t('session.ended'),
    link: t('session.sign_in_again'),
    ...(branding.dialogColors && { colors: branding.dialogColors }),
  }
}

// GET /_menshen/metrics: for Prometheus on an address that METRICS_FROM names, and never through a proxy.

/** Headers that proxies add: the client of a proxy is not the one that the connection shows. */
const FORWARDED = /^(x-forwarded-.*|x-original-.*|forwarded|x-real-ip|via)$/

const REMEDIES = {
  address: 'add the address to METRICS_FROM',
  proxy:
    'connect directly, from an address outside TRUSTED_PROXIES and without headers of a proxy: name only the addresses of the proxies in TRUSTED_PROXIES, or scrape from this machine; if the proxy is on this machine too, let it connect from 127.0.0.2 (nginx: proxy_bind 127.0.0.2) and set TRUSTED_PROXIES=127.0.0.2',
}

async function sendMetrics(context: GatewayContext, request: GatewayRequest): Promise<OwnAnswer> {
  const { METRICS_FROM: from } = context.settings
  if (from === 'none' || !context.observe.metrics) return errorAnswer(context.pages, request, 'not_found')
  const reason = !isTrusted(from, request.address)
    ? 'address'
    : isProxied(context.settings, request)
      ? 'proxy'
      : undefined
  if (reason) {
    // METRICS_FROM applies to the address of the connection, whatever a proxy forwards.
    const fields = { ...observedFields(request.observed), address: request.address }
    context.observe.report('metrics_refused', { ...fields, reason, remedy: REMEDIES[reason] })
    return textAnswer(context.pages, '', { status: 403, outcome: 'refused' })
  }
  return textAnswer(context.pages, await context.observe.metrics(), { headers: { 'content-type': CONTENT_TYPE } })
}

function isProxied({ TRUSTED_PROXIES }: Settings, { address, headers }: GatewayRequest): boolean {
  return isTrusted(TRUSTED_PROXIES, address) || Object.keys(headers).some(name => FORWARDED.test(name))
}

// GET /_menshen/doctor: reports to the doctor how its request arrived. For any other client this page does not exist.

async function answerDoctor(context: GatewayContext, request: GatewayRequest): Promise<OwnAnswer> {
  const { headers, address } = request
  const { TRUSTED_PROXIES: proxies } = context.settings
  const proof = proofFor(String(headers[CHALLENGE_HEADER] ?? ''), context.auth.keys.doctor, context.now())
  if (proof === undefined) return errorAnswer(context.pages, request, 'not_found')
  const arrived: Arrival = {
    proof,
    host: headers.host ?? '',
    proto: String(headers['x-forwarded-proto'] ?? ''),
    client: request.observed.address,
    peer: plainAddress(address),
    isTrusted: isTrusted(proxies, address),
    hasUpgrade: headers.upgrade?.toLowerCase() === 'websocket',
  }
  return jsonAnswer(context.pages, arrived)
}

/** The routes of every site. */
export const STATUS_ROUTES: RouteTable<GatewayContext> = {
  [OWN_PATHS.health]: { GET: health, HEAD: health },
  [OWN_PATHS.ready]: { GET: ready, HEAD: ready },
  [OWN_PATHS.jwks]: { GET: publicKeys, HEAD: publicKeys },
  [OWN_PATHS.me]: { GET: me, HEAD: me },
  [OWN_PATHS.stay]: { POST: stay },
  [OWN_PATHS.metrics]: { GET: sendMetrics, HEAD: sendMetrics },
  [OWN_PATHS.doctor]: { GET: answerDoctor },
  [OWN_PATHS.assets]: { GET: sendAsset, HEAD: sendAsset },
}
