// An answer of the provider that no attempt waits for starts again, once. Its code is never redeemed.

import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { createMenshen, readSettings } from '../../src/index.ts'
import type { Client, Response } from '../kit/client.ts'
import { type GatewayOptions, openGateway, setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'

const BOUND = { STATE_CHECK: 'bound' }
const INVALID = '/login?error=invalid_state'
const STRANGE = `/callback?code=of-somebody-else&state=${'A'.repeat(43)}_idp`

async function openBound(t: TestContext, env: Record<string, string> = {}, options: GatewayOptions = {}) {
  const gateway = await setUp(t, { env: { ...BOUND, ...env }, ...options })
  return { ...gateway, exchanges: () => gateway.provider.callsTo('token').length }
}

/** Presses the button and signs in at the provider; the path of the callback. */
async function comeBack(client: Client): Promise<string> {
  return callbackOf(client, await client.post('/login'))
}

/** Signs in at the provider to which a redirect leads; the path of the callback. */
async function callbackOf(client: Client, redirect: Response): Promise<string> {
  const { pathname, search } = new URL((await client.follow(redirect)).headers.location ?? '')
  return pathname + search
}

function assertRestarted({ status, headers, setCookies }: Response, authUrl: string): URL {
  assert.equal(status, 303)
  const location = new URL(headers.location ?? '')
  assert.equal(location.origin, new URL(authUrl).origin)
  assert.ok(setCookies.includes('menshen_retry=yes; Path=/; Max-Age=10; HttpOnly; SameSite=Lax'), String(setCookies))
  assert.ok(!location.href.includes('of-somebody-else'), 'the code goes nowhere')
  return location
}

test('a callback without an attempt restarts the sign-in; another within ten seconds leads to the login page', async t => {
  const { visitor, provider, exchanges, passSeconds, lines } = await openBound(t)
  const client = visitor()
  const restarted = await client.get(STRANGE)
  assertRestarted(restarted, provider.url)
  const again = await client.get(STRANGE)
  assert.deepEqual([again.status, again.headers.location], [302, INVALID])
  assert.equal(await finish(client, await callbackOf(client, restarted)), '/', 'the attempt of the retry counts')
  assert.equal(exchanges(), 1)
  const other = visitor()
  assertRestarted(await other.get(STRANGE), provider.url)
  passSeconds(11)
  assertRestarted(await other.get(STRANGE), provider.url)
  const events = lines.filter(({ event }) => event === 'sign_in_restarted')
  assert.deepEqual(
    events.map(({ level, fields }) => ({ level, provider: fields.provider, reason: fields.reason })),
    Array(3).fill({ level: 'info', provider: 'default', reason: 'unknown' }),
  )
  assert.ok(!JSON.stringify(lines).includes('of-somebody-else'))
})

const finish = async (client: Client, path: string) => (await client.get(path)).headers.location

test('a late callback of a signed-in user redirects to the home page and changes nothing', async t => {
  const { visitor, exchanges } = await openBound(t)
  const client = visitor()
  await client.get('/wanted')
  const path = await comeBack(client)
  assert.equal(await finish(client, path), '/wanted')
  const session = client.cookies.get('menshen_session')
  for (const late of [path, STRANGE]) {
    const { status, headers, setCookies } = await client.get(late)
    assert.deepEqual([status, headers.location, setCookies], [302, '/', []])
  }
  assert.equal(client.cookies.get('menshen_session'), session)
  assert.equal(exchanges(), 1)
})

test('for ATTEMPT_MINUTES, a callback of a used attempt restarts the sign-in and leads back to its page', async t => {
  const { visitor, provider, passSeconds, lines } = await openBound(t, { ATTEMPT_MINUTES: '2' })
  const client = visitor()
  await client.get('/wanted?a=1', { headers: { accept: 'text/html', 'user-agent': 'Mozilla/5.0' } })
  const path = await comeBack(client)
  provider.answer('token', { kind: 'json', status: 500, body: {} }, 'once')
  assert.equal(await finish(client, path), '/login?error=token_error')
  const restarted = await client.get(path)
  assertRestarted(restarted, provider.url)
  assert.equal(lines.findLast(({ event }) => event === 'sign_in_restarted')?.fields.reason, 'used')
  assert.equal(await finish(client, await callbackOf(client, restarted)), '/wanted?a=1')
  passSeconds(121)
  const late = visitor()
  assertRestarted(await late.get(path), provider.url)
  assert.equal(lines.findLast(({ event }) => event === 'sign_in_restarted')?.fields.reason, 'unknown')
})

test('a browser without cookies is sent to the login page after one retry', async t => {
  const { visitor, provider, exchanges } = await openBound(t)
  const without = { headers: { cookie: '' } }
  const client = visitor()
  const restarted = await client.get(STRANGE, without)
  assertRestarted(restarted, provider.url)
  const path = await callbackOf(client, restarted)
  assert.equal((await visitor().get(path, without)).headers.location, INVALID)
  assert.equal((await visitor().get(path, without)).headers.location, INVALID, 'and never starts again')
  assert.equal(exchanges(), 0)
})

test('an error from the provider leads to the login page, even if the state is unknown, empty or malformed', async t => {
  const { visitor } = await openBound(t)
  for (const state of ['abc_idp', '', 'abc'])
    assert.equal(
      await finish(visitor(), `/callback?error=access_denied&code=c&state=${state}`),
      '/login?error=access_denied',
    )
})

test('a missing, malformed or repeated state starts no attempt', async t => {
  const { visitor } = await openBound(t)
  for (const query of ['code=c', 'code=c&state=abc', 'code=c&state=a_idp&state=a_idp', 'code=c&state=a_idp%0A'])
    assert.equal(await finish(visitor(), `/callback?${query}`), INVALID, query)
  assert.equal(await finish(visitor(), '/callback?state=a_idp'), '/login?error=missing_code')
})

test('without STATE_CHECK=bound, a callback without an attempt does not restart the sign-in', async t => {
  const { visitor, provider } = await setUp(t, { application: false })
  assert.equal(await finish(visitor(), `/callback?code=${provider.codeFor()}&state=abc_idp`), '/')
  const hardened = await setUp(t, { application: false, env: { PKCE: 'S256' } })
  assert.equal(await finish(hardened.visitor(), '/callback?code=c&state=abc_idp'), INVALID)
})

test('cross-site images, frames and scripts, and prefetches from any site, start no attempt', async t => {
  const { visitor, exchanges } = await openBound(t)
  for (const headers of [
    { 'sec-fetch-dest': 'image', 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-dest': 'iframe', 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-dest': 'empty', 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-dest': 'document', 'sec-fetch-site': 'cross-site', 'sec-purpose': 'prefetch' },
    { 'sec-fetch-dest': 'document', 'sec-purpose': 'prefetch' },
  ]) {
    const { status, setCookies } = await visitor().get(STRANGE, { headers })
    assert.deepEqual([status, setCookies], [403, []], JSON.stringify(headers))
  }
  const script = await visitor().get(STRANGE, { headers: { accept: 'application/json' } })
  assert.deepEqual([script.headers.location, script.setCookies], [INVALID, []])
  assert.equal(exchanges(), 0)
})

test('a callback from the attempt of another browser restarts without its code and state, and never signs in the user of that code', async t => {
  const { visitor, provider, exchanges } = await openBound(t)
  const [attacker, victim] = [visitor(), visitor()]
  provider.behaviour.user = { username: 'attacker' }
  const planted = await comeBack(attacker)
  const restarted = await victim.get(planted)
  const location = assertRestarted(restarted, provider.url)
  const { searchParams } = new URL(planted, provider.url)
  assert.ok(!location.href.includes(searchParams.get('code') ?? '-'))
  assert.ok(!location.href.includes(searchParams.get('state') ?? '-'))
  assert.ok(!victim.cookies.has('menshen_session'))
  assert.equal(exchanges(), 0)
  provider.behaviour.user = { username: 'victim' }
  assert.equal(await finish(victim, await callbackOf(victim, restarted)), '/')
  assert.equal(await usernameOf(victim), 'victim')
  assert.equal(await finish(victim, planted), '/')
  assert.equal(await usernameOf(victim), 'victim', 'not even when it comes again')
  assert.equal(exchanges(), 1)
  assert.equal(await finish(attacker, planted), '/', 'the attempt is still that of its own browser')
  assert.equal(await usernameOf(attacker), 'attacker')
})

const usernameOf = async (client: Client) =>
  (await client.get('/_menshen/me')).json<{ userInfo: { username: string } }>().userInfo.username

test('a retry is rate-limited like a sign-in and is refused above the limit', async t => {
  const { visitor, provider } = await openBound(t, { RATE_LIMIT_PER_MINUTE: '3' })
  assertRestarted(await visitor().get(STRANGE), provider.url)
  assert.equal(await finish(visitor(), STRANGE), INVALID, 'the callback is the third, its retry would be the fourth')
  assert.equal((await visitor().get(STRANGE)).status, 429)
})

test('while provider metadata is unavailable, a late callback leads to /login?error=temporarily_unavailable', async t => {
  const gateway = await openGateway(t, {
    PROVIDER: 'oidc',
    AUTH_URL: 'http://127.0.0.1:9',
    CLIENT_ID: 'c',
    CLIENT_SECRET: 'a secret of some length',
  })
  assert.equal(await finish(gateway.visitor(), STRANGE), '/login?error=temporarily_unavailable')
})

test('a sign-in in progress during a restart with STORE=memory still completes on its page', async t => {
  const { provider, ...first } = await openBound(t)
  const client = first.visitor()
  await client.get('/wanted')
  const path = await comeBack(client)
  await first.close()
  const { port: PORT } = new URL(first.url)
  const second = await openGateway(t, { ...provider.settings, ...BOUND, PORT }, { now: first.now() })
  const restarted = await client.get(path)
  assertRestarted(restarted, provider.url)
  assert.equal(await finish(client, await callbackOf(client, restarted)), '/wanted', 'the cookie knows the page')
  assert.equal((await client.get('/')).status, 200)
  assert.equal(second.lines.filter(({ event }) => event === 'sign_in').length, 1)
})

test('over https, the retry cookie is Secure and has the __Host- prefix', async t => {
  const { visitor } = await openBound(t, { BASE_URL: 'https://app.example.com' })
  const { setCookies } = await visitor().get(STRANGE)
  assert.ok(setCookies.some(cookie => /^__Host-menshen_retry=yes; .*Max-Age=10; .*Secure$/.test(cookie)))
})

test('retries use the configured LOGIN_PATH and CALLBACK_PATH', async t => {
  const { visitor, provider } = await openBound(t, { LOGIN_PATH: '/_menshen/in', CALLBACK_PATH: '/_menshen/back' })
  const client = visitor()
  const late = STRANGE.replace('/callback', '/_menshen/back')
  const location = assertRestarted(await client.get(late), provider.url)
  assert.match(location.searchParams.get('redirect_uri') ?? '', /\/_menshen\/back$/)
  assert.equal(await finish(client, late), '/_menshen/in?error=invalid_state')
})

test('the library restarts the sign-in for a late callback, as the server does', async t => {
  const { provider } = await setUp(t, { application: false })
  const settings = readSettings({
    STORE: `sqlite:${tempFolder(t)}/menshen.db`,
    PORT: '3000',
    ...provider.settings,
    ...BOUND,
  })
  const menshen = await createMenshen({ settings })
  t.after(() => menshen.close())
  const answer = await menshen.fetch(new Request(`http://localhost:3000${STRANGE}`), { address: '192.0.2.1' })
  assert.equal(answer?.status, 303)
  assert.ok(answer?.headers.get('location')?.startsWith(provider.url))
})
