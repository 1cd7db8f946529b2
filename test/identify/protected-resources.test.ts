// Protected resources (RFC 9728): clients without a token learn where to get one, and a token for one resource is for that one.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type TestContext, test } from 'node:test'
import { type WebSocket as Socket, WebSocket, WebSocketServer } from 'ws'
import type { Config } from '../../src/index.ts'
import { createClient, type Request } from '../kit/client.ts'
import { type OidcServer, startOidcServer } from '../kit/oidc-server.ts'
import { openGateway, setUpOidc } from '../kit/set-up.ts'
import { undocumentedFields } from '../kit/test-log.ts'
import { startUpstream } from '../kit/upstream.ts'
import { raw, request as wireRequest } from '../proxy/raw.ts'

const AT = { typ: 'at+jwt' }
const WELL_KNOWN = '/.well-known/oauth-protected-resource'
const HTML = 'text/html,application/xhtml+xml,*/*;q=0.8'
const STREAM = 'text/event-stream'
const RULES: NonNullable<Config['rules']> = [
  { path: '/mcp', roles: ['*'], bearer: true, scopes: ['mcp:read', 'mcp:write'] },
  { path: '/mcp', methods: ['DELETE'], roles: ['*'], bearer: true, scopes: ['mcp:admin', 'mcp:read'] },
  { path: '/mcp/admin', roles: ['*'], bearer: true },
  { path: '/named', roles: ['*'], bearer: true, audience: 'https://api.example' },
  { path: '/数据/a "b', roles: ['*'], bearer: true },
  { path: '/mcp/human', roles: ['*'] },
  { path: '/trial', roles: ['*'], bearer: true, shadow: true },
]

/** A gateway with metadata of protected resources; `ask` is a client that has neither cookies nor a token. */
async function setUpProtectedResources(
  t: TestContext,
  config: Config = { rules: RULES },
  env: Record<string, string> = {},
) {
  const scene = await setUpOidc(t, { config, env: { TRUSTED_PROXIES: '127.0.0.1', ...env } })
  const ask = (asked: string | Request, headers: Record<string, string> = {}) =>
    createClient(scene.url).request(
      typeof asked === 'string' ? { path: asked, headers } : { ...asked, headers: { ...asked.headers, ...headers } },
    )
  return { ...scene, ask }
}

const machine = (provider: OidcServer, claims: object) =>
  provider.sign({ sub: 'robot-1', client_id: 'robot', scope: 'mcp:read mcp:write', ...claims }, AT)

test('rules with bearer on a single host', async t => {
  const { url, provider, upstream, ask, menshen, lines } = await setUpProtectedResources(t)
  const ofMcp = {
    resource: `${url}/mcp`,
    authorization_servers: [provider.issuer],
    scopes_supported: ['mcp:read', 'mcp:write', 'mcp:admin'],
    bearer_methods_supported: ['header'],
  }
  const ofOther = (path: string) => ({
    resource: url + path,
    authorization_servers: [provider.issuer],
    bearer_methods_supported: ['header'],
  })

  await t.test('each path of a bearer rule has its metadata, and the host has that of the first rule', async () => {
    for (const [path, expected] of [
      ['', ofMcp],
      ['/', ofMcp],
      ['?x=/named', ofMcp],
      ['/mcp', ofMcp],
      ['/mcp/admin', ofOther('/mcp/admin')],
      ['/named', ofOther('/named')],
      ['/%E6%95%B0%E6%8D%AE/a%20%22b', ofOther('/%E6%95%B0%E6%8D%AE/a%20%22b')],
      ['/%e6%95%b0%e6%8d%ae/a%20%22b', ofOther('/%E6%95%B0%E6%8D%AE/a%20%22b')],
    ] as const) {
      const { status, headers, ...answer } = await ask(WELL_KNOWN + path)
      assert.equal(status, 200, path)
      assert.deepEqual(answer.json(), expected, path)
      assert.equal(headers['content-type'], 'application/json')
      assert.equal(headers['access-control-allow-origin'], '*')
      assert.deepEqual(answer.setCookies, [])
    }
    assert.equal(provider.callsTo('/.well-known/openid-configuration').length, 1)
    assert.equal(upstream.received.length, 0)
  })

  await t.test(
    'the metadata of a path without a bearer rule is a JSON 404, the same for every path but for its requestId',
    async () => {
      const messages = new Set<unknown>()
      for (const path of [
        '/mcp/',
        '/mcp/x',
        '/MCP',
        '/%6Dcp',
        '/mcp%2Fadmin',
        '/mcp/human',
        '/trial',
        '/named;x',
        '/%22,scope=%22x%22',
        `/${'a'.repeat(3000)}`,
        '/_menshen/console',
      ]) {
        const answer = await ask(WELL_KNOWN + path, { accept: 'application/json' })
        assert.equal(answer.status, 404, path)
        assert.equal(answer.headers['access-control-allow-origin'], '*', 'a page of another site can read that')
        const { message, requestId, ...rest } = answer.json<Record<string, string>>()
        assert.deepEqual(rest, { error: 'not_found' }, path)
        messages.add(message)
        assert.equal(requestId, answer.headers['x-request-id'])
        assert.match(String(requestId), /^\w{12}$/)
      }
      assert.equal(messages.size, 1, 'nothing of the path is repeated')
      assert.equal((await ask(`${WELL_KNOWN}/../mcp`)).status, 400)
      assert.equal(upstream.received.length, 0)
      assert.equal((await ask(`${WELL_KNOWN}s`)).status, 302, 'another path is judged by the rules')
    },
  )

  await t.test(
    'CORS lets other sites read the metadata, also with MCP headers, and write methods get 405',
    async () => {
      const origin = { origin: 'https://inspector.example' }
      for (const path of ['', '/mcp', '/nothing']) {
        const preflight = await ask(
          { method: 'OPTIONS', path: WELL_KNOWN + path },
          {
            ...origin,
            'access-control-request-method': 'GET',
            'access-control-request-headers': 'authorization, content-type, mcp-protocol-version',
          },
        )
        assert.equal(preflight.status, 204)
        assert.equal(preflight.headers['access-control-allow-origin'], '*')
        assert.equal(preflight.headers['access-control-allow-credentials'], undefined)
        assert.equal(
          preflight.headers['access-control-allow-headers'],
          'MCP-Protocol-Version, Authorization, Content-Type',
        )
        assert.match(preflight.headers['access-control-allow-methods'] ?? '', /\bGET\b/)
      }
      const head = await ask({ method: 'HEAD', path: `${WELL_KNOWN}/mcp` }, origin)
      assert.deepEqual([head.status, head.text], [200, ''])
      for (const method of ['POST', 'PUT', 'DELETE']) {
        const answer = await ask({ method, path: `${WELL_KNOWN}/mcp` }, origin)
        assert.deepEqual([answer.status, answer.headers.allow], [405, 'GET, HEAD, OPTIONS'])
      }
    },
  )

  const metadata = (path: string) => `resource_metadata="${url}${WELL_KNOWN}${path}"`
  const ofVisitor = `Bearer ${metadata('/mcp')}, scope="mcp:read mcp:write"`
  const ofFailed = `Bearer error="invalid_token", ${metadata('/mcp')}, scope="mcp:read mcp:write"`

  await t.test(
    'a program gets 401 with the metadata URL and the scopes, and a browser is redirected to /login',
    async () => {
      const rows: [asked: Request, expected: string | undefined][] = [
        [{ method: 'POST', path: '/mcp', headers: { accept: `application/json, ${STREAM}` } }, ofVisitor],
        [{ method: 'POST', path: '/mcp' }, ofVisitor],
        [{ path: '/mcp', headers: { accept: STREAM } }, ofVisitor],
        [{ path: '/mcp/x?y="', headers: { accept: 'application/json' } }, ofVisitor],
        [{ path: '/mcp/x%22,%20scope=%22y', headers: { accept: STREAM, host: 'evil"host.example' } }, ofVisitor],
        [{ path: '/mcp', headers: { authorization: 'Basic eDp5' } }, ofVisitor],
        [{ path: '/mcp', headers: { authorization: 'Bearer made-up' } }, ofFailed],
        [{ path: '/mcp', headers: { authorization: 'Bearer "quoted" text' } }, ofFailed],
        [{ path: '/mcp', headers: { authorization: 'Bearer' } }, ofFailed],
        [{ path: '/mcp', headers: { accept: HTML, authorization: 'Bearer made-up' } }, ofFailed],
        [{ method: 'DELETE', path: '/mcp' }, `Bearer ${metadata('/mcp')}, scope="mcp:admin mcp:read"`],
        [{ method: 'POST', path: '/mcp/admin/x' }, `Bearer ${metadata('/mcp/admin')}`],
        [{ method: 'POST', path: '/mcp/Admin' }, ofVisitor],
        [
          { method: 'POST', path: '/%E6%95%B0%E6%8D%AE/a%20%22b/c' },
          `Bearer ${metadata('/%E6%95%B0%E6%8D%AE/a%20%22b')}`,
        ],
        [{ method: 'POST', path: '/mcp/human' }, 'Cookie realm="menshen"'],
        [{ path: '/mcp/human', headers: { accept: STREAM } }, 'Cookie realm="menshen"'],
        [{ method: 'POST', path: '/mcp', headers: { accept: HTML } }, ofVisitor],
        [{ path: '/mcp', headers: { accept: HTML } }, undefined],
        [{ path: '/mcp', headers: { accept: `${STREAM}, text/html` } }, undefined],
        [
          { path: '/mcp', headers: { accept: HTML, 'sec-fetch-dest': 'document', 'sec-fetch-mode': 'navigate' } },
          undefined,
        ],
      ]
      for (const [asked, expected] of rows) {
        const answer = await ask(asked)
        const told = JSON.stringify(asked)
        assert.equal(answer.status, expected === undefined ? 302 : 401, told)
        assert.equal(answer.headers['www-authenticate'], expected, told)
        if (expected === undefined) assert.match(answer.headers.location ?? '', /^\/login/)
      }
      assert.equal(upstream.received.length, 0)
    },
  )

  await t.test('forward-auth, WebSockets and the library return the same challenges', async () => {
    const bad = { authorization: 'Bearer made-up' }
    for (const [headers, expected] of [
      [{ accept: STREAM }, ofVisitor],
      [bad, ofFailed],
    ] as const) {
      const answers = await Promise.all([
        ask('/_menshen/check', { 'x-original-uri': '/mcp/x', ...headers }),
        ask('/_menshen/forward', { 'x-forwarded-uri': '/mcp/x', ...headers }),
        ask('/_menshen/authz/mcp/x', headers),
      ])
      for (const { status, headers } of answers)
        assert.deepEqual([status, headers['www-authenticate']], [401, expected])
      const { answer } = await menshen.admit(new Request(`${url}/mcp/x`, { headers }))
      assert.deepEqual([answer?.status, answer?.headers.get('www-authenticate')], [401, expected])
    }
    const upgrade = [
      'connection: Upgrade',
      'upgrade: websocket',
      'sec-websocket-version: 13',
      'sec-websocket-key: eA==',
    ]
    assert.ok(
      (await raw(url, wireRequest('GET /mcp HTTP/1.1', ...upgrade))).includes(`www-authenticate: ${ofVisitor}\r\n`),
    )

    const asOwn = await ask(`/_menshen/authz${WELL_KNOWN}/mcp`)
    assert.equal(asOwn.status, 404, 'the proxy has to send it to Menshen without asking')
    assert.deepEqual(await (await menshen.fetch(new Request(`${url}${WELL_KNOWN}/mcp`)))?.json(), ofMcp)
    assert.equal((await menshen.fetch(new Request(`${url}${WELL_KNOWN}/nothing`)))?.status, 404)
    assert.equal(await menshen.fetch(new Request(`${url}/mcp`)), undefined)
  })

  await t.test(
    'a token for one resource is refused at resources below and beside it, and its audience must match exactly',
    async () => {
      for (const [aud, path, status] of [
        [`${url}/mcp`, '/mcp', 200],
        [`${url}/mcp`, '/mcp/tools', 200],
        [['x', `${url}/mcp`], '/mcp', 200],
        [provider.clientId, '/mcp', 200],
        [url, '/mcp', 200],
        [`${url}/`, '/mcp', 401],
        [`${url}/mcp/`, '/mcp', 401],
        [`${url}/MCP`, '/mcp', 401],
        [`${url}/mcp?x`, '/mcp', 401],
        [`${url.replace('http', 'https')}/mcp`, '/mcp', 401],
        [`${url}/mcp`, '/mcp/admin', 401],
        [`${url}/mcp`, '/mcp/Admin', 401],
        [[`${url}/mcp`, `${url}/mcp/admin`], '/mcp/Admin', 200],
        [`${url}/mcp/admin`, '/mcp/admin/x', 200],
        [`${url}/mcp/admin`, '/mcp', 401],
        [`${url}/mcp`, '/mcp/human', 401],
        [`${url}/mcp`, '/named', 401],
        [`${url}/named`, '/named', 200],
        ['https://api.example', '/named', 200],
        [url, '/named', 401],
        [provider.clientId, '/named', 401],
        [`${url}/%E6%95%B0%E6%8D%AE/a%20%22b`, '/%E6%95%B0%E6%8D%AE/a%20%22b', 200],
      ] as const) {
        const token = await machine(provider, { aud })
        const answer = await ask(path, { authorization: `Bearer ${token}` })
        assert.equal(answer.status, status, `${aud} at ${path}`)
      }
      provider.introspect = token => ({ active: true, sub: 'u', scope: 'mcp:read mcp:write', aud: `${url}/${token}` })
      assert.equal((await ask('/mcp', { authorization: 'Bearer mcp' })).status, 200)
      assert.equal((await ask('/mcp', { authorization: 'Bearer named' })).status, 401)
      assert.equal((await ask('/named', { authorization: 'Bearer named' })).status, 200)
    },
  )

  await t.test(
    'a token that lacks a scope gets 403 with the scopes and the metadata URL, and the log names the scopes',
    async () => {
      const token = await machine(provider, { scope: 'mcp:read' })
      const answer = await ask({ method: 'POST', path: '/mcp' }, { authorization: `Bearer ${token}` })
      assert.equal(answer.status, 403)
      assert.equal(
        answer.headers['www-authenticate'],
        `Bearer error="insufficient_scope", scope="mcp:read mcp:write", ${metadata('/mcp')}`,
      )
      const told = lines.find(({ event }) => event === 'refused')
      assert.partialDeepStrictEqual(told?.fields, { reason: 'insufficient_scope', scope: 'mcp:read mcp:write' })
      assert.deepEqual(undocumentedFields(lines), [])
      assert.ok(!JSON.stringify(lines).includes(token))
    },
  )

  await t.test('many requests for metadata cause no call to the provider', async () => {
    const before = provider.calls.length
    const asked = new Request(`${url}${WELL_KNOWN}/mcp`)
    for (let n = 0; n < 1000; n++) assert.equal((await menshen.fetch(asked))?.status, 200)
    assert.equal(provider.calls.length, before)
  })
})

test('a bearer rule for / makes the whole host a resource, with or without a trailing slash in the audience', async t => {
  const { url, provider, ask } = await setUpProtectedResources(t, {
    rules: [
      { path: '/x', roles: ['*'], bearer: true, audience: 'x' },
      { path: '/', roles: ['*'], bearer: true, audience: 'host', scopes: ['all'] },
    ],
  })
  for (const path of ['', '/'])
    assert.partialDeepStrictEqual((await ask(WELL_KNOWN + path)).json(), { resource: url, scopes_supported: ['all'] })
  const visitor = await ask({ method: 'POST', path: '/anything' })
  assert.equal(visitor.headers['www-authenticate'], `Bearer resource_metadata="${url}${WELL_KNOWN}", scope="all"`)
  assert.equal((await ask({ method: 'POST', path: '/_menshen/me' })).headers['www-authenticate'], undefined)
  assert.equal((await ask('/_menshen/me')).headers['www-authenticate'], 'Cookie realm="menshen"')
  for (const [aud, path, status] of [
    [url, '/y', 200],
    [`${url}/`, '/y', 200],
    [`${url}//`, '/y', 401],
    [url, '/x', 401],
    [`${url}/`, '/x', 401],
    [`${url}/x`, '/y', 401],
  ] as const) {
    const authorization = `Bearer ${await machine(provider, { aud, scope: 'all' })}`
    assert.equal((await ask(path, { authorization })).status, status, `${aud} at ${path}`)
  }
})

test('without bearer rules the metadata paths go to the application and follow its rules', async t => {
  const config = {
    rules: [
      { path: WELL_KNOWN, public: true as const },
      { path: '/', roles: ['*' as const] },
    ],
  }
  const { ask, upstream, menshen, url } = await setUpProtectedResources(t, config)
  assert.equal((await ask(`${WELL_KNOWN}/mcp`)).text, 'hello')
  assert.equal(upstream.last().target, `${WELL_KNOWN}/mcp`)
  assert.equal(await menshen.fetch(new Request(url + WELL_KNOWN)), undefined)
  const closed = await setUpProtectedResources(t, {})
  assert.equal((await closed.ask(WELL_KNOWN)).status, 302)
  assert.equal((await closed.ask({ method: 'POST', path: '/x' })).headers['www-authenticate'], 'Cookie realm="menshen"')
})

test('each of several hosts has its own resources, and a token for one host is refused at another', async t => {
  const wiki = await startUpstream(t)
  const sockets = new WebSocketServer({ server: wiki.server })
  t.after(() => sockets.close())
  const bearer: NonNullable<Config['rules']> = [{ path: '/', roles: ['*'], bearer: true }]
  const stage = await setUpProtectedResources(
    t,
    {
      rules: [...bearer, { path: '/mcp', roles: ['*'], bearer: true }],
      hosts: { 'wiki.test': { upstream: wiki.url, rules: bearer }, 'plain.test': { upstream: wiki.url } },
    },
    { BASE_URL: 'http://portal.test' },
  )
  const { provider, ask, url } = stage
  const at = (host: string, path: string, headers: Record<string, string> = {}) => ask(path, { host, ...headers })
  const resourceAt = async (host: string, path = '') =>
    (await at(host, WELL_KNOWN + path)).json<{ resource: string }>().resource
  assert.equal(await resourceAt('portal.test'), 'http://portal.test')
  assert.equal(await resourceAt('portal.test', '/mcp'), 'http://portal.test/mcp')
  assert.equal(await resourceAt('wiki.test'), 'http://wiki.test')
  assert.equal((await at('wiki.test', `${WELL_KNOWN}/mcp`)).status, 404)
  assert.equal((await at('unknown.test', WELL_KNOWN)).status, 421)
  assert.match((await at('plain.test', WELL_KNOWN)).headers.location ?? '', /^http:\/\/portal\.test\/_menshen\/enter/)
  const visitor = await at('wiki.test', '/page', { accept: STREAM })
  assert.equal(visitor.headers['www-authenticate'], `Bearer resource_metadata="http://wiki.test${WELL_KNOWN}"`)
  const forHost = { 'x-original-host': 'wiki.test', 'x-original-uri': '/page' }
  const checked = await at('portal.test', '/_menshen/check', forHost)
  assert.equal(checked.headers['www-authenticate'], `Bearer resource_metadata="http://wiki.test${WELL_KNOWN}"`)
  for (const [aud, host, status] of [
    ['http://wiki.test', 'wiki.test', 200],
    ['http://portal.test', 'portal.test', 200],
    ['http://portal.test', 'wiki.test', 401],
    ['http://wiki.test', 'portal.test', 401],
    ['http://portal.test/mcp', 'wiki.test', 401],
  ] as const) {
    const authorization = `Bearer ${await machine(provider, { aud })}`
    assert.equal((await at(host, '/page', { authorization })).status, status, `${aud} at ${host}`)
  }

  const open = async (seconds: number): Promise<Socket> => {
    const exp = Math.floor(stage.now() / 1000) + seconds
    const authorization = `Bearer ${await machine(provider, { aud: 'http://wiki.test', exp })}`
    const socket = new WebSocket(url.replace('http', 'ws'), { headers: { host: 'wiki.test', authorization } })
    t.after(() => socket.terminate())
    await once(socket, 'open')
    return socket
  }
  const lasting = await open(900)
  // All streams are judged when one ends. What is left of the first time is seen before the second.
  for (let n = 0; n < 2; n++) {
    const closed = once(await open(100), 'close')
    stage.passSeconds(200)
    await closed
  }
  assert.equal(lasting.readyState, WebSocket.OPEN, 'judged again by the address of its host')
})

test('authorization_servers lists the issuers of all providers whose tokens are accepted, exactly as they state them', async t => {
  const [one, other] = [await startOidcServer(t), await startOidcServer(t)]
  one.intercept = ({ path }, response) => {
    if (path !== '/.well-known/openid-configuration') return false
    const document = {
      issuer: `${one.issuer}/`,
      authorization_endpoint: `${one.issuer}/authorize`,
      token_endpoint: `${one.issuer}/token`,
      jwks_uri: `${one.issuer}/jwks`,
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(document))
    return true
  }
  other.isAway = true
  const client = { clientId: 'c', clientSecret: 's' }
  const rules: Config['rules'] = [{ path: '/mcp', roles: ['*'], bearer: true }]
  const gateway = await openGateway(
    t,
    {},
    {
      config: {
        providers: {
          one: { preset: 'oidc', vars: { auth_url: one.issuer }, ...client },
          other: { preset: 'oidc', vars: { auth_url: other.issuer }, ...client },
          hub: { preset: 'github', ...client },
        },
        rules,
      },
    },
  )
  const servers = async (of = gateway) =>
    (await of.visitor().get(WELL_KNOWN)).json<{ authorization_servers?: string[] }>().authorization_servers
  assert.deepEqual(await servers(), [`${one.issuer}/`, other.issuer], 'GitHub’s tokens cannot be judged')

  const opaque = await openGateway(
    t,
    { CLIENT_ID: 'c', CLIENT_SECRET: 'x'.repeat(40) },
    {
      config: {
        provider: {
          preset: 'oauth2',
          authorizationUrl: `${one.issuer}/authorize`,
          tokenUrl: `${one.issuer}/token`,
          userInfoUrl: `${one.issuer}/userinfo`,
          introspectionUrl: `${one.issuer}/introspect`,
        },
        rules,
      } as Config,
    },
  )
  assert.equal(await servers(opaque), undefined, 'nothing is said where no issuer is known')
})
