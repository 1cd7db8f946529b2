// The kit where it could lie: if these fail, no other test can be believed.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readlinkSync, writeFileSync } from 'node:fs'
import { createServer, get, type IncomingMessage, type RequestListener } from 'node:http'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { openPage, startBrowser } from './browser.ts'
import { type Client, createClient } from './client.ts'
import { freePort, reservePorts } from './free-port.ts'
import { createJar } from './jar.ts'
import { linkPrograms } from './packages.ts'
import { openScriptedProvider } from './scripted-provider.ts'
import { CLIENT_ID, CLIENT_SECRET } from './strict-provider.ts'
import { tempFolder } from './temp.ts'

const CALLBACK = 'http://localhost/callback'
const USERINFO = '/api/bff/v1.2/oauth2/userinfo'

interface Tokens {
  access_token: string
  refresh_token: string
}

async function startProvider(t: TestContext, options?: Parameters<typeof openScriptedProvider>[1]) {
  const provider = await openScriptedProvider(t, options)
  return { provider, client: createClient(provider.url) }
}

function post(client: Client, form: Record<string, string>) {
  return client.post('/oauth/token', { client_id: CLIENT_ID, client_secret: CLIENT_SECRET, ...form })
}

function redeem(client: Client, code: string, more: Record<string, string> = {}) {
  return post(client, { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, ...more })
}

function refresh(client: Client, token: string) {
  return post(client, { grant_type: 'refresh_token', refresh_token: token })
}

function userinfo(client: Client, accessToken: string) {
  return client.get(USERINFO, { headers: { authorization: `Bearer ${accessToken}` } })
}

test('test runs at the same time get different port ranges, and a range is free again after its run', async t => {
  const lock = await freePort()
  const reserve = async () => {
    const ports = await reservePorts(lock)
    t.after(ports.close)
    return ports
  }
  const first = await reserve()
  const { TEST_PORTS_FROM: part } = first.env
  assert.equal(part, '10000')
  assert.notEqual((await reserve()).env.TEST_PORTS_FROM, part)
  first.close()
  assert.equal((await reserve()).env.TEST_PORTS_FROM, part)
})

test('a code works once, for its user, and its second use revokes the tokens issued for it', async t => {
  const { provider, client } = await startProvider(t, { expiresIn: 60 })
  const code = provider.codeFor({ username: 'admin' })
  const first = await redeem(client, code)
  assert.equal(first.status, 200)
  const tokens = first.json<Tokens & { expires_in: number }>()
  assert.match(code, /^code-CANARY-/)
  assert.match(tokens.access_token, /^at-CANARY-/)
  assert.match(tokens.refresh_token, /^rt-CANARY-/)
  assert.equal(tokens.expires_in, 60)
  const answer = (await userinfo(client, tokens.access_token)).json<{ success: boolean; data: { username: string } }>()
  assert.equal(answer.success, true)
  assert.equal(answer.data.username, 'admin')

  assert.equal((await redeem(client, code)).status, 400)
  assert.equal((await userinfo(client, tokens.access_token)).status, 401)
  assert.equal((await refresh(client, tokens.refresh_token)).status, 400)
})

test('a refresh token rotates, and a second use of the old one revokes the whole family', async t => {
  const { provider, client } = await startProvider(t)
  const first = (await redeem(client, provider.codeFor())).json<Tokens>()
  const second = (await refresh(client, first.refresh_token)).json<Tokens>()
  assert.notEqual(second.refresh_token, first.refresh_token)
  assert.equal((await userinfo(client, second.access_token)).status, 200)
  assert.equal(provider.reuses, 0)

  assert.equal((await refresh(client, first.refresh_token)).status, 400)
  assert.equal(provider.reuses, 1)
  assert.equal((await refresh(client, second.refresh_token)).status, 400)
  assert.equal((await userinfo(client, second.access_token)).status, 401)
  assert.equal(provider.reuses, 1)
})

test('without rotation a refresh token stays valid, and with refresh tokens turned off the provider issues none', async t => {
  const { provider, client } = await startProvider(t, { rotate: false })
  const { refresh_token } = (await redeem(client, provider.codeFor())).json<Tokens>()
  assert.equal('refresh_token' in (await refresh(client, refresh_token)).json<Tokens>(), false)
  assert.equal((await refresh(client, refresh_token)).status, 200)
  provider.behaviour.refreshTokens = false
  assert.equal('refresh_token' in (await redeem(client, provider.codeFor())).json<Tokens>(), false)
})

test('a wrong client secret, redirect URI or code verifier gets no token and does not use up the code', async t => {
  const { client } = await startProvider(t)
  const challenge = createHash('sha256').update('right').digest('base64url')
  const query = { response_type: 'code', scope: 'read', client_id: CLIENT_ID, redirect_uri: CALLBACK, state: 'x_idp' }
  const authorize = new URLSearchParams({ ...query, code_challenge: challenge })
  const { headers } = await client.get(`/oauth/authorize?${authorize}`)
  const back = new URL(headers.location ?? '')
  assert.equal(back.origin + back.pathname, CALLBACK)
  assert.equal(back.searchParams.get('state'), 'x_idp')

  const code = back.searchParams.get('code') ?? ''
  assert.equal((await redeem(client, code, { code_verifier: 'right', client_secret: 'wrong' })).status, 401)
  assert.equal((await redeem(client, code, { code_verifier: 'right', redirect_uri: `${CALLBACK}/` })).status, 400)
  assert.equal((await redeem(client, code, { code_verifier: 'wrong' })).status, 400)
  assert.equal((await redeem(client, code, { code_verifier: 'right' })).status, 200)
})

test('one-time answers are sent first and in order, then the permanent one, until the answer is reset to normal', async t => {
  const { provider, client } = await startProvider(t)
  provider.answer('logout', { kind: 'json', status: 500, body: {} })
  provider.answer('logout', { kind: 'bytes', status: 201, body: 'not json' }, 'once')
  provider.answer('logout', { kind: 'redirect', to: 'http://localhost/elsewhere' }, 'once')
  const statuses = [201, 302, 500, 500]
  for (const status of statuses) assert.equal((await client.get('/oauth/logout')).status, status)
  provider.answer('logout', { kind: 'normal' })
  assert.equal((await client.post('/oauth/logout')).status, 200)
  assert.equal(provider.callsTo('logout').length, 5)
})

test('the scripted provider records the method, path, query, form and headers of a call', async t => {
  const { provider, client } = await startProvider(t)
  await client.post('/no/such/path?a=1', { b: '二' }, { headers: { 'x-trace': 't' } })
  const call = await provider.called('unknown')
  assert.equal(`${call.method} ${call.path}`, 'POST /no/such/path')
  assert.equal(call.query.get('a'), '1')
  assert.equal(call.form.get('b'), '二')
  assert.equal(call.headers['x-trace'], 't')
})

test('a response that is cut off fails at the caller, and only one cut in its body has used up the refresh token', async t => {
  const { provider, client } = await startProvider(t)
  const { refresh_token } = (await redeem(client, provider.codeFor())).json<Tokens>()
  provider.answer('refresh', { kind: 'cut', when: 'at once' }, 'once')
  await assert.rejects(refresh(client, refresh_token), { code: 'ECONNRESET' })
  provider.answer('userinfo', { kind: 'cut', when: 'after headers' }, 'once')
  assert.equal(await readUntilCut(provider.url + USERINFO), '')
  provider.answer('userinfo', { kind: 'cut', when: 'in the body' }, 'once')
  assert.match(await readUntilCut(provider.url + USERINFO), /^\{"error"/)

  provider.answer('refresh', { kind: 'cut', when: 'in the body' }, 'once')
  await assert.rejects(refresh(client, refresh_token), { code: 'ECONNRESET' })
  assert.equal((await refresh(client, refresh_token)).status, 400)
  assert.equal(provider.reuses, 1, 'only the cut in the body spent the token')
})

test('the scripted provider can send bytes that are not valid HTTP', async t => {
  const { provider, client } = await startProvider(t)
  provider.answer('userinfo', { kind: 'wire', bytes: 'HTTP/1.1 nonsense\r\n\r\n' })
  await assert.rejects(userinfo(client, 'any'), /Parse Error/)
})

test('a call to a hanging provider stays open until the provider is closed', async t => {
  const { provider, client } = await startProvider(t)
  provider.answer('userinfo', { kind: 'hang' })
  const waiting = assert.rejects(userinfo(client, 'any'), { code: 'ECONNRESET' })
  await provider.called('userinfo')
  await provider.close()
  await waiting
})

test('an endless response continues until its reader disconnects', async t => {
  const { provider } = await startProvider(t)
  provider.answer('userinfo', { kind: 'endless' })
  const response = await open(provider.url + USERINFO)
  let received = 0
  for await (const chunk of response) {
    received += chunk.length
    if (received > 3_000_000) break
  }
  assert.ok(received > 3_000_000)
})

test('a dripping response is the normal response, sent slowly', async t => {
  const { provider } = await startProvider(t)
  provider.answer('logout', { kind: 'drip' })
  const started = performance.now()
  const response = await open(`${provider.url}/oauth/logout`)
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk)
  assert.equal(Buffer.concat(chunks).toString(), '{"success":true}')
  assert.ok(performance.now() - started > 1400)
})

test('held calls reach the provider and are answered only after their release', async t => {
  const { provider, client } = await startProvider(t)
  const release = provider.hold('logout')
  let answered = 0
  const both = [client.get('/oauth/logout'), client.get('/oauth/logout')].map(call => call.then(() => answered++))
  await provider.called('logout', 2)
  assert.equal((await userinfo(client, 'any')).status, 401)
  assert.equal(answered, 0)
  release()
  await Promise.all(both)
  assert.equal((await client.get('/oauth/logout')).status, 200)
})

test('the cookie jar drops expired cookies according to the clock it was given', () => {
  let now = Date.parse('2026-01-01T00:00:00Z')
  const jar = createJar(() => now)
  jar.keep('a=1; Max-Age=10; Expires=Thu, 01 Jan 1970 00:00:00 GMT; HttpOnly; Secure', '/')
  jar.keep('b=x=y; Expires=Thu, 01 Jan 2026 00:00:20 GMT', '/')
  jar.keep('c=3', '/')
  assert.equal(jar.header('/'), 'a=1; b=x=y; c=3')
  now += 10_000
  assert.equal(jar.header('/'), 'b=x=y; c=3')
  now += 10_000
  assert.deepEqual([...jar.values()], [['c', '3']])
  jar.keep('c=; Max-Age=0; Path=/', '/any/path')
  assert.equal(jar.header('/'), '')
})

test('the cookie jar sends a cookie only to its path, the longest path first', () => {
  const jar = createJar(Date.now)
  jar.keep('root=1; Path=/', '/x')
  jar.keep('deep=2; path=/a/b', '/x')
  jar.keep('here=3', '/login/page?x=/y')
  assert.equal(jar.header('/a/bc'), 'root=1')
  assert.equal(jar.header('/a/b?q=/'), 'deep=2; root=1')
  assert.equal(jar.header('/login/other'), 'here=3; root=1')
})

test('the client sends paths unchanged, sends cookies only to its own server and follows a redirect only on request', async t => {
  const { provider } = await startProvider(t)
  const seen: string[] = []
  const home = await serve(t, (request, response) => {
    seen.push(`${request.url} ${request.headers.cookie ?? 'no cookie'}`)
    response.writeHead(302, { location: `${provider.url}/oauth/logout`, 'set-cookie': ['a=1', 'b=2; Path=/'] }).end()
  })
  const client = createClient(home)
  const first = await client.get('/../%2e//b?x')
  assert.equal(first.status, 302)
  assert.deepEqual(first.setCookies, ['a=1', 'b=2; Path=/'])
  await client.get('/', { headers: { cookie: 'mine=3' } })
  await client.get('/')
  assert.deepEqual(seen, ['/../%2e//b?x no cookie', '/ mine=3', '/ b=2; a=1'])

  assert.equal(provider.calls.length, 0)
  assert.equal((await client.follow(first)).status, 200)
  assert.equal(provider.calls[0]?.headers.cookie, undefined)
  assert.throws(() => client.follow({ ...first, headers: { location: 'https://example.com/' } }), /leads away/)
})

test('the browser reports problems on a page, but not the 403 status of the page itself', async t => {
  const body = '<link rel="icon" href="data:,"><script>document.title = "ran"</script><h1>门神</h1>'
  const home = await serve(t, (request, response) => {
    const policy = request.url === '/strict' ? "script-src 'none'" : "script-src 'unsafe-inline'"
    const headers = { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': policy }
    response.writeHead(request.url === '/refused' ? 403 : 200, headers).end(body)
  })
  const browser = await startBrowser()
  t.after(() => browser.close())
  const { page, problems } = await openPage(t, browser)
  await page.goto(`${home}/refused`)
  assert.equal(await page.title(), 'ran')
  assert.deepEqual(problems, [])
  await page.goto(`${home}/strict`)
  assert.equal(await page.title(), '')
  assert.match(problems.join(), /Content Security Policy/)
})

async function serve(t: TestContext, listener: RequestListener): Promise<string> {
  const port = await freePort()
  const server = createServer(listener).listen(port, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  return `http://127.0.0.1:${port}`
}

async function open(url: string): Promise<IncomingMessage> {
  const [response] = await once(get(url, { agent: false }), 'response')
  return response
}

async function readUntilCut(url: string): Promise<string> {
  const response = await open(url)
  let received = ''
  const reading = async () => {
    for await (const chunk of response) received += chunk
  }
  await assert.rejects(reading(), { code: 'ECONNRESET' })
  return received
}

test('tests find only the programs that the kit declares, not others installed on the machine', t => {
  const [machine, linked] = [tempFolder(t), tempFolder(t)]
  for (const name of ['git', 'wrk', 'undeclared']) writeFileSync(join(machine, name), '#!/bin/sh\n', { mode: 0o755 })
  linkPrograms(linked, [machine])
  assert.deepEqual(
    readdirSync(linked)
      .filter(name => name !== 'python3')
      .sort(),
    ['git', 'node', 'wrk'],
  )

  const { PATH = '' } = process.env
  assert.match(PATH, /^[^:]*\/menshen-tests-\w+\/programs$/, 'npm test sets the PATH of the tests')
  assert.equal(readlinkSync(join(PATH, 'node')), process.execPath)
})

test('a test whose program is not installed is skipped with a message, and fails in the full run', t => {
  const file = join(tempFolder(t), 'lacking.test.mjs')
  writeFileSync(
    file,
    `import test from 'node:test'
import { requireProgram, requirePrograms } from ${JSON.stringify(new URL('requirements.ts', import.meta.url).href)}
test('inside of a test', () => requireProgram('undeclared'))
test('without a need', () => {})
if (process.env.WHOLE_FILE) await requirePrograms('node', 'undeclared')
`,
  )
  const run = (env: NodeJS.ProcessEnv) => {
    const { NODE_TEST_CONTEXT: _, TEST_RUN: __, ...own } = process.env
    const options = { env: { ...own, ...env }, encoding: 'utf8' } as const
    const reporter = fileURLToPath(new URL('reporter.ts', import.meta.url))
    return spawnSync(process.execPath, ['--test', `--test-reporter=${reporter}`, file], options)
  }
  const chosen = run({})
  assert.equal(chosen.status, 0)
  assert.match(chosen.stdout, /﹣ inside of a test .*# undeclared is not installed\n✔ without a need/)
  assert.doesNotMatch(chosen.stdout, /failing tests/)
  assert.match(run({ WHOLE_FILE: '1' }).stdout, /﹣ every test of this file .*# undeclared is not installed\n/)
  for (const env of [{}, { WHOLE_FILE: '1' }]) {
    const full = run({ TEST_RUN: 'full', ...env })
    assert.equal(full.status, 1)
    assert.match(full.stdout, /ℹ skipped 0\n.*undeclared is not installed/s)
  }
})
