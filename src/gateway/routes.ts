// Our own routes, all on one screen. Everything that is not in the table belongs to the application behind.
import type { HttpBindings } from '@hono/node-server'
import { Hono } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { type Admitted, admit } from './admission.ts'
import { noticeAnswer } from './answers.ts'
import { ASSETS_PATH, sendAsset } from './assets.ts'
import { finishSignIn } from './callback.ts'
import { endSession, showConsole } from './console.ts'
import { failure } from './failure.ts'
import type { House } from './house.ts'
import { showLogin, startAttempt } from './login.ts'
import { signOut } from './logout.ts'
import { readVisit, type Visit } from './request.ts'
import { health, me, ready } from './status.ts'
import { toLogin } from './visitor.ts'

type Handler = (house: House, visit: Visit, form: () => Promise<URLSearchParams>) => Promise<Response>

const ROUTES: Readonly<Record<string, Readonly<Record<string, Handler>>>> = {
  '/login': { GET: showLogin, HEAD: showLogin, POST: startAttempt },
  '/callback': { GET: finishSignIn },
  '/logout': { GET: signOut, POST: signOut },
  '/_menshen/health': { GET: health, HEAD: health },
  '/_menshen/ready': { GET: ready, HEAD: ready },
  '/_menshen/me': { GET: me, HEAD: me },
  '/_menshen/console': { GET: guarded(showConsole), HEAD: guarded(showConsole) },
  '/_menshen/console/end': { POST: guarded(endSession) },
  [`${ASSETS_PATH}*`]: { GET: sendAsset, HEAD: sendAsset },
}

const BODY_LIMIT = 16 * 1024
/** What a flood of sign-ins would come through. */
const LIMITED = new Set(['POST /login', 'GET /callback'])

export function isOwnRoute(path: string): boolean {
  return Object.hasOwn(ROUTES, path) || path.startsWith('/_menshen/')
}

export function createRoutes(house: House): Hono<{ Bindings: HttpBindings }> {
  const app = new Hono<{ Bindings: HttpBindings }>()
  app.use(bodyLimit({ maxSize: BODY_LIMIT, onError: () => noticeAnswer(house, 'too_large') }))
  for (const [path, handlers] of Object.entries(ROUTES)) {
    const allow = Object.keys(handlers).join(', ')
    app.all(path, async c => {
      const { incoming } = c.env
      const visit = readVisit(incoming)
      const handler = Object.hasOwn(handlers, visit.method) && handlers[visit.method]
      if (!handler) return noticeAnswer(house, 'method_not_allowed', { headers: { allow } })
      const limited = LIMITED.has(`${visit.method} ${visit.path}`)
      if (limited && !(await house.rateLimit.admits(incoming.socket.remoteAddress ?? '')))
        return noticeAnswer(house, 'too_many', { headers: { 'retry-after': '60' } })
      return handler(house, visit, async () => new URLSearchParams(await c.req.text()))
    })
  }
  app.notFound(() => noticeAnswer(house, 'not_found'))
  app.onError((error, c) => failure(house, readVisit(c.env.incoming), error))
  return app
}

/** For signed-in users whom the rules admit. */
function guarded(
  handler: (house: House, visit: Visit, admitted: Admitted, form: () => Promise<URLSearchParams>) => Promise<Response>,
): Handler {
  return async (house, visit, form) => {
    const admission = await admit(house, visit)
    if (admission.outcome === 'visitor') return toLogin(house, visit, admission.cookies)
    if (admission.outcome === 'refused') return noticeAnswer(house, 'refused', { cookies: admission.cookies })
    return handler(house, visit, admission, form)
  }
}
