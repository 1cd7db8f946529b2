// Small answers for machines: alive, able to serve, who am I.
import { factsOf } from '../../errors.ts'
import type { Words } from '../../pages/words/words.ts'
import { isProduction } from '../../settings/deployment.ts'
import { admit } from '../admission/admit.ts'
import { unauthenticated } from '../admission/visitor.ts'
import type { GatewayContext } from '../context.ts'
import { jsonAnswer, tooMany } from '../http/page-answers.ts'
import type { Visit } from '../http/request.ts'
import { whoAsks } from '../http/who-asks.ts'
import { languageOf } from '../language/language-of.ts'

export async function health(context: GatewayContext): Promise<Response> {
  return jsonAnswer(context, { status: 'ok' })
}

export async function ready(context: GatewayContext, visit: Visit): Promise<Response> {
  // Whoever asks sends the next requests elsewhere.
  if (context.lifecycle.closing) return notReady(context, 'closing')
  // While it is being set up, a page that names what is missing helps more than none.
  if (isProduction(context.settings) && context.providers.missing.length > 0) return notReady(context, 'settings')
  try {
    await context.store.ready()
  } catch (error) {
    context.report('not_ready', { ...factsOf(error), ...whoAsks(context, visit) })
    return notReady(context, 'store')
  }
  // Not whether an application is busy: signing in and every other application still work, here as well as elsewhere.
  return jsonAnswer(context, { status: 'ready' })
}

function notReady(context: GatewayContext, reason: 'closing' | 'settings' | 'store'): Response {
  return jsonAnswer(context, { status: 'unavailable', reason }, { status: 503 })
}

export async function publicKeys(context: GatewayContext): Promise<Response> {
  const headers = { 'cache-control': 'public, max-age=300' }
  return jsonAnswer(context, await context.identities.publicKeys(), { headers })
}

export async function me(context: GatewayContext, visit: Visit): Promise<Response> {
  const admission = await admit(context, visit)
  const { outcome, loaded, cookies } = admission
  if (outcome === 'limited') return tooMany(context, visit)
  if (!loaded) return unauthenticated(context, visit, admission, { ended: endedDialog(languageOf(context, visit)) })
  visit.observed.outcome = 'own'
  const { userInfo, userRole, groups, provider } = loaded.session
  const shown = {
    userInfo,
    userRole,
    ...(groups && { groups }),
    ...(provider && { provider }),
    expiresAt: loaded.expiresAt,
  }
  return jsonAnswer(context, shown, { cookies })
}

/** What session.js tells users on a page of the application. */
function endedDialog({ lang, t }: Words) {
  return { lang, text: t('session.ended'), link: t('session.sign_in_again') }
}
