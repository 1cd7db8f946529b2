// Our own routes, all on one screen. Everything that is not below one of these paths belongs to the application behind.
import type { IncomingMessage } from 'node:http'
import { showAccount } from './account.ts'
import { admit, type Known } from './admission.ts'
import { noticeAnswer, tooMany } from './answers.ts'
import { ASSETS_PATH, sendAsset } from './assets.ts'
import { backchannelLogout } from './backchannel-logout.ts'
import { finishSignIn } from './callback.ts'
import { endSession, showConsole } from './console.ts'
import { readForm } from './form.ts'
import type { House } from './house.ts'
import { showLogin, startAttempt } from './login.ts'
import { signOut, signOutEverywhere } from './logout.ts'
import type { Visit } from './request.ts'
import { health, me, publicKeys, ready } from './status.ts'
import { toLogin } from './visitor.ts'

type Handler = (house: House, visit: Visit, form: URLSearchParams) => Promise<Response>
type GuardedHandler = (house: House, visit: Visit, known: Known, form: URLSearchParams) => Promise<Response>

const ROUTES: Readonly<Record<string, Readonly<Record<string, Handler>>>> = {
  '/login': { GET: showLogin, HEAD: showLogin, POST: limited(startAttempt) },
  '/callback': { GET: limited(finishSignIn) },
  '/logout': { GET: signOut, POST: signOut },
  '/_menshen/sign-out-everywhere': { POST: guarded(signOutEverywhere) },
  '/_menshen/account': { GET: guarded(showAccount), HEAD: guarded(showAccount) },
  '/_menshen/backchannel-logout': { POST: limited(backchannelLogout, 'logout') },
  '/_menshen/health': { GET: health, HEAD: health },
  '/_menshen/ready': { GET: ready, HEAD: ready },
  '/_menshen/jwks.json': { GET: publicKeys, HEAD: publicKeys },
  '/_menshen/me': { GET: me, HEAD: me },
  '/_menshen/console': { GET: guarded(showConsole), HEAD: guarded(showConsole) },
  '/_menshen/console/end': { POST: guarded(endSession) },
  [ASSETS_PATH]: { GET: sendAsset, HEAD: sendAsset },
}

export function isOwnRoute(path: string): boolean {
  return path.startsWith('/_menshen/') || Object.hasOwn(ROUTES, path)
}

export async function answerOwnRoute(house: House, visit: Visit, request: IncomingMessage): Promise<Response> {
  const name = visit.path.startsWith(ASSETS_PATH) ? ASSETS_PATH : visit.path
  const route = Object.hasOwn(ROUTES, name) && ROUTES[name]
  if (!route) return noticeAnswer(house, 'not_found')
  const handler = Object.hasOwn(route, visit.method) && route[visit.method]
  if (!handler) {
    const allow = Object.keys(route).join(', ')
    return noticeAnswer(house, 'method_not_allowed', { headers: { allow } })
  }
  const form = visit.method === 'POST' ? await readForm(request) : new URLSearchParams()
  // The rest of the body is not waited for: the connection ends with the answer.
  if (!form) return noticeAnswer(house, 'too_large', { headers: { connection: 'close' } })
  return handler(house, visit, form)
}

/** Where a flood of sign-ins would come through. */
function limited(handler: Handler, kind: 'sign-in' | 'logout' = 'sign-in'): Handler {
  return async (house, visit, form) => {
    return (await house.rateLimit.admits(kind, visit)) ? handler(house, visit, form) : tooMany(house)
  }
}

/** For signed-in users whom the rules admit. */
function guarded(handler: GuardedHandler): Handler {
  return async (house, visit, form) => {
    const { outcome, opened, cookies } = await admit(house, visit)
    if (!opened) return toLogin(house, visit, cookies)
    if (outcome === 'refused') return noticeAnswer(house, 'refused', { cookies })
    return handler(house, visit, { opened, cookies }, form)
  }
}
