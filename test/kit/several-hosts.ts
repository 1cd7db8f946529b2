// A gateway with several host names in front of it, and a browser that keeps the cookies of each name apart.

import type { TestContext } from 'node:test'
import type { Config } from '../../src/index.ts'
import { type Client, createClient, type Options, type Response } from './client.ts'
import type { ScriptedProvider } from './scripted-provider.ts'
import { type Scene, type SetUpOptions, setUp } from './set-up.ts'
import type { User } from './strict-provider.ts'
import { startUpstream, type Upstream } from './upstream.ts'

export const PORTAL = 'http://portal.test'
export const WIKI = 'http://wiki.test'
export const GRAFANA = 'http://grafana.test'

/** What a browser sends when a user opens a page. */
export const PAGE = {
  accept: 'text/html,*/*;q=0.8',
  'sec-fetch-dest': 'document',
  'sec-fetch-mode': 'navigate',
  'sec-fetch-site': 'none',
  'user-agent': 'Mozilla/5.0',
}

export type Browser = ReturnType<typeof createBrowser>

/** All names lead to `listening`. */
export function createBrowser(listening: string, now: () => number = Date.now) {
  const clients = new Map<string, Client>()

  function at(origin: string): Client {
    const known = clients.get(origin)
    if (known) return known
    const client = createClient(listening, now)
    clients.set(origin, client)
    return client
  }

  async function get(address: string, { headers, ...options }: Options = {}): Promise<Response> {
    const { origin, host, pathname, search } = new URL(address)
    const answer = await at(origin).get(pathname + search, { ...options, headers: { host, ...PAGE, ...headers } })
    return { ...answer, url: address }
  }

  return {
    get,

    /** The cookies that it has of an origin. */
    cookies: (origin: string): Map<string, string> => at(origin).cookies,

    post(address: string, body: Record<string, string> = {}, { headers, ...options }: Options = {}) {
      const { origin, host, pathname, search } = new URL(address)
      const own = { ...PAGE, 'sec-fetch-site': 'same-origin', 'sec-fetch-user': '?1', origin }
      return at(origin).post(pathname + search, body, { ...options, headers: { host, ...own, ...headers } })
    },

    /** Goes where a redirect points, once. */
    follow(answer: Response, options: Options = {}): Promise<Response> {
      return get(new URL(answer.headers.location ?? '', answer.url).href, options)
    },

    /** Opens an address, and follows up to ten redirects between these hosts. */
    async open(address: string, options: Options = {}): Promise<Response & { hops: string[] }> {
      let answer = await get(address, options)
      const hops: string[] = []
      while (answer.headers.location && hops.length < 10) {
        const next = new URL(answer.headers.location, answer.url)
        // The provider.
        if (/^(?:localhost|127\.)/.test(next.hostname)) break
        hops.push(next.href)
        answer = await get(next.href, options)
      }
      return { ...answer, hops }
    },

    /** Comes back to the portal from the provider as this user. */
    signIn(provider: ScriptedProvider, user: Partial<User> = {}, portal = PORTAL): Promise<Response> {
      return get(`${portal}/callback?code=${provider.codeFor({ username: 'zhangsan', ...user })}&state=abc_idp`)
    },
  }
}

export interface SeveralHosts extends Scene {
  readonly wiki: Upstream
  readonly grafana: Upstream
  browser(): Browser
  /** A browser whose user has signed in at the portal. */
  signedIn(username?: string, more?: Partial<User>): Promise<Browser>
}

interface HostsOptions extends SetUpOptions {
  /** Rules of the wiki. */
  wikiRules?: NonNullable<Config['rules']>
}

/** The portal, a wiki and a Grafana, each with its own host name; `forward.test` has no application. */
export async function setUpHosts(t: TestContext, options: HostsOptions = {}): Promise<SeveralHosts> {
  const { wikiRules, config = {}, env, ...rest } = options
  const wiki = await startUpstream(t, (_, response) => response.end('the wiki'))
  const grafana = await startUpstream(t, (_, response) => response.end('grafana'))
  const hosts = {
    'wiki.test': { upstream: wiki.url, ...(wikiRules && { rules: wikiRules }) },
    'grafana.test': { upstreams: { '/': { url: grafana.url } } },
    'forward.test': {},
    ...config.hosts,
  }
  const scene = await setUp(t, { ...rest, config: { ...config, hosts }, env: { BASE_URL: PORTAL, ...env } })
  const browser = () => createBrowser(scene.url, scene.now)
  return {
    ...scene,
    wiki,
    grafana,
    browser,
    async signedIn(username = 'zhangsan', more = {}) {
      const visitor = browser()
      await visitor.signIn(scene.provider, { username, ...more })
      return visitor
    },
  }
}
