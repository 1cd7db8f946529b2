// The embedded identity provider for development: users sign in with one click, everything else is as strict as a real
// one, and a panel makes it misbehave. It shares no code with the rest, so that it cannot share its mistakes.

import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Hono, type MiddlewareHandler } from 'hono'
import { methodNotAllowed } from 'hono/method-not-allowed'
import { authorizeRoute } from './authorize.ts'
import type { RegisteredClient } from './client.ts'
import { browserLogoutRoute, serverLogoutRoute } from './end-session.ts'
import { createFaultInjection } from './fault-injection.ts'
import { createNodeListener, MAX_BODY_BYTES } from './node-listener.ts'
import { messagePage } from './page.ts'
import { panelChangeRoute, panelRoute } from './panel.ts'
import { createGrants, tokenRoute, userInfoRoute } from './tokens.ts'
import { DEV_USERS, type DevUser, type DevUserInfo } from './users.ts'
import { createDevWords, languageRoute, type WordsOf } from './words.ts'

interface DevProviderOptions {
  /** 0 takes any free port. */
  readonly port: number
  readonly host?: string
  readonly clientId: string
  readonly clientSecret: string
  readonly redirectUri: string
  /** Used in place of the built-in users. */
  readonly users?: readonly DevUserInfo[] | undefined
  /** `zh-CN`, `en`, or `auto` for the browser's language; a visitor can choose another. */
  readonly language?: string
  readonly now: () => number
}

export interface DevProvider {
  readonly url: string
  readonly users: readonly string[]
  /** Replaces the users from now on; `undefined` restores the built-in ones. */
  setUsers(users: readonly DevUserInfo[] | undefined): void
  close(): Promise<void>
}

/** Rejects with the original error of `listen`, such as EADDRINUSE. */
export async function startDevProvider(options: DevProviderOptions): Promise<DevProvider> {
  const { port, host = '127.0.0.1', clientId, clientSecret, redirectUri, language = 'zh-CN', now } = options
  let users = cardsOf(options.users)
  const closing = new AbortController()
  const app = await createApp({
    client: { id: clientId, secret: clientSecret, redirectUri },
    users: () => users,
    language,
    now,
    closing: closing.signal,
  })

  const server = createServer(createNodeListener(app.fetch))
  server.listen(port, host)
  await once(server, 'listening')

  return {
    url: `http://localhost:${(server.address() as AddressInfo).port}`,
    get users() {
      return users.map(user => user.info.username)
    },
    setUsers(given) {
      users = cardsOf(given)
    },
    close() {
      closing.abort()
      return new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
    },
  }
}

function cardsOf(users: readonly DevUserInfo[] | undefined): readonly DevUser[] {
  return users ? users.map(info => ({ info })) : DEV_USERS
}

// The provider's routes, and what applies to all of them: protective headers, small bodies, known methods.

interface AppOptions {
  readonly client: RegisteredClient
  /** The current users. */
  readonly users: () => readonly DevUser[]
  readonly language: string
  readonly now: () => number
  /** Ends the delay of answers that are still held back. */
  readonly closing: AbortSignal
}

export async function createApp({ client, users, language, now, closing }: AppOptions): Promise<Hono> {
  const wordsOf = createDevWords(language)
  const grants = createGrants()
  const faults = createFaultInjection()
  const style = await readFile(new URL('pages/style.css', import.meta.url), 'utf8')
  const icon = await readFile(new URL('pages/icon.svg', import.meta.url), 'utf8')

  // The call is processed immediately and only its answer is late: a caller that gives up cannot tell, as with a real provider.
  const delayed: MiddlewareHandler = async (_, next) => {
    const { delayMs } = faults.current()
    await next()
    if (delayMs > 0) await sleep(delayMs, undefined, { signal: closing }).catch(() => undefined)
  }

  const app = new Hono()
  app.use(protectiveHeaders(client), refuseOtherHosts(wordsOf), limitBody, methodNotAllowed({ app }))

  const authorize = authorizeRoute({ client, users, grants, wordsOf, now })
  app.get('/oauth/authorize', authorize)
  app.post('/oauth/authorize', authorize)
  app.post('/oauth/token', delayed, tokenRoute(client, grants, faults, now))
  app.get('/api/bff/v1.2/oauth2/userinfo', delayed, userInfoRoute(grants, faults, now))
  app.get('/oauth/logout', browserLogoutRoute(client, wordsOf))
  app.post('/oauth/logout', delayed, serverLogoutRoute(client, grants))
  app.get('/', panelRoute(grants, faults, wordsOf, now))
  app.post('/panel', panelChangeRoute(faults, wordsOf))
  app.post('/language', languageRoute)
  app.get('/style.css', c => c.body(style, 200, { 'Content-Type': 'text/css; charset=utf-8' }))
  app.get('/icon.svg', c => c.body(icon, 200, { 'Content-Type': 'image/svg+xml' }))
  app.notFound(c => c.html(messagePage(wordsOf(c), wordsOf(c).notFound), 404))
  return app
}

const LOOPBACK = /^(?:(?:.+\.)?localhost|127(?:\.\d{1,3}){3}|\[::1\])$/

/** Another site can make its own name lead to this machine (DNS rebinding). Its pages would then be taken for ours. */
function refuseOtherHosts(wordsOf: WordsOf): MiddlewareHandler {
  return async (c, next) => {
    if (LOOPBACK.test(new URL(c.req.url).hostname)) return next()
    return c.html(messagePage(wordsOf(c), wordsOf(c).foreign), 403)
  }
}

/** Content-Length is required: a client that sends a form to a provider knows it. */
const limitBody: MiddlewareHandler = async (c, next) => {
  if (c.req.header('transfer-encoding')) return c.text('the length of the body is missing', 411)
  if (Number(c.req.header('content-length') ?? 0) > MAX_BODY_BYTES) return c.text('the body is too large', 413)
  return next()
}

function protectiveHeaders(client: RegisteredClient): MiddlewareHandler {
  // Browsers apply form-action to a form's redirects as well, so it must include the application's origin.
  const formAction = `'self' ${new URL(client.redirectUri).origin}`
  const policy = [
    "default-src 'none'",
    "style-src 'self'",
    "img-src 'self'",
    `form-action ${formAction}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ')

  return async (c, next) => {
    await next()
    c.header('Content-Security-Policy', policy)
    c.header('X-Content-Type-Options', 'nosniff')
    c.header('Referrer-Policy', 'same-origin')
    c.header('Cache-Control', 'no-store')
    c.header('Pragma', 'no-cache')
  }
}
