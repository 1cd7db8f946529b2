// STATE_CHECK=bound and PKCE=S256: a callback only counts for the browser that started it, once and soon.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import test, { type TestContext } from 'node:test'
import type { Client } from '../kit/client.ts'
import { setUp } from '../kit/set-up.ts'

const HARDENED = { STATE_CHECK: 'bound', PKCE: 'S256' }
const ATTEMPT = 'menshen_attempt'
const REFUSED = '/login?error=invalid_state'
/** Sent to the provider with a new attempt. */
const RESTARTED = 'restarted'

async function openAttempts(t: TestContext, env: Record<string, string> = HARDENED) {
  const gateway = await setUp(t, { env, application: false })
  const { provider } = gateway
  return { provider, gateway, visitor: gateway.visitor(), exchanges: () => provider.callsTo('token').length }
}

/** Presses the button; the address at the provider. */
async function start(client: Client): Promise<URL> {
  const { status, headers } = await client.post('/login')
  assert.equal(status, 303)
  return new URL(headers.location ?? '')
}

/** Goes through the provider; the path of the callback. */
async function authorize(client: Client, address: URL): Promise<string> {
  const answer = await client.follow({ ...(await client.get('/login')), headers: { location: address.href } })
  const { pathname, search } = new URL(answer.headers.location ?? '')
  return pathname + search
}

async function finish(client: Client, path: string, cookie?: string): Promise<string | undefined> {
  const { location } = (await client.get(path, cookie === undefined ? {} : { headers: { cookie } })).headers
  if (!location?.startsWith('http')) return location
  const { pathname, searchParams } = new URL(location)
  assert.equal(pathname, '/oauth/authorize')
  assert.ok(!searchParams.has('code') && !path.includes(searchParams.get('state') ?? ''))
  return RESTARTED
}

test('the browser that started a sign-in attempt can finish it', async t => {
  for (const env of [HARDENED, { STATE_CHECK: 'bound' }, { PKCE: 'S256' }]) {
    const { visitor, exchanges } = await openAttempts(t, env)
    await visitor.get('/wanted')
    assert.equal(await finish(visitor, await authorize(visitor, await start(visitor))), '/wanted')
    assert.equal((await visitor.get('/')).status, 200)
    assert.equal(exchanges(), 1)
  }
})

test('the attempt cookie is HttpOnly and SameSite=Lax, and expires after ATTEMPT_MINUTES', async t => {
  const { visitor } = await openAttempts(t)
  const { setCookies } = await visitor.post('/login')
  assert.equal(setCookies.length, 1)
  assert.match(setCookies[0] ?? '', /^menshen_attempt=[\w-]{43}; Path=\/; Max-Age=1800; HttpOnly; SameSite=Lax$/)
  const secure = await openAttempts(t, { ...HARDENED, BASE_URL: 'https://app.example.com' })
  assert.match((await secure.visitor.post('/login')).setCookies[0] ?? '', /^__Host-menshen_attempt=.*; Secure$/)
})

test('a callback with a missing or forged attempt cookie exchanges no code', async t => {
  const { visitor, gateway, exchanges } = await openAttempts(t)
  const path = await authorize(visitor, await start(visitor))
  assert.equal(await finish(gateway.visitor(), path), RESTARTED)
  for (const value of ['', 'x', 'A'.repeat(43), `${visitor.cookies.get(ATTEMPT)}x`])
    assert.equal(await finish(gateway.visitor(), path, `${ATTEMPT}=${value}`), RESTARTED, value)
  assert.equal(exchanges(), 0)
  assert.equal(await finish(visitor, path), '/', 'and the attempt is still there for its own browser')
})

test('a state that was never issued, or was issued to another browser, creates no session', async t => {
  const { visitor, gateway, provider, exchanges } = await openAttempts(t)
  const attacker = gateway.visitor()
  const planted = await authorize(attacker, await start(attacker))
  await start(visitor)
  assert.equal(await finish(visitor, planted), RESTARTED)
  assert.equal(await finish(visitor, `/callback?code=${provider.codeFor()}&state=abc_idp`), REFUSED, 'once')
  assert.equal(exchanges(), 0)
  assert.deepEqual([...visitor.cookies.keys()], [ATTEMPT, 'menshen_retry'], 'nobody is signed in')
})

test('with STATE_CHECK=bound and PKCE=S256, the checks of specification 3.1 to 3.4 still come first', async t => {
  const { visitor, exchanges } = await openAttempts(t)
  const { searchParams } = await start(visitor)
  const state = searchParams.get('state') ?? ''
  assert.equal(await finish(visitor, `/callback?error=access_denied&state=${state}`), '/login?error=access_denied')
  assert.equal(await finish(visitor, `/callback?state=${state}`), '/login?error=missing_code')
  assert.equal(await finish(visitor, `/callback?code=c&state=${state.replace('_idp', '')}`), REFUSED)
  assert.equal(await finish(visitor, `/callback?code=c&state=${state}&state=${state}`), REFUSED)
  assert.equal(exchanges(), 0)
})

test('an attempt can be finished only once, and the session that it created stays valid', async t => {
  const { visitor, gateway, exchanges } = await openAttempts(t)
  const path = await authorize(visitor, await start(visitor))
  const cookie = `${ATTEMPT}=${visitor.cookies.get(ATTEMPT)}`
  assert.equal(await finish(visitor, path), '/')
  assert.equal(await finish(visitor, path), '/')
  assert.equal(await finish(gateway.visitor(), path, cookie), RESTARTED)
  assert.equal(exchanges(), 1)
  assert.equal((await visitor.get('/')).status, 200)
})

test('of three simultaneous callbacks of one attempt, exactly one signs in', async t => {
  const { visitor, gateway, exchanges } = await openAttempts(t)
  const path = await authorize(visitor, await start(visitor))
  const cookie = `${ATTEMPT}=${visitor.cookies.get(ATTEMPT)}`
  const locations = await Promise.all([1, 2, 3].map(() => finish(gateway.visitor(), path, cookie)))
  assert.deepEqual(locations.sort(), ['/', RESTARTED, RESTARTED])
  assert.equal(exchanges(), 1)
})

test('a failed token exchange uses up its attempt', async t => {
  const { visitor, provider, exchanges } = await openAttempts(t)
  const path = await authorize(visitor, await start(visitor))
  provider.answer('token', { kind: 'json', status: 500, body: {} }, 'once')
  assert.equal(await finish(visitor, path), '/login?error=token_error')
  assert.equal(await finish(visitor, path), RESTARTED)
  assert.equal(exchanges(), 1)
})

test('an attempt expires after ATTEMPT_MINUTES, even if the browser keeps its cookie', async t => {
  const { visitor, gateway, exchanges } = await openAttempts(t)
  const [early, late] = [await authorize(visitor, await start(visitor)), await authorize(visitor, await start(visitor))]
  const cookie = `${ATTEMPT}=${visitor.cookies.get(ATTEMPT)}`
  gateway.passSeconds(30 * 60 - 1)
  assert.equal(await finish(visitor, early, cookie), '/')
  gateway.passSeconds(1)
  assert.equal(await finish(gateway.visitor(), late, cookie), RESTARTED)
  assert.equal(exchanges(), 1)
})

test('sign-ins in several tabs can finish in any order, each on its own page', async t => {
  const { visitor } = await openAttempts(t)
  const paths: string[] = []
  for (const page of ['/one', '/two', '/three']) {
    await visitor.get(page)
    paths.push(await authorize(visitor, await start(visitor)))
  }
  const [one = '', two = '', three = ''] = paths
  assert.equal(await finish(visitor, three), '/three')
  assert.equal(await finish(visitor, one), '/one')
  assert.equal(await finish(visitor, two), '/two')
  assert.equal((await visitor.get('/')).status, 200)
})

test('PKCE sends the S256 challenge of a new verifier, which appears in no URL, log line or cookie', async t => {
  const { visitor, provider, gateway } = await openAttempts(t)
  const verifiers = new Set<string>()
  const seen: string[] = []
  for (let n = 0; n < 10; n++) {
    const address = await start(visitor)
    const { code_challenge, code_challenge_method, state, ...others } = Object.fromEntries(address.searchParams)
    assert.equal(address.searchParams.size, 7, 'each exactly once')
    assert.deepEqual(Object.keys(others).sort(), ['client_id', 'redirect_uri', 'response_type', 'scope'])
    assert.match(state ?? '', /_idp$/)
    assert.equal(code_challenge_method, 'S256')
    const path = await authorize(visitor, address)
    assert.equal(await finish(visitor, path), '/')
    seen.push(address.href, path)
    const verifier = provider.callsTo('token')[n]?.form.get('code_verifier') ?? ''
    assert.match(verifier, /^[\w.~-]{43,128}$/)
    assert.equal(createHash('sha256').update(verifier).digest('base64url'), code_challenge)
    verifiers.add(verifier)
  }
  assert.equal(verifiers.size, 10)
  const addresses = [...seen, ...provider.calls.map(({ path, query }) => `${path}?${query}`)].join('\n')
  const logged = JSON.stringify(gateway.lines)
  for (const verifier of verifiers) {
    assert.ok(!addresses.includes(verifier))
    assert.ok(!logged.includes(verifier))
    assert.ok(![...visitor.cookies.values()].some(value => value.includes(verifier)))
  }
})

test('with only PKCE=S256 set, no code is exchanged without a verifier', async t => {
  // A code that an attacker got without a challenge would be accepted by the provider (RFC 9700, 4.8).
  const { visitor, provider } = await openAttempts(t, { PKCE: 'S256' })
  const location = await finish(visitor, `/callback?code=${provider.codeFor()}&state=abc_idp`)
  assert.match(location ?? '', /^\/login\?error=(invalid_state|token_error|callback_error)$/)
  assert.ok(provider.callsTo('token').every(call => call.form.has('code_verifier')))
})

test('the script of the login page receives the attempt as JSON, with the attempt cookie', async t => {
  const { visitor } = await openAttempts(t)
  assert.match((await visitor.get('/login')).text, /data-remembered="true"/)
  const headers = { accept: 'application/json', 'sec-fetch-dest': 'empty', 'sec-fetch-site': 'same-origin' }
  const answer = await visitor.post('/login', '', { headers })
  assert.equal(answer.status, 200)
  const { state, location, ...more } = answer.json<{ state: string; location: string }>()
  assert.equal(new URL(location).searchParams.get('state'), state)
  assert.deepEqual(more, {})
  assert.equal(answer.setCookies.length, 1)
  assert.equal(await finish(visitor, await authorize(visitor, new URL(location))), '/')
})

test('an attempt cookie that was never issued does not become the secret of an attempt', async t => {
  const { gateway, exchanges } = await openAttempts(t)
  const [attacker, victim] = [gateway.visitor(), gateway.visitor()]
  for (const planted of ['x', 'attacker', '""', 'a'.repeat(3000)]) {
    const answer = await attacker.post('/login', '', { headers: { cookie: `${ATTEMPT}=${planted}` } })
    const path = await authorize(attacker, new URL(answer.headers.location ?? ''))
    assert.equal(await finish(victim, path, `${ATTEMPT}=${planted}`), RESTARTED, planted)
  }
  assert.equal(exchanges(), 0)
})

test('a visitor who does not press the sign-in button starts no attempt', async t => {
  const { gateway } = await openAttempts(t)
  for (let n = 0; n < 20; n++) {
    await gateway.visitor().get('/x')
    assert.deepEqual((await gateway.visitor().get('/login')).setCookies, [])
  }
})
