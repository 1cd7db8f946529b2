// GET /callback: the steps of specification 3.1 to 3.8, in this order.

import assert from 'node:assert/strict'
import test from 'node:test'
import { recordKey } from '../../src/session/ticket.ts'
import { type Client, type Response, signIn } from '../kit/client.ts'
import { startRedis } from '../kit/redis-server.ts'
import { setUp } from '../kit/set-up.ts'

const SESSION = 'menshen_session'
const SECURE_SESSION = '__Host-menshen_session'

interface Me {
  userInfo: Record<string, string>
  userRole: string
  expiresAt: number
}

function sessionCookie({ setCookies }: Response, name = SESSION) {
  const given = setCookies.filter(cookie => cookie.startsWith(`${name}=`))
  assert.equal(given.length, 1, 'one session cookie')
  const [pair = '', ...attributes] = (given[0] ?? '').split('; ')
  return { ticket: pair.slice(name.length + 1), attributes: attributes.sort() }
}

const withTicket = (client: Client, ticket: string, path = '/') =>
  client.get(path, { headers: { cookie: `${SESSION}=${ticket}` } })

const me = async (client: Client) => (await client.get('/_menshen/me')).json<Me>()

test('the callback checks error, then code, then state, and answers each with its exact Location', async t => {
  const { provider, visitor } = await setUp(t, { application: false })
  const errors = { absent: '', present: 'error=access_denied' }
  const codes = { absent: '', empty: 'code=', present: 'code=' }
  const states = { absent: '', empty: 'state=', wrong: 'state=abc_idp_', right: 'state=abc_idp' }
  for (const [errorIs, error] of Object.entries(errors))
    for (const [codeIs, code] of Object.entries(codes))
      for (const [stateIs, state] of Object.entries(states)) {
        const asked = codeIs === 'present' ? code + provider.codeFor() : code
        const query = [error, asked, state].filter(Boolean).join('&')
        const calls = provider.calls.length
        const answer = await visitor().get(`/callback?${query}`)
        const expected =
          errorIs === 'present'
            ? '/login?error=access_denied'
            : codeIs !== 'present'
              ? '/login?error=missing_code'
              : stateIs !== 'right'
                ? '/login?error=invalid_state'
                : '/'
        assert.deepEqual([answer.status, answer.headers.location], [302, expected], query)
        assert.equal(provider.calls.length - calls, expected === '/' ? 2 : 0, 'nothing is sent before the checks')
        assert.equal(answer.text, '')
        if (expected !== '/') assert.deepEqual(answer.setCookies, [])
      }
})

test('only the suffix of the state is checked', async t => {
  const { provider, visitor } = await setUp(t, { application: false })
  const outcomes: Record<string, string> = {
    _idp: '/',
    x_idp: '/',
    [`${'x'.repeat(3000)}_idp`]: '/',
    [encodeURIComponent('中文_idp')]: '/',
    'x%5Fidp': '/',
    x_IDP: '/login?error=invalid_state',
    xidp: '/login?error=invalid_state',
    'x_idp%20': '/login?error=invalid_state',
    'x_idp%00': '/login?error=invalid_state',
    'x_idp%0A': '/login?error=invalid_state',
    _idpx: '/login?error=invalid_state',
  }
  for (const [state, expected] of Object.entries(outcomes)) {
    const answer = await visitor().get(`/callback?code=${provider.codeFor()}&state=${state}`)
    assert.equal(answer.headers.location, expected, state)
  }
})

test("the provider's error code is passed to the login page, encoded and without its description", async t => {
  const { client, provider } = await setUp(t, { application: false })
  for (const error of [
    'access_denied',
    'a b&c=d#e',
    '中文',
    '"><script>',
    '\r\nSet-Cookie: x=1',
    '//evil.example',
    '%',
  ]) {
    const query = new URLSearchParams({ error, error_description: 'secret words', error_uri: 'https://evil.example' })
    const { status, headers, setCookies } = await client.get(`/callback?${query}`)
    assert.equal(status, 302)
    const { location = '' } = headers
    assert.ok(location.startsWith('/login?error='))
    assert.deepEqual([...new URL(location, 'http://x').searchParams], [['error', error]])
    assert.match(location, /^[\x21-\x7e]+$/)
    assert.deepEqual(setCookies, [])
  }
  const long = await client.get(`/callback?error=${'%E4%B8%AD'.repeat(1500)}`)
  assert.equal((await client.follow(long)).status, 200, 'the login page can take what the callback gives')
  assert.equal(provider.calls.length, 0)
})

test('repeated callback parameters are refused before any request to the provider', async t => {
  const { provider, visitor } = await setUp(t, { application: false })
  const queries = [
    'code=CODE&state=a_idp&state=b_idp',
    'code=CODE&state=b_idp&state=a_idp',
    'code=CODE&state=a_idp&state=wrong',
    'code=CODE&state=wrong&state=a_idp',
    'code=CODE&state=a_idp&state=a_idp',
    'code=CODE&code=other&state=a_idp',
    'code=other&code=CODE&state=a_idp',
    'code=CODE&code=CODE&state=a_idp',
    'error=a&error=b&code=CODE&state=a_idp',
    'code=CODE&%63ode=other&state=a_idp',
  ]
  for (const query of queries) {
    const answer = await visitor().get(`/callback?${query.replaceAll('CODE', provider.codeFor())}`)
    assert.match(answer.headers.location ?? '', /^\/login\?error=(callback_error|invalid_state)$/, query)
    assert.deepEqual(answer.setCookies, [])
  }
  assert.equal(provider.calls.length, 0)
})

test('the code is exchanged with exactly the five fields of specification 3.5, in the body only', async t => {
  const { client, provider, baseUrl } = await setUp(t, { application: false })
  const code = provider.codeFor()
  const asked = `/callback?code=${code}&state=abc_idp&extra=1`
  const headers = { 'x-forwarded-for': '1.2.3.4', 'x-trace': 'canary', cookie: 'other=canary' }
  await client.get(asked, { headers })
  const [call] = provider.callsTo('token')
  assert.ok(call)
  assert.deepEqual(Object.fromEntries(call.form), {
    grant_type: 'authorization_code',
    code,
    client_id: 'menshen-test',
    client_secret: 'secret-CANARY-1',
    redirect_uri: `${baseUrl}/callback`,
  })
  assert.equal(call.form.size, 5)
  assert.equal(call.query.size, 0)
  assert.match(call.headers['content-type'] ?? '', /^application\/x-www-form-urlencoded(;|$)/)
  assert.equal(call.headers.authorization, undefined)
  assert.equal(call.headers.cookie, undefined)
  assert.doesNotMatch(JSON.stringify(call.headers), /canary|1\.2\.3\.4/i)
})

test('user info is fetched with the access token in the Authorization header only', async t => {
  const { client, provider } = await setUp(t, { application: false })
  await signIn(client, provider)
  assert.deepEqual(
    provider.calls.map(call => call.endpoint),
    ['token', 'userinfo'],
  )
  const [call] = provider.callsTo('userinfo')
  assert.ok(call)
  assert.match(call.headers.authorization ?? '', /^Bearer at-CANARY-[\w-]+$/)
  assert.deepEqual([call.method, call.query.size, call.body], ['GET', 0, ''])
  const { authorization: _, ...others } = call.headers
  assert.doesNotMatch(JSON.stringify(others), /CANARY/)
})

test('over http, the session cookie is HttpOnly and SameSite=Lax, with Path=/ and no Domain', async t => {
  const { client, provider } = await setUp(t, { application: false })
  const { ticket, attributes } = sessionCookie(await signIn(client, provider))
  assert.match(ticket, /^[\w-]{43}$/, '256 bits')
  assert.deepEqual(attributes, ['HttpOnly', 'Max-Age=7200', 'Path=/', 'SameSite=Lax'])
})

test('over https, the session cookie is Secure and has the __Host- prefix, and no other name is accepted', async t => {
  const { client, provider } = await setUp(t, { env: { BASE_URL: 'https://app.example.com' }, application: false })
  await client.get('/deep')
  const answer = await signIn(client, provider)
  assert.equal(answer.headers.location, '/deep')
  const { ticket, attributes } = sessionCookie(answer, SECURE_SESSION)
  assert.deepEqual(attributes, ['HttpOnly', 'Max-Age=7200', 'Path=/', 'SameSite=Lax', 'Secure'])
  assert.equal(provider.callsTo('token')[0]?.form.get('redirect_uri'), 'https://app.example.com/callback')
  assert.equal((await client.get('/')).status, 200)
  assert.equal((await withTicket(client, ticket)).status, 302, 'the unprotected name does not count')
  for (const name of ['__host-menshen_session', '__HOST-menshen_session', '__Secure-menshen_session'])
    assert.equal((await client.get('/', { headers: { cookie: `${name}=${ticket}` } })).status, 302, name)
})

test('the response of the callback cannot be cached and sends no referrer', async t => {
  const { client, provider } = await setUp(t, { application: false })
  for (const answer of [await signIn(client, provider), await client.get('/callback')]) {
    assert.equal(answer.headers['cache-control'], 'no-store')
    assert.equal(answer.headers['referrer-policy'], 'no-referrer')
    assert.doesNotMatch(answer.headers.location ?? '', /code=|state=/)
  }
})

test('the session cookie expires with the access token, and after 168 hours at most', async t => {
  const { provider, visitor } = await setUp(t, { application: false })
  const lives: [expiresIn: number, maxAge: number][] = [
    [1, 1],
    [60, 60],
    [7199, 7199],
    [86_400, 86_400],
    [10 * 365 * 86_400, 168 * 3600],
    [2 ** 31 - 1, 168 * 3600],
  ]
  for (const [expiresIn, maxAge] of lives) {
    provider.behaviour.expiresIn = expiresIn
    const { attributes } = sessionCookie(await signIn(visitor(), provider))
    assert.ok(attributes.includes(`Max-Age=${maxAge}`), `${expiresIn}: ${attributes}`)
  }
})

test('only the exact username admin gets the developer role', async t => {
  const { provider, visitor } = await setUp(t, { application: false })
  const admin = visitor()
  await signIn(admin, provider, { username: 'admin', nickname: 'x' })
  assert.equal((await me(admin)).userRole, 'developer')
  assert.equal((await admin.get('/_menshen/console')).status, 200)

  const others = ['Admin', 'ADMIN', ' admin', 'admin ', 'ａｄｍｉｎ', 'admin\u0000', 'аdmin', 'admin\u200b', 'admin\n']
  for (const username of [...others, 'administrator', '"admin"', 'true', '0', 'developer', '__proto__']) {
    const client = visitor()
    await signIn(client, provider, { username, nickname: 'admin', sub: 'admin', email: 'admin' })
    assert.equal((await me(client)).userRole, 'common', JSON.stringify(username))
    assert.equal((await me(client)).userInfo.username, username)
    assert.equal((await client.get('/_menshen/console')).status, 403, JSON.stringify(username))
  }
})

test('no query parameter, cookie or header from the browser changes the role', async t => {
  const { client, provider } = await setUp(t, { application: false })
  await client.get(`/callback?code=${provider.codeFor()}&state=a_idp&userRole=developer&username=admin`)
  const cookie = `${[...client.cookies].map(pair => pair.join('=')).join('; ')}; userRole=developer; username=admin`
  const headers = { cookie, 'x-user': 'admin', 'x-role': 'developer', 'x-menshen-role': 'developer', username: 'admin' }
  const answer = await client.get('/_menshen/me?userRole=developer&userInfo[username]=admin', { headers })
  assert.equal(answer.json<Me>().userRole, 'common')
  assert.equal((await client.get('/_menshen/console?userRole=developer', { headers })).status, 403)
})

test('/_menshen/me returns the seven userInfo fields unchanged, the role and the expiry, and no token', async t => {
  const { client, provider } = await setUp(t, { application: false })
  const user = {
    sub: 's-1',
    ou_id: 'o-1',
    nickname: '张三 <b>',
    phone_number: '86 13800000000',
    ou_name: '研发部',
    email: 'z@example.com',
    username: 'zhangsan',
  }
  provider.answer('userinfo', {
    kind: 'json',
    body: { success: true, code: '200', data: { ...user, password: 'p-CANARY', toString: 'x', isAdmin: true } },
  })
  await signIn(client, provider)
  const answer = await client.get('/_menshen/me')
  assert.match(String(answer.headers['content-type']), /^application\/json/)
  assert.equal(answer.headers['cache-control'], 'no-store')
  const { userInfo, userRole, expiresAt, ...more } = answer.json<Me>()
  assert.deepEqual({ userInfo, userRole, more }, { userInfo: user, userRole: 'common', more: {} })
  assert.equal(expiresAt, Date.parse('2026-03-01T08:00:00Z') + 7_200_000)
  assert.doesNotMatch(answer.text + JSON.stringify(answer.headers), /CANARY/)
})

test('every sign-in issues a new ticket and invalidates the previous one', async t => {
  const { client, provider, visitor } = await setUp(t, { application: false })
  const first = sessionCookie(await signIn(client, provider)).ticket
  const second = sessionCookie(await signIn(client, provider, { username: 'lisi' })).ticket
  assert.notEqual(first, second)
  assert.equal((await withTicket(visitor(), first)).headers.location, '/login')
  assert.equal((await me(client)).userInfo.username, 'lisi')
})

test('a failed sign-in does not end the existing session', async t => {
  const { client, provider } = await setUp(t, { application: false })
  await signIn(client, provider)
  for (const query of ['error=access_denied', 'code=wrong&state=a_idp', 'code=', `code=${provider.codeFor()}`]) {
    const answer = await client.get(`/callback?${query}`)
    assert.match(answer.headers.location ?? '', /^\/login\?error=/)
    assert.deepEqual(answer.setCookies, [])
    assert.equal((await client.get('/')).status, 200, query)
  }
})

test('each replay of a callback makes one exchange, which the provider refuses, and the first session stays valid', async t => {
  const { client, provider, visitor } = await setUp(t, { application: false })
  const path = `/callback?code=${provider.codeFor()}&state=abc_idp`
  await client.get(path)
  const replays = [await visitor().get(path), await client.get(path)]
  for (const replay of replays) assert.equal(replay.headers.location, '/login?error=token_error')
  assert.equal(provider.callsTo('token').length, 3, 'one exchange for each request, none repeated')
  assert.equal((await client.get('/')).status, 200)
})

test('the same callback sent twice at once signs in at most once, and exactly once if the provider only refuses the repeated code', async t => {
  const { client, provider } = await setUp(t, { application: false })
  const path = `/callback?code=${provider.codeFor()}&state=abc_idp`
  // The provider revokes the tokens of a code that comes again: then none of the two may sign in.
  const locations = (await Promise.all([client.get(path), client.get(path)])).map(({ headers }) => headers.location)
  assert.equal(provider.callsTo('token').length, 2)
  assert.ok(locations.includes('/login?error=token_error'))

  const release = provider.hold('token')
  provider.answer('token', { kind: 'json', status: 400, body: { error: 'invalid_grant' } }, 'once')
  const again = `/callback?code=${provider.codeFor()}&state=abc_idp`
  const both = Promise.all([client.get(again), client.get(again)])
  await provider.called('token', 4)
  release()
  const [done, refused] = (await both).sort((a, b) => b.setCookies.length - a.setCookies.length)
  assert.deepEqual([done?.headers.location, refused?.headers.location], ['/', '/login?error=token_error'])
  assert.deepEqual(refused?.setCookies, [], 'the session of the other stays')
  assert.equal((await client.get('/')).status, 200)
})

test('a sign-in succeeds even if the previous session cannot be ended', async t => {
  const redis = await startRedis()
  t.after(() => redis.stop())
  const { client, provider, lines } = await setUp(t, { env: { STORE: `redis://${redis.host}` }, application: false })
  await signIn(client, provider)
  // What stands at its place now is nothing that can be read, or taken away, as a record.
  const key = `menshen:record:${recordKey(client.cookies.get(SESSION) ?? '')}`
  assert.equal(await redis.command('del', key), '1')
  await redis.command('lpush', key, 'x')
  const answer = await signIn(client, provider)
  assert.equal(answer.headers.location, '/')
  assert.equal((await client.get('/')).status, 200)
  assert.ok(lines.some(({ event }) => event === 'previous_session_left'))
})

test('a sign-in never adopts a session ticket that was not issued', async t => {
  const { client, provider, visitor } = await setUp(t, { application: false })
  for (const planted of ['A'.repeat(43), 'x', 'undefined', 'a.b.c', `${'A'.repeat(42)}=`, '../../x']) {
    const headers = { cookie: `${SESSION}=${planted}` }
    const answer = await client.get(`/callback?code=${provider.codeFor()}&state=a_idp`, { headers })
    assert.equal(answer.headers.location, '/')
    assert.notEqual(sessionCookie(answer).ticket, planted)
    assert.equal((await withTicket(visitor(), planted)).headers.location, '/login')
  }
})

test('the callback cookies stay below 200 characters, however large the user info is', async t => {
  const { client, provider } = await setUp(t, { application: false })
  const long = '长'.repeat(30_000)
  const answer = await signIn(client, provider, { nickname: long, email: long, ou_name: long, phone_number: long })
  assert.equal(answer.headers.location, '/')
  for (const cookie of answer.setCookies) assert.ok(cookie.length < 200)
  assert.equal((await me(client)).userInfo.nickname, long)
})

test('the user returns to the requested page after the first sign-in, and to the home page after the next', async t => {
  const { client, provider } = await setUp(t, { application: false })
  await client.get('/reports/2026?sort=a&b=%26#not-sent')
  const first = await signIn(client, provider)
  assert.equal(first.headers.location, '/reports/2026?sort=a&b=%26')
  assert.equal((await signIn(client, provider)).headers.location, '/', 'used once')
})

test('a failed sign-in keeps the requested page for the next attempt', async t => {
  const { client, provider } = await setUp(t, { application: false })
  await client.get('/reports')
  await client.get('/callback?error=access_denied')
  assert.equal((await signIn(client, provider)).headers.location, '/reports')
})

test('the fragment saved by the login page is appended to the requested page and cannot lead to another one', async t => {
  const { provider, visitor } = await setUp(t, { application: false })
  const fragments: Record<string, string> = {
    '%23chapter-2': '/wanted#chapter-2',
    '%23a%2520b%2Fc%3Fd%26e': '/wanted#a%20b/c?d&e',
    '%23%E4%B8%AD': '/wanted#%E4%B8%AD',
    '': '/wanted',
    '%23': '/wanted',
    '%': '/wanted',
    '%ff': '/wanted',
    '%2F%2Fevil.example': '/wanted#//evil.example',
    '%23%0D%0ASet-Cookie%3A%20x%3D1': '/wanted#Set-Cookie:%20x=1',
    '%40evil.example': '/wanted#@evil.example',
  }
  for (const [kept, expected] of Object.entries(fragments)) {
    const client = visitor()
    await client.get('/wanted')
    const cookie = `menshen_return=${client.cookies.get('menshen_return')}; menshen_fragment=${kept}`
    const path = `/callback?code=${provider.codeFor()}&state=a_idp`
    const answer = await client.get(path, { headers: { cookie } })
    assert.equal(answer.headers.location, expected, kept)
    const cleared = answer.setCookies.find(given => given.startsWith('menshen_fragment='))
    assert.match(cleared ?? '', /^menshen_fragment=; Path=\/callback; Max-Age=0/)
    assert.equal(answer.setCookies.length, 3, 'session, return path, fragment')
  }
})

test('the callback answers methods other than GET with 405 and does not redeem the code', async t => {
  const { client, provider } = await setUp(t, { application: false })
  for (const method of ['POST', 'HEAD', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'TRACE']) {
    const answer = await client.request({ method, path: `/callback?code=${provider.codeFor()}&state=a_idp` })
    assert.equal(answer.status, 405, method)
    assert.equal(answer.headers.allow, 'GET')
  }
  assert.equal(provider.calls.length, 0)
})

test('sign-in requests from one address are rate-limited, however the callback path is written', async t => {
  const { provider, visitor } = await setUp(t, { env: { RATE_LIMIT_PER_MINUTE: '3' }, application: false })
  for (const path of ['/callback', '/_menshen/../callback', '/_menshen/%2e%2e/callback']) {
    const statuses: number[] = []
    for (let n = 0; n < 5; n++) statuses.push((await visitor().get(`${path}?code=c&state=a_idp`)).status)
    assert.ok(!statuses.slice(3).includes(302), `${path}: ${statuses}`)
  }
  assert.equal(provider.callsTo('token').length, 3)
  const refused = await visitor().get('/callback')
  assert.equal(refused.status, 429)
  assert.match(String(refused.headers['retry-after']), /^\d+$/)
  assert.equal((await visitor().get('/login')).status, 200, 'the page itself still comes up')
})
