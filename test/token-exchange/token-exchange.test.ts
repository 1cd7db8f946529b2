// A token for each application, in exchange for the user's access token: never the wider one.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import test, { suite, type TestContext } from 'node:test'
import { WebSocketServer } from 'ws'
import { type Config, MenshenError, readSettings } from '../../src/index.ts'
import { planProviders } from '../../src/provider/providers.ts'
import { type Client, cookieOf, createClient } from '../kit/client.ts'
import { type OidcCall, type OidcServer, signedInAt, startOidcServer } from '../kit/oidc-server.ts'
import { openGateway, setUpOidc } from '../kit/set-up.ts'
import { createBrowser, PORTAL, WIKI } from '../kit/several-hosts.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'
import { startUpstream, type Upstream } from '../kit/upstream.ts'
import { dial, refusal } from '../kit/websocket.ts'

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'
const CANARY = 'CANARY'

/** Two applications with a token each, one with the user's own, and one without any. */
async function setUpExchange(t: TestContext, more: Config = {}, env: Record<string, string> = {}) {
  const app = await startUpstream(t)
  const config: Config = {
    rules: [
      { path: '/one/public', public: true },
      { path: '/one/machines', roles: ['*'], bearer: true },
    ],
    upstreams: {
      '/one': { url: app.url, accessToken: { audience: 'one', scope: 'read write' } },
      '/two': { url: app.url, accessToken: { audience: 'two', resource: 'https://two.example/api' } },
      '/own': { url: app.url, accessToken: true },
      '/none': app.url,
    },
    ...more,
  }
  const scene = await setUpOidc(t, { env, config, application: false })
  const user = (sub = 'sub-1') => scene.user({ sub, preferred_username: `user-${sub}` })
  return { ...scene, app, user }
}

function exchangesOf(provider: OidcServer): OidcCall[] {
  return provider.callsTo('/token').filter(({ form }) => form.has('subject_token') || form.has('assertion'))
}

async function tokenAt(client: Client, app: Upstream, path: string): Promise<string | undefined> {
  assert.equal((await client.get(path)).status, 200)
  return app.last().headers.authorization
}

suite('the token of an upstream', () => {
  test('each application gets its own token in exchange for the access token of the user, and it is cached', async t => {
    const { provider, app, user } = await setUpExchange(t)
    const client = await user()
    const own = await tokenAt(client, app, '/own')
    const one = await tokenAt(client, app, '/one')
    const two = await tokenAt(client, app, '/two')
    assert.match(String(own), /^Bearer at-CANARY-/)
    assert.match(String(one), /^Bearer xt-CANARY-sub-1-one-/)
    assert.match(String(two), /^Bearer xt-CANARY-sub-1-two-/)
    assert.equal(await tokenAt(client, app, '/none'), undefined)
    const [first, second] = exchangesOf(provider)
    assert.deepEqual(Object.fromEntries(first?.form ?? []), {
      grant_type: EXCHANGE,
      subject_token: own?.slice('Bearer '.length),
      subject_token_type: ACCESS_TOKEN,
      requested_token_type: ACCESS_TOKEN,
      audience: 'one',
      scope: 'read write',
    })
    assert.match(first?.authorization ?? '', /^Basic /, 'the client proves who it is as for every token request')
    assert.equal(second?.form.get('resource'), 'https://two.example/api')
    assert.equal(second?.form.get('scope'), null)
    assert.equal(await tokenAt(client, app, '/one'), one)
    assert.equal(exchangesOf(provider).length, 2, 'the token is cached with the session')
  })

  test('an exchanged token is used until 30 s before it expires, or for 30 s if its expiry is unknown', async t => {
    const { provider, app, user, passSeconds } = await setUpExchange(t)
    const client = await user()
    const first = await tokenAt(client, app, '/one')
    passSeconds(569)
    assert.equal(await tokenAt(client, app, '/one'), first)
    passSeconds(1)
    const second = await tokenAt(client, app, '/one')
    assert.notEqual(second, first)
    provider.exchanged = { expires_in: undefined }
    const unknown = await tokenAt(client, app, '/two')
    passSeconds(29)
    assert.equal(await tokenAt(client, app, '/two'), unknown)
    passSeconds(1)
    assert.notEqual(await tokenAt(client, app, '/two'), unknown)
  })

  test('after a refresh the new access token is exchanged', async t => {
    const { provider, app, user, passSeconds } = await setUpExchange(t)
    provider.exchanged = { expires_in: 100_000 }
    const client = await user()
    const first = await tokenAt(client, app, '/one')
    passSeconds(3500)
    const second = await tokenAt(client, app, '/one')
    assert.notEqual(second, first)
    const [before, after] = exchangesOf(provider).map(({ form }) => form.get('subject_token'))
    assert.notEqual(before, after)
    assert.equal(`Bearer ${after}`, await tokenAt(client, app, '/own'))
  })

  test("a user never gets another user's token, and after a sign-out the token is not used", async t => {
    const { provider, app, user, url } = await setUpExchange(t)
    const client = await user('sub-1')
    const other = await user('sub-2')
    assert.match(String(await tokenAt(client, app, '/one')), /sub-1/)
    assert.match(String(await tokenAt(other, app, '/one')), /sub-2/)
    assert.match(String(await tokenAt(client, app, '/one')), /sub-1/)
    const cookie = cookieOf(client)
    await client.post('/logout')
    const before = app.received.length
    assert.notEqual((await createClient(url).get('/one', { headers: { cookie } })).status, 200)
    assert.equal(app.received.length, before)
    assert.equal(exchangesOf(provider).length, 2)
  })

  for (const path of ['/logout', '/_menshen/sign-out-everywhere'])
    test(`${path} revokes the exchanged tokens of its session, including those from before a refresh, and no others`, async t => {
      const { provider, app, user, url, passSeconds } = await setUpExchange(t, {}, { REVOKE: 'always' })
      provider.expiresIn = 400
      provider.exchanged = { expires_in: 3600 }
      const client = await user('sub-1')
      const other = await user('sub-2')
      const theirs = await tokenAt(other, app, '/one')
      const mine = [await tokenAt(client, app, '/one'), await tokenAt(client, app, '/two')]
      passSeconds(300)
      const fresh = await tokenAt(client, app, '/one')
      assert.ok(!mine.includes(fresh), 'the session was refreshed')
      await client.post(path, {}, { headers: { origin: url } })
      const revoked = () => provider.callsTo('/revoke').map(({ form }) => `Bearer ${form.get('token')}`)
      const expected = new Set([...mine, fresh].map(String))
      await until(() => [...expected].every(token => revoked().includes(token)))
      // With the refresh token of the session.
      assert.equal(revoked().length, expected.size + 1)
      assert.ok(!revoked().includes(String(theirs)))
      const [{ authorization } = { authorization: '' }] = provider.callsTo('/revoke')
      assert.match(authorization, /^Basic /)
    })

  test('without REVOKE a sign-out revokes no exchanged token', async t => {
    const { provider, app, user, close } = await setUpExchange(t)
    const client = await user()
    await tokenAt(client, app, '/one')
    await client.post('/logout')
    await close()
    assert.deepEqual(provider.callsTo('/revoke'), [])
  })

  test('a sign-out does not wait for the revocation of exchanged tokens, but a shutdown does', async t => {
    const { provider, app, user, lines, close } = await setUpExchange(t, {}, { REVOKE: 'always' })
    const client = await user()
    await tokenAt(client, app, '/one')
    const held = Promise.withResolvers<ServerResponse>()
    provider.intercept = ({ path, form }, response) => {
      if (path !== '/revoke' || !form.get('token')?.startsWith('xt-')) return false
      held.resolve(response)
      return true
    }
    assert.equal((await client.post('/logout')).status, 303)
    const response = await held.promise
    const closed = close()
    response.writeHead(503, { 'content-type': 'application/json' }).end('{"error":"xt-CANARY"}')
    await closed
    const told = lines.filter(({ event }) => event === 'provider_not_told')
    assert.deepEqual(
      told.map(({ fields }) => fields.user),
      ['user-sub-1'],
    )
    assert.doesNotMatch(JSON.stringify(told), /xt-CANARY-/)
  })

  test('parallel requests of a session cause one exchange', async t => {
    const { provider, app, user } = await setUpExchange(t)
    const client = await user()
    await Promise.all([1, 2, 3, 4, 5].map(() => client.get('/one')))
    assert.equal(exchangesOf(provider).length, 1)
    assert.equal(new Set(app.received.map(({ headers }) => headers.authorization)).size, 1)
  })

  test('on a public page a made-up token is removed, and only a signed-in user has an exchanged token', async t => {
    const { provider, app, client, user } = await setUpExchange(t)
    const headers = { authorization: 'Bearer made-up' }
    assert.equal((await client.get('/one/public', { headers })).status, 200)
    assert.equal(app.last().headers.authorization, undefined)
    assert.equal(exchangesOf(provider).length, 0)
    const signedIn = await user()
    await signedIn.get('/one/public', { headers })
    assert.match(String(app.last().headers.authorization), /^Bearer xt-CANARY-sub-1-one-/)
  })

  test('the token of a machine is exchanged and never forwarded', async t => {
    const { provider, app, url } = await setUpExchange(t)
    const sign = (jti: string) =>
      provider.sign({ sub: 'robot', client_id: 'robot', scope: 'read', jti }, { typ: 'at+jwt' })
    const [unknown, known] = [await sign('1'), await sign('2')]
    const bring = (token: string) =>
      createClient(url).get('/one/machines', { headers: { authorization: `Bearer ${token}` } })
    assert.equal((await bring(unknown)).status, 502, 'the provider does not exchange this one')
    assert.equal(app.received.length, 0)
    provider.intercept = ({ form }, response) =>
      form.get('subject_token') === known &&
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ access_token: 'xt-robot', issued_token_type: ACCESS_TOKEN, token_type: 'Bearer' }))
    for (let n = 0; n < 2; n++) assert.equal((await bring(known)).status, 200)
    assert.equal(app.last().headers.authorization, 'Bearer xt-robot')
    assert.equal(exchangesOf(provider).length, 2)
  })

  test('exchange "entra" uses the on-behalf-of flow', async t => {
    const app = await startUpstream(t)
    const { provider, user } = await setUpExchange(t, {
      upstreams: {
        '/scope': { url: app.url, accessToken: { scope: 'api://two/read', exchange: 'entra' } },
        '/audience': { url: app.url, accessToken: { audience: 'api://two', exchange: 'entra' } },
        '/own': { url: app.url, accessToken: true },
      },
    })
    const client = await user()
    const own = await tokenAt(client, app, '/own')
    assert.match(String(await tokenAt(client, app, '/scope')), /^Bearer xt-CANARY-/)
    await tokenAt(client, app, '/audience')
    const [first, second] = exchangesOf(provider)
    assert.deepEqual(Object.fromEntries(first?.form ?? []), {
      grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
      requested_token_use: 'on_behalf_of',
      assertion: own?.slice('Bearer '.length),
      scope: 'api://two/read',
    })
    assert.equal(second?.form.get('scope'), 'api://two/.default')
  })

  test('a WebSocket handshake carries the exchanged token, or gets 502 if the exchange fails', async t => {
    const scene = await setUpExchange(t)
    const { provider, app, user } = scene
    const sockets = new WebSocketServer({ server: app.server })
    t.after(() => sockets.close())
    const client = await user()
    const socket = dial(scene, client, '/one/socket')
    await new Promise(resolve => socket.once('open', resolve))
    assert.match(String(app.last().headers.authorization), /^Bearer xt-CANARY-sub-1-one-/)
    socket.terminate()
    provider.exchanged = { token_type: 'N_A' }
    const before = app.received.length
    assert.equal(await refusal(dial(scene, client, '/two/socket').on('error', () => {})), 502)
    assert.equal(app.received.length, before)
  })
})

suite('a failed token exchange', () => {
  const json = (body: object) => (response: ServerResponse) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  const usual = { access_token: `xt-${CANARY}`, issued_token_type: ACCESS_TOKEN, token_type: 'Bearer', expires_in: 60 }
  const answers: Record<string, (response: ServerResponse, call: OidcCall) => unknown> = {
    'without a token': json({ ...usual, access_token: undefined }),
    'of type N_A': json({ ...usual, token_type: 'N_A' }),
    'of another issued type': json({ ...usual, issued_token_type: 'urn:ietf:params:oauth:token-type:id_token' }),
    'bound to a key': json({ ...usual, token_type: 'DPoP' }),
    'with a line break in the token': json({ ...usual, access_token: 'a\r\nx-admin: 1' }),
    'with a token of 20 KB': json({ ...usual, access_token: 'a'.repeat(20_000) }),
    'with an odd life': json({ ...usual, expires_in: -1 }),
    'with the access token of the user': (response, { form }) =>
      json({ ...usual, access_token: form.get('subject_token') })(response),
    'of 10 MB': json({ ...usual, more: 'x'.repeat(10_000_000) }),
    'that is not JSON': response => response.end(`<html>${CANARY}`),
    'that is a list': json([usual]),
    'with an error': response =>
      response
        .writeHead(400, { 'content-type': 'application/json' })
        .end(JSON.stringify({ error: 'invalid_target', error_description: CANARY })),
    'that breaks off': response => response.destroy(),
  }

  test('gets 502 and logs token_exchange_failed without a token, and the application is not called', async t => {
    const { provider, app, user, lines, passSeconds } = await setUpExchange(t)
    const client = await user()
    for (const [name, answer] of Object.entries(answers)) {
      provider.intercept = (call, response) => call.form.has('subject_token') && [answer(response, call)]
      passSeconds(30)
      const calls = exchangesOf(provider).length
      assert.equal((await client.get('/one')).status, 502, name)
      assert.ok(exchangesOf(provider).length > calls, name)
      const { event, level, fields } = lines.findLast(({ event }) => event === 'token_exchange_failed') ?? {}
      assert.equal(event, 'token_exchange_failed')
      assert.equal(level, 'warn')
      const { upstream, audience, user: who, reason } = fields as Record<string, unknown>
      assert.deepEqual({ upstream, audience, who }, { upstream: '/one', audience: 'one', who: 'user-sub-1' })
      assert.notEqual(reason, undefined)
    }
    assert.equal(app.received.length, 0)
    assert.ok(!JSON.stringify(lines).includes(CANARY))
    const script = await client.get('/one', { headers: { accept: 'application/json' } })
    assert.equal(script.json<{ error: string }>().error, 'no_token')
    provider.intercept = undefined
    passSeconds(30)
    assert.match(String(await tokenAt(client, app, '/one')), /^Bearer xt-/)
  })

  test('is not repeated for every request, and another user at another application gets a token', async t => {
    const { provider, app, user, lines, passSeconds } = await setUpExchange(t)
    const client = await user()
    const other = await user('sub-2')
    provider.intercept = ({ form }, response) =>
      form.get('audience') === 'one' &&
      response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":"invalid_target"}')
    for (let n = 0; n < 5; n++) assert.equal((await client.get('/one')).status, 502)
    assert.equal(exchangesOf(provider).length, 1)
    const reasons = lines.filter(({ event }) => event === 'token_exchange_failed').map(({ fields }) => fields.reason)
    assert.deepEqual(reasons.slice(0, 2), ['invalid_target', 'recently_failed'])
    assert.match(String(await tokenAt(other, app, '/two')), /sub-2-two/)
    passSeconds(2)
    await client.get('/one')
    assert.equal(exchangesOf(provider).filter(({ form }) => form.get('audience') === 'one').length, 2)
  })

  test('ends after PROVIDER_TIMEOUT_MS with a provider that hangs, and after two users later requests to that application do not wait', async t => {
    const { provider, app, user } = await setUpExchange(t, {}, { PROVIDER_TIMEOUT_MS: '300' })
    const client = await user()
    const others = [await user('sub-2'), await user('sub-3'), await user('sub-4')]
    provider.intercept = ({ form }) => form.has('subject_token')
    for (const each of [client, client, ...others]) assert.equal((await each.get('/one')).status, 502)
    assert.equal(exchangesOf(provider).length, 2, 'the provider is not asked again for this application')
    assert.equal(app.received.length, 0)
    assert.equal((await client.get('/own')).status, 200)
  })
})

test('neither the log nor the store contains an exchanged token in plain text, and a restart uses the stored one', async t => {
  const folder = tempFolder(t)
  const provider = await startOidcServer(t)
  const app = await startUpstream(t)
  const config: Config = { upstreams: { '/': { url: app.url, accessToken: { audience: 'one' } } } }
  const env = {
    ...provider.settings,
    STORE: `sqlite:${folder}/menshen.db`,
    SECRET: 'a secret of the test that is long enough',
  }
  const first = await openGateway(t, env, { config })
  provider.now = first.now
  const client = await signedInAt(first.url, first.now)
  const token = await tokenAt(client, app, '/')
  const cookie = cookieOf(client)
  await first.close()
  const second = await openGateway(t, env, { config })
  assert.equal((await createClient(second.url, second.now).get('/', { headers: { cookie } })).status, 200)
  assert.equal(app.last().headers.authorization, token)
  assert.equal(exchangesOf(provider).length, 1)
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter(file => file.isFile())
  assert.ok(files.length > 0)
  for (const { parentPath, name } of files)
    assert.ok(!readFileSync(join(parentPath, name), 'latin1').includes('xt-CANARY'), name)
  assert.ok(!JSON.stringify([first.lines, second.lines]).includes('xt-CANARY'))
})

test('two instances with one store exchange a token once', async t => {
  const provider = await startOidcServer(t)
  const app = await startUpstream(t)
  const config: Config = { upstreams: { '/': { url: app.url, accessToken: { audience: 'one' } } } }
  const secret = 'a secret of the test that is long enough'
  const env = { ...provider.settings, STORE: `sqlite:${tempFolder(t)}/menshen.db`, SECRET: secret }
  const instances = [await openGateway(t, env, { config }), await openGateway(t, env, { config })] as const
  const [{ url, now }] = instances
  provider.now = now
  const cookie = cookieOf(await signedInAt(url, now))
  const asked = Promise.withResolvers<void>()
  const release = Promise.withResolvers<void>()
  provider.intercept = async ({ form }) => {
    if (!form.has('subject_token')) return
    asked.resolve()
    await release.promise
  }
  const open = ({ url }: { url: string }) => createClient(url).get('/', { headers: { cookie } })
  const first = open(instances[0])
  await asked.promise
  const others = [open(instances[1]), open(instances[0]), open(instances[1])]
  release.resolve()
  for (const { status } of await Promise.all([first, ...others])) assert.equal(status, 200)
  assert.equal(exchangesOf(provider).length, 1)
  assert.equal(new Set(app.received.map(({ headers }) => headers.authorization)).size, 1)
})

test('a user with many sessions does not delay the token exchange of another user', async t => {
  const { provider, user, visitor } = await setUpExchange(t, {}, { PROVIDER_PARALLEL_CALLS: '1' })
  const many = await Promise.all(Array.from({ length: 8 }, () => user('sub-1')))
  const other = await user('sub-2')
  const otherToken = provider.issued.at(-1)?.access_token
  const release = Promise.withResolvers<void>()
  provider.intercept = ({ form }) => form.has('subject_token') && release.promise
  // The gateway answers this after it has read what was sent before.
  const allWait = async () => {
    for (let n = 0; n < 3; n++) await visitor().get('/_menshen/health')
  }
  const pages = many.map(client => client.get('/one'))
  await until(() => exchangesOf(provider).length === 1)
  await allWait()
  const page = other.get('/one')
  await allWait()
  release.resolve()
  for (const { status } of await Promise.all([page, ...pages])) assert.equal(status, 200)
  const place = exchangesOf(provider).findIndex(({ form }) => form.get('subject_token') === otherToken)
  assert.ok(place > 0 && place <= 2, `the other user's exchange was number ${place}`)
})

test('an application at its own host gets its exchanged token there, until the sign-out', async t => {
  const app = await startUpstream(t)
  const upstream = { url: app.url, accessToken: { audience: 'wiki' } }
  const config = { hosts: { 'wiki.test': { upstream } } }
  const { provider, url, now } = await setUpOidc(t, { env: { BASE_URL: PORTAL }, config, application: false })
  const browser = createBrowser(url, now)
  const started = await browser.post(`${PORTAL}/login`)
  const back = await fetch(started.headers.location ?? '', { redirect: 'manual' })
  await browser.get(back.headers.get('location') ?? '')
  for (let n = 0; n < 2; n++) assert.equal((await browser.open(`${WIKI}/page`)).status, 200)
  assert.match(String(app.last().headers.authorization), /^Bearer xt-CANARY-sub-1-wiki-/)
  assert.equal(exchangesOf(provider).length, 1)
  await browser.post(`${PORTAL}/logout`)
  const before = app.received.length
  await browser.get(`${WIKI}/page`)
  assert.equal(app.received.length, before)
})

test('token exchange is refused if no provider issues an access token for the user', () => {
  const upstream = { url: 'http://127.0.0.1:9', accessToken: { audience: 'one' } }
  const wecom = { preset: 'wecom', clientId: 'ww0123', clientSecret: 'b', vars: { agent: '1' } }
  const oidc = { preset: 'oidc', clientId: 'a', clientSecret: 'b', vars: { auth_url: 'https://a.example' } }
  const plan = (config: Config) => planProviders(config, readSettings({}))
  assert.throws(
    () => plan({ providers: { wecom }, upstreams: { '/one': upstream } }),
    /^MenshenError: upstreams\.\/one\.accessToken: this provider issues no access token for the user/,
  )
  plan({ providers: { wecom, oidc }, upstreams: { '/one': upstream } })
})

suite('the library', () => {
  test('accessToken with a target resolves with a token for that application, and rejects if the exchange fails', async t => {
    const { provider, user, menshen, lines } = await setUpOidc(t, { application: false })
    const client = await user()
    const request = { headers: { cookie: cookieOf(client) } }
    const token = await menshen.accessToken(request, { audience: 'one', scope: 'read' })
    assert.match(String(token), /^xt-CANARY-sub-1-one-/)
    assert.equal(await menshen.accessToken(request, { audience: 'one', scope: 'read' }), token)
    assert.notEqual(await menshen.accessToken(request, { resource: 'https://one.example' }), token)
    assert.match(String(await menshen.accessToken(request)), /^at-/)
    assert.equal(await menshen.accessToken({ headers: {} }, { audience: 'one' }), undefined)
    provider.exchanged = { token_type: 'N_A' }
    await assert.rejects(menshen.accessToken(request, { audience: 'two' }), { name: 'MenshenError' })
    assert.equal(lines.at(-1)?.event, 'token_exchange_failed')
    for (const odd of [{}, { audiense: 'one' }, { audience: '' }, { resource: '/api' }])
      await assert.rejects(menshen.accessToken(request, odd as object), (error: unknown) => {
        assert.ok(error instanceof MenshenError)
        assert.equal(error.code, 'bad_settings')
        return true
      })
  })
})
