// A visitor without a browser: sends exactly what a test says, keeps cookies, and follows redirects only when asked to.

import * as dns from 'node:dns'
import * as http from 'node:http'
import * as https from 'node:https'
import type { LookupFunction } from 'node:net'
import { text } from 'node:stream/consumers'
import { createJar } from './jar.ts'
import type { ScriptedProvider } from './scripted-provider.ts'
import type { User } from './strict-provider.ts'
import { HANG_MS } from './until.ts'

export interface Options {
  /** A `cookie` given here takes the place of the jar's. */
  headers?: http.OutgoingHttpHeaders
  /** Ends the request from the visitor's side, like a closed browser. */
  signal?: AbortSignal
  /** Keeps connections, for tests that send thousands of requests. */
  agent?: http.Agent
}

export interface Request extends Options {
  method?: string
  /** Sent as it is, without normalisation. */
  path: string
  body?: string | Uint8Array
}

export interface Response {
  /** The address that answered. */
  url: string
  status: number
  headers: http.IncomingHttpHeaders
  /** The Set-Cookie headers, as received. */
  setCookies: string[]
  text: string
  json<T = unknown>(): T
}

export type Client = ReturnType<typeof createClient>

export function createClient(baseUrl: string, now: () => number = Date.now) {
  const home = new URL(baseUrl).origin
  const jar = createJar(now)

  async function visit(origin: string, request: Request): Promise<Response> {
    if (origin !== home) return exchange(origin, request)
    const cookie = jar.header(request.path)
    const response = await exchange(home, { ...request, headers: { ...(cookie && { cookie }), ...request.headers } })
    for (const setCookie of response.setCookies) jar.keep(setCookie, request.path)
    return response
  }

  return {
    /** Name and value of the cookies that have not expired. */
    get cookies(): Map<string, string> {
      return jar.values()
    },

    /** Takes a cookie as if the application had set it. */
    keep: (cookie: string) => jar.keep(`${cookie}; Path=/`, '/'),

    request: (request: Request) => visit(home, request),

    get: (path: string, options: Options = {}) => visit(home, { ...options, path }),

    /** An object is sent as a form; a string or bytes as they are. */
    post(path: string, body: Record<string, string> | string | Uint8Array = '', options: Options = {}) {
      if (typeof body === 'string' || body instanceof Uint8Array)
        return visit(home, { ...options, method: 'POST', path, body })
      const headers = { 'content-type': 'application/x-www-form-urlencoded', ...options.headers }
      return visit(home, { ...options, method: 'POST', path, headers, body: new URLSearchParams(body).toString() })
    },

    /** Goes where a redirect points, once, with GET. */
    follow(redirect: Response, options: Options = {}): Promise<Response> {
      const { location } = redirect.headers
      if (location === undefined) throw new Error(`a ${redirect.status} of ${redirect.url} leads nowhere`)
      const { origin, hostname, pathname, search } = new URL(location, redirect.url)
      if (origin !== home && !/^(localhost|127\.\d+\.\d+\.\d+)$/.test(hostname))
        throw new Error(`${location} leads away from this machine`)
      return visit(origin, { ...options, path: pathname + search })
    },
  }
}

/** For a Cookie header of its own. */
export function cookieOf(client: Client): string {
  return [...client.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
}

/** Comes back from the provider as this user; the answer is that of /callback. */
export function signIn(client: Client, provider: ScriptedProvider, user: Partial<User> = {}): Promise<Response> {
  return client.get(`/callback?code=${provider.codeFor(user)}&state=abc_idp`)
}

const lookUp: LookupFunction = (name, options, done) => {
  if (name !== 'localhost') return dns.lookup(name, options, done)
  if (options.all) done(null, [{ address: '127.0.0.1', family: 4 }])
  else done(null, '127.0.0.1', 4)
}

async function exchange(origin: string, asked: Request): Promise<Response> {
  const { method = 'GET', path, headers = {}, body, signal, agent = false } = asked
  const { request } = origin.startsWith('https:') ? https : http
  const { promise: responded, resolve, reject } = Promise.withResolvers<http.IncomingMessage>()
  const sent = request(origin, {
    method,
    path,
    headers,
    // Without an agent a connection for each request: none can be stale when a test restarts a server.
    agent,
    // Servers of the tests listen on IPv4; the resolver would try IPv6 first, at each request.
    lookup: lookUp,
    rejectUnauthorized: false,
    ...(signal && { signal }),
  })
  // A signal with a deadline for each request took a tenth of its processor time.
  const deadline = setTimeout(() => sent.destroy(new Error(`no answer to ${method} ${path}`)), HANG_MS).unref()
  try {
    sent.on('response', resolve).on('error', reject).end(body)
    const response = await responded
    const content = await text(response)
    return {
      url: origin + path,
      status: response.statusCode ?? 0,
      headers: response.headers,
      setCookies: response.headers['set-cookie'] ?? [],
      text: content,
      json: () => JSON.parse(content),
    }
  } finally {
    clearTimeout(deadline)
  }
}
