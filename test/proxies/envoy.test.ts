// Envoy and the Gateway API: `/_menshen/authz/<path>`, asked by a stub that follows the rules of Envoy's ext_authz filter with
// the lists of the example. Envoy itself is not run.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, request as send } from 'node:http'
import { buffer } from 'node:stream/consumers'
import test, { type TestContext } from 'node:test'
import { parse, parseAllDocuments } from 'yaml'
import type { Rule } from '../../src/index.ts'
import { OWN_PATHS } from '../../src/paths.ts'
import { keySha256, newKey } from '../../src/util/key-form.ts'
import { type Client, cookieOf, createClient } from '../kit/client.ts'
import { listen } from '../kit/listen.ts'
import { setUp } from '../kit/set-up.ts'
import { openWire, raw, request, statusOf } from '../proxy/raw.ts'

const RULES: Rule[] = [
  { path: '/internal', roles: ['developer'] },
  { path: '/public', public: true },
  { path: '/forms', methods: ['POST'], roles: ['developer'] },
]
const TRUSTED = { env: { TRUSTED_PROXIES: '127.0.0.1' }, config: { rules: RULES } }
const IDENTITY = [
  ...['x-forwarded-user', 'x-forwarded-email', 'x-forwarded-preferred-username', 'x-forwarded-role'],
  'x-forwarded-groups',
  'x-menshen-assertion',
]
const PAGE = {
  accept: 'text/html',
  'sec-fetch-dest': 'document',
  'sec-fetch-mode': 'navigate',
  'user-agent': 'Mozilla/5.0',
}
const AUTHZ = '/_menshen/authz'

test('an Envoy check gets exactly 200 with identity headers if access is allowed, and another status without them if not', async t => {
  const scene = await setUp(t, TRUSTED)
  const people = [scene.visitor(), await scene.user(), await scene.user('admin')]
  for (const [path, method, ...expected] of [
    ['/', 'GET', 302, 200, 200],
    ['/a?b=c', 'GET', 302, 200, 200],
    ['/internal/x', 'GET', 302, 403, 200],
    ['/%69nternal', 'GET', 302, 403, 200],
    ['/x%2Finternal', 'GET', 302, 200, 200],
    ['/internal%2Fx', 'GET', 302, 403, 200],
    ['/internal;a=1', 'HEAD', 302, 403, 200],
    ['/public', 'POST', 200, 200, 200],
    ['/public/a%20b', 'OPTIONS', 200, 200, 200],
    ['/forms', 'GET', 302, 200, 200],
    ['/forms', 'POST', 401, 403, 200],
    ['/', 'DELETE', 401, 403, 200],
    ['/', 'PROPFIND', 401, 403, 200],
    ['/open', 'DELETE', 401, 200, 200],
    ['/public', 'TRACE', 405, 405, 405],
    ['//internal', 'GET', 400, 400, 400],
    ['/x/../internal', 'GET', 400, 400, 400],
    ['/x/%2e%2e/internal', 'GET', 400, 400, 400],
    ['', 'GET', 400, 400, 400],
    ['?a', 'GET', 400, 400, 400],
  ] as const) {
    for (const [i, who] of people.entries()) {
      const { status, headers } = await who.request({ method, path: AUTHZ + path, headers: PAGE })
      assert.equal(status, expected[i], `${method} ${path} ${i}`)
      const told = IDENTITY.filter(name => headers[name] !== undefined)
      assert.deepEqual(told, status === 200 ? IDENTITY : [], `${method} ${path}`)
      if (status === 200) assert.equal(headers['x-forwarded-user'], ['', 'zhangsan', 'admin'][i])
    }
  }
})

test('a denied Envoy check gets the complete response for the user: a redirect with its cookie, a page, or JSON', async t => {
  const scene = await setUp(t, TRUSTED)
  const login = await scene.visitor().get(`${AUTHZ}/reports/a%2Fb?c=d`, { headers: PAGE })
  assert.match(String(login.headers.location), /^\/login\?/)
  const returnPath = new URL(String(login.headers.location), scene.url).searchParams.get('return') ?? ''
  assert.match(Buffer.from(returnPath.split('.')[0] ?? '', 'base64url').toString(), / \/reports\/a%2Fb\?c=d$/)
  assert.ok(
    login.setCookies.some(cookie => cookie.startsWith('menshen_return')),
    String(login.setCookies),
  )
  const script = await scene.visitor().get(`${AUTHZ}/reports`, { headers: { accept: 'application/json' } })
  assert.deepEqual([script.status, script.json<{ error: string }>().error], [401, 'unauthenticated'])
  const refused = await (await scene.user()).get(`${AUTHZ}/internal`, { headers: PAGE })
  assert.equal(refused.status, 403)
  assert.match(refused.text, /<html/)
})

test('an Envoy check from an untrusted address gets 403 without identity headers or cookies, and is logged', async t => {
  for (const env of [{}, { TRUSTED_PROXIES: '127.0.0.9' }]) {
    const scene = await setUp(t, { env, config: { rules: RULES } })
    for (const who of [scene.visitor(), await scene.user()])
      for (const path of ['/', '/public', '/internal', '', '//x', '/login']) {
        const { status, headers, setCookies } = await who.get(AUTHZ + path, {
          headers: { ...PAGE, 'x-forwarded-for': '127.0.0.9' },
        })
        assert.equal(status, 403, path)
        assert.deepEqual([IDENTITY.filter(name => name in headers), setCookies], [[], []], path)
      }
    assert.ok(scene.lines.some(({ event }) => event === 'check_refused'))
  }
})

test('an Envoy check for one of Menshen’s own paths gets 404, and the log says to send it to Menshen without a check', async t => {
  const scene = await setUp(t, TRUSTED)
  const own = [...Object.values(OWN_PATHS), '/_menshen/', '/_menshen/none', '/login', '/callback', '/logout']
  for (const who of [scene.visitor(), await scene.user('admin')])
    for (const path of [...own, `${AUTHZ}/public`, '/login?a=b'])
      assert.equal((await who.get(AUTHZ + path, { headers: PAGE })).status, 404, path)
  assert.match(JSON.stringify(scene.lines), /has to send it to Menshen without asking/)
  assert.equal((await scene.visitor().get(`${AUTHZ}x/public`)).status, 404)
})

test('a body, an Expect header or an Upgrade header neither delays nor bypasses an Envoy check', async t => {
  const scene = await setUp(t, TRUSTED)
  const cookie = `cookie: ${cookieOf(await scene.user())}`
  const socket = [
    'connection: upgrade, close',
    'upgrade: websocket',
    'sec-websocket-version: 13',
    'sec-websocket-key: abcd',
  ]
  const ask = (...lines: string[]) => raw(scene.url, request(`POST ${AUTHZ}/x HTTP/1.1`, cookie, ...lines))
  assert.equal(statusOf(await ask('content-length: 0')), 200)
  assert.equal(statusOf(await ask('content-length: 1000000')), 200, 'the body is not waited for')
  assert.match(
    await ask('content-length: 4', 'expect: 100-continue'),
    /^HTTP\/1\.1 (100 Continue\r\n\r\nHTTP\/1\.1 )?200 /,
  )
  const upgrade = (...lines: string[]) =>
    raw(scene.url, `${[`GET ${AUTHZ}/chat HTTP/1.1`, 'host: a', ...socket, ...lines].join('\r\n')}\r\n\r\n`)
  const admitted = await upgrade(cookie)
  assert.equal(statusOf(admitted), 200)
  assert.match(admitted, /x-forwarded-user: zhangsan/i)
  assert.equal(statusOf(await upgrade(cookie, 'origin: https://evil.example')), 403)
  assert.equal(statusOf(await upgrade('accept: application/json')), 401)
  // A body that was not asked for is not taken for the next request on the connection.
  const wire = await openWire(scene.url)
  const hidden = `GET ${AUTHZ}/public HTTP/1.1\r\nhost: a\r\n\r\n`
  const first = [`POST ${AUTHZ}/internal HTTP/1.1`, 'host: a', `content-length: ${hidden.length}`, '', hidden].join(
    '\r\n',
  )
  wire.socket.write(`${first}GET ${AUTHZ}/public HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`)
  assert.deepEqual(
    [...(await wire.rest()).matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status),
    ['401', '200'],
  )
})

// A stub of Envoy. What it follows: the check has the request's method, the prefix and the path, Host, Content-Length: 0 and
// Authorization, besides `allowed_headers`; Envoy adds its own address to X-Forwarded-For. Exactly 200 admits: then
// `allowed_upstream_headers` replace those of the request, those that `x-envoy-auth-headers-to-remove` names are removed, and
// `allowed_client_headers_on_success` are added to the answer. 5xx is an error, which is 403. Any other status goes to the client,
// with `allowed_client_headers` and Location.

interface Matcher {
  exact?: string
  prefix?: string
}
interface Patterns {
  patterns: Matcher[]
}
interface ExtAuthz {
  failure_mode_allow: boolean
  allowed_headers: Patterns
  http_service: {
    path_prefix: string
    authorization_response: Record<
      'allowed_upstream_headers' | 'allowed_client_headers' | 'allowed_client_headers_on_success',
      Patterns
    >
  }
}
interface Route {
  match: { prefix?: string; path?: string; path_separated_prefix?: string; safe_regex?: { regex: string } }
  direct_response?: { status: number }
  route?: { cluster: string }
  typed_per_filter_config?: object
}
interface Manager {
  http_filters: { name: string; typed_config: ExtAuthz }[]
  route_config: { virtual_hosts: { routes: Route[] }[] }
  early_header_mutation_extensions: { typed_config: { mutations: { remove: string }[] } }[]
  common_http_protocol_options: { headers_with_underscores_action: string }
}

function readText(path: string): string {
  return readFileSync(new URL(`../../examples/${path}`, import.meta.url), 'utf8')
}

function readManager(): Manager {
  const { static_resources } = parse(readText('envoy/envoy.yaml'), { merge: true })
  return static_resources.listeners[0].filter_chains[0].filters[0].typed_config
}

function matches({ patterns }: Patterns, name: string): boolean {
  return patterns.some(({ exact, prefix }) => (prefix === undefined ? name === exact : name.startsWith(prefix)))
}

function picked(headers: IncomingHttpHeaders, patterns: Patterns, ...always: string[]): IncomingHttpHeaders {
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => always.includes(name) || matches(patterns, name)),
  )
}

function fits({ match }: Route, path: string): boolean {
  const { prefix, path: exact, path_separated_prefix: separated, safe_regex } = match
  if (safe_regex) return new RegExp(`^(?:${safe_regex.regex.replace('(?i)', '')})$`, 'i').test(path)
  if (separated !== undefined) return path === separated || path.startsWith(`${separated}/`)
  return exact === undefined ? path.startsWith(prefix ?? '') : path === exact
}

async function exchange(origin: string, method: string, path: string, headers: IncomingHttpHeaders, body?: Buffer) {
  const { hostname, port } = new URL(origin)
  const outgoing = send({ hostname, port, method, path, headers, agent: false })
  outgoing.end(body)
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]
  return { status: answer.statusCode ?? 0, headers: answer.headers, body: await buffer(answer) }
}

async function startEnvoy(t: TestContext, clusters: Record<string, string>) {
  const manager = readManager()
  const authz = manager.http_filters[0]?.typed_config ?? assert.fail()
  const removed = manager.early_header_mutation_extensions.flatMap(({ typed_config }) =>
    typed_config.mutations.map(({ remove }) => remove),
  )
  const { authorization_response: lists, path_prefix } = authz.http_service
  const server = createServer(async (incoming, response) => {
    const { method = 'GET', url = '/' } = incoming
    const body = await buffer(incoming)
    const [path = ''] = url.split('?')
    const headers: IncomingHttpHeaders = Object.fromEntries(
      Object.entries(incoming.headers).filter(([name]) => !name.includes('_') && !removed.includes(name)),
    )
    headers['x-forwarded-for'] = '203.0.113.7'
    const found = manager.route_config.virtual_hosts[0]?.routes.find(one => fits(one, path)) ?? assert.fail()
    if (found.direct_response) return void response.writeHead(found.direct_response.status).end()
    const cluster = clusters[found.route?.cluster ?? ''] ?? assert.fail()
    let added: IncomingHttpHeaders = {}
    if (!found.typed_per_filter_config) {
      const check = picked(headers, authz.allowed_headers, 'host', 'authorization')
      check['content-length'] = '0'
      check['x-forwarded-for'] += ', 127.0.0.1'
      const answer = await exchange(clusters.menshen ?? '', method, path_prefix + url, check)
      if (answer.status !== 200) {
        const denied = picked(answer.headers, lists.allowed_client_headers, 'location', 'www-authenticate')
        const isError = answer.status >= 500
        return void response
          .writeHead(isError ? 403 : answer.status, isError ? {} : denied)
          .end(isError ? '' : answer.body)
      }
      Object.assign(headers, picked(answer.headers, lists.allowed_upstream_headers))
      for (const name of String(answer.headers['x-envoy-auth-headers-to-remove']).split(',')) delete headers[name]
      added = picked(answer.headers, lists.allowed_client_headers_on_success)
    }
    const answer = await exchange(cluster, method, url, headers, body)
    response.writeHead(answer.status, { ...answer.headers, ...added }).end(answer.body)
  })
  return `http://localhost:${(await listen(t, server)).port}`
}

test('behind an Envoy stub with the example, a user signs in, is named to the application, and signs out', async t => {
  // BASE_URL is Envoy's, whose port is known only when it listens.
  const clusters: Record<string, string> = {}
  const envoy = await startEnvoy(t, clusters)
  const scene = await setUp(t, { ...TRUSTED, env: { ...TRUSTED.env, BASE_URL: envoy, UPSTREAM: '' } })
  Object.assign(clusters, { menshen: scene.url.replace('localhost', '127.0.0.1'), application: scene.upstream.url })
  const user = createClient(envoy, scene.now)
  const lies = Object.fromEntries(
    IDENTITY.flatMap(name => [name, name.replaceAll('-', '_')]).map(name => [name, 'admin']),
  )

  const login = await user.get('/reports?x=1', { headers: PAGE })
  assert.equal(login.status, 302)
  assert.equal((await user.follow(login, { headers: PAGE })).status, 200)
  assert.equal(scene.upstream.received.length, 0)
  const back = await user.get(`/callback?code=${scene.provider.codeFor({ username: 'zhangsan' })}&state=abc_idp`, {
    headers: PAGE,
  })
  assert.equal(back.headers.location, '/reports?x=1')

  const page = await user.get('/reports?x=1', { headers: { ...PAGE, ...lies } })
  assert.deepEqual([page.text, page.headers['cache-control']], ['hello', 'no-store'])
  const { headers, target, lines } = scene.upstream.last()
  assert.equal(target, '/reports?x=1')
  assert.equal(headers['x-forwarded-user'], 'zhangsan')
  assert.ok(!lines.some(([, value]) => value === 'admin'), JSON.stringify(lines))
  assert.equal((await user.post('/forms', 'body', { headers: PAGE })).status, 403)
  assert.equal((await user.post('/reports', 'body')).text, 'hello')
  await createClient(envoy).get('/public', { headers: lies })
  assert.equal(scene.upstream.last().headers['x-forwarded-user'], '')
  assert.ok(!scene.upstream.last().lines.some(([, value]) => value === 'admin'))

  for (const path of ['authz/', 'authz/public', 'check', 'forward', '/authz/x'])
    assert.equal((await user.get(`/_menshen/${path}`)).status, 404, path)
  assert.match((await user.get('/_menshen/me')).text, /"username":\s*"zhangsan"/)
  await signOutAt(user, envoy)
  assert.equal((await user.get('/reports', { headers: PAGE })).status, 302)
  const entry = scene.lines.find(({ event }) => event === 'signed_in' || event === 'sign_in')
  assert.equal((entry?.fields as { address?: string } | undefined)?.address, '203.0.113.7')
})

test('behind an Envoy stub with the example, a key in X-Menshen-Key is accepted, and no key reaches the application', async t => {
  const clusters: Record<string, string> = {}
  const envoy = await startEnvoy(t, clusters)
  const key = newKey()
  const scene = await setUp(t, {
    env: { ...TRUSTED.env, BASE_URL: envoy, UPSTREAM: '' },
    config: {
      machines: [{ name: 'backup', keySha256: keySha256(key) }],
      rules: [
        { path: '/api', users: ['machine:backup'], keys: true },
        { path: '/public', public: true },
      ],
    },
  })
  Object.assign(clusters, { menshen: scene.url.replace('localhost', '127.0.0.1'), application: scene.upstream.url })
  const own = { 'x-menshen-key': key }
  const bearer = { authorization: `Bearer ${key}` }
  for (const [path, sent, kept] of [
    ['/api', own, undefined],
    ['/api', bearer, undefined],
    ['/api', { ...own, authorization: 'Basic dTpw' }, 'Basic dTpw'],
    ['/public', own, undefined],
    ['/public', bearer, undefined],
  ] as const) {
    const { status } = await createClient(envoy).get(path, { headers: sent })
    assert.equal(status, 200, `${path} ${Object.keys(sent)}`)
    const { headers } = scene.upstream.last()
    assert.deepEqual([headers.authorization, headers['x-menshen-key']], [kept, undefined], path)
    if (path === '/api') assert.equal(headers['x-forwarded-user'], 'machine:backup')
  }
})

async function signOutAt(user: Client, origin: string): Promise<void> {
  await user.post('/logout', {}, { headers: { origin, 'sec-fetch-site': 'same-origin' } })
}

test('the Envoy example admits no request without a check result, and checks all paths except Menshen’s own', () => {
  const manager = readManager()
  const authz = manager.http_filters[0]?.typed_config ?? assert.fail()
  assert.equal(authz.failure_mode_allow, false)
  assert.equal(authz.http_service.path_prefix, AUTHZ)
  assert.equal(manager.common_http_protocol_options.headers_with_underscores_action, 'DROP_HEADER')
  const { routes } = manager.route_config.virtual_hosts[0] ?? assert.fail()
  for (const route of routes)
    if (route.typed_per_filter_config) assert.notEqual(route.route?.cluster, 'application', JSON.stringify(route.match))
  for (const path of ['/', '/loginx', '/login/x', '/_menshen', '/callbackx', '/logout/'])
    assert.equal(routes.find(route => fits(route, path))?.route?.cluster, 'application', path)
  for (const path of ['/login', '/callback', '/callback/one', '/logout', '/_menshen/me', '/_menshen/assets/session.js'])
    assert.equal(routes.find(route => fits(route, path))?.route?.cluster, 'menshen', path)
})

test('the Envoy, Envoy Gateway and Istio examples use Menshen’s check path and header names', () => {
  const [eg, istio] = ['envoy-gateway/menshen.yaml', 'istio/menshen.yaml'].map(path =>
    parseAllDocuments(readText(path)).map(document => document.toJS()),
  )
  const { http_filters } = readManager()
  const { allowed_headers, http_service } = http_filters[0]?.typed_config ?? assert.fail()
  const exact = ({ patterns }: Patterns) => patterns.map(({ exact, prefix }) => exact ?? `${prefix}*`).sort()
  const { extAuth } = eg?.[0].spec ?? assert.fail()
  const provider = istio?.[0].spec.meshConfig.extensionProviders[0].envoyExtAuthzHttp ?? assert.fail()
  const asked = exact(allowed_headers)
  assert.deepEqual(provider.includeRequestHeadersInCheck.toSorted(), asked)
  assert.deepEqual(
    extAuth.headersToExtAuth
      .filter((name: string) => !name.startsWith('sec-fetch-'))
      .concat('sec-fetch-*')
      .sort(),
    asked,
  )
  const { authorization_response: lists } = http_service
  for (const names of [
    exact(lists.allowed_upstream_headers),
    extAuth.http.headersToBackend,
    provider.headersToUpstreamOnAllow,
    eg?.[1].spec.headers.earlyRequestHeaders.remove,
  ])
    assert.deepEqual(names.toSorted(), IDENTITY.toSorted())
  assert.deepEqual(provider.headersToDownstreamOnDeny.toSorted(), exact(lists.allowed_client_headers))
  assert.deepEqual(provider.headersToDownstreamOnAllow.toSorted(), ['cache-control', 'set-cookie'])
  assert.deepEqual(exact(lists.allowed_client_headers_on_success), ['cache-control', 'set-cookie'])
  assert.deepEqual([extAuth.http.path, provider.pathPrefix], [AUTHZ, AUTHZ])
  assert.deepEqual([extAuth.failOpen, provider.failOpen], [false, false])
  const { notPaths } = istio?.[1].spec.rules[0].to[0].operation ?? assert.fail()
  const unasked: { prefix?: string; exact?: string }[] = istio?.[2].spec.http[1].match.map(
    ({ uri }: { uri: object }) => uri,
  )
  assert.deepEqual(
    notPaths.toSorted(),
    unasked.map(({ prefix, exact }) => exact ?? `${prefix}*`).sort(),
    'what is not asked about goes to Menshen',
  )
})

test('the NGINX Gateway Fabric example sends all requests to Menshen except those to the check paths of proxies', () => {
  const [route] = parseAllDocuments(readText('nginx-gateway-fabric/menshen.yaml')).map(document => document.toJS())
  const [closed, all] = route.spec.rules
  assert.deepEqual(
    closed.matches.map(({ path }: { path: { value: string } }) => path.value),
    [AUTHZ, OWN_PATHS.check, OWN_PATHS.forward],
  )
  assert.equal(closed.backendRefs, undefined)
  assert.deepEqual(all, {
    matches: [{ path: { type: 'PathPrefix', value: '/' } }],
    backendRefs: [{ name: 'menshen', port: 80 }],
  })
})
