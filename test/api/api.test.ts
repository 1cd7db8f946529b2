// The API for administration, from outside: who may call it, what it answers, and what it refuses.

import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import test from 'node:test'
import { type Config, readSettings } from '../../src/index.ts'
import { createCore } from '../../src/menshen.ts'
import { zhCN } from '../../src/text/zh-CN.ts'
import { newKey } from '../../src/util/key-form.ts'
import { createClient } from '../kit/client.ts'
import { createCommandRunner } from '../kit/command-runner.ts'
import { listen } from '../kit/listen.ts'
import { scrape } from '../kit/scrape.ts'
import { setUpHosts } from '../kit/several-hosts.ts'
import { tempFolder } from '../kit/temp.ts'
import { createTestLog } from '../kit/test-log.ts'
import { until } from '../kit/until.ts'
import { raw } from '../proxy/raw.ts'
import { API, allPages, CONFIG, createCaller, isSignedIn, KEYS, setUpApi } from './set-up-api.ts'

const commands = createCommandRunner()
const bearer = (key: string) => ({ headers: { authorization: `Bearer ${key}` } })
const own = (key: string) => ({ headers: { 'x-menshen-key': key } })
const basic = (key: string) => ({ headers: { authorization: `Basic ${Buffer.from(`x:${key}`).toString('base64')}` } })
const errorOf = (answer: { json<T>(): T }) => answer.json<{ error: string }>().error

interface ApiSession {
  id: string
  user: string
  since: string
}

test('a session is listed with all its fields, and its id is the same as in the console and in the log', async t => {
  const { visitor, provider, call, user, eventsOf, passSeconds } = await setUpApi(t, {
    env: { TRUSTED_PROXIES: '127.0.0.1' },
  })
  const browser = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
  await visitor().get(`/callback?code=${provider.codeFor({ username: 'lisi', nickname: '李四' })}&state=abc_idp`, {
    headers: { 'user-agent': browser, 'x-forwarded-for': '192.0.2.7' },
  })
  passSeconds(60)
  const admin = await user('admin')
  const page = (await call('/sessions')).json<{ sessions: Record<string, string>[]; next?: string }>()
  assert.deepEqual(Object.keys(page), ['sessions'])
  const [own, session, ...more] = page.sessions
  assert.deepEqual([own?.user, own?.role, more.length], ['admin', 'developer', 0])
  const { id = '', ...fields } = session ?? {}
  assert.deepEqual(fields, {
    user: 'lisi',
    name: '李四',
    role: 'common',
    provider: 'default',
    since: '2026-03-01T08:00:00.000Z',
    seen: '2026-03-01T08:00:00.000Z',
    expires: '2026-03-01T10:00:00.000Z',
    address: '192.0.2.7',
    browser,
  })
  assert.match(id, /^[\w-]{43}$/)
  assert.ok((await admin.get('/_menshen/console/sessions')).text.includes(`value="${id}"`))
  assert.equal(eventsOf('sign_in')[0]?.session, id.slice(0, 10))
})

test('no API response contains a session ticket, a token of the provider or a personal key', async t => {
  const { user, call, makeKey, provider } = await setUpApi(t)
  const client = await user('zhangsan')
  const key = await makeKey(client)
  const tokens = provider.livingTokens
  assert.equal(tokens.length, 2, 'an access token and a refresh token')
  await until(async () => (await call('/audit')).text.includes('key_created'))
  const answers = await Promise.all(['/sessions', '/keys', '/audit', '/openapi.json'].map(path => call(path)))
  answers.push(await call('/sessions?user=zhangsan', { method: 'DELETE' }))
  const text = answers.map(answer => answer.text).join()
  for (const token of tokens) assert.ok(!text.includes(token))
  const ticket = client.cookies.get('menshen_session') ?? assert.fail()
  assert.ok(!text.includes(ticket))
  assert.ok(!text.includes(key))
  assert.doesNotMatch(text, /mk_/)
})

test('the API accepts a machine key as a bearer token or in X-Menshen-Key, and no cookie, password, query, body or other key', async t => {
  const { user, call, makeKey, eventsOf, lines } = await setUpApi(t, { env: { ACCESS_LOG: 'true' } })
  const developer = await user('admin')
  const personal = await makeKey(developer)
  for (const request of [bearer(KEYS.admin), own(KEYS.admin), { headers: { authorization: `bearer  ${KEYS.admin}` } }])
    assert.equal((await call('/sessions', request)).status, 200)
  assert.equal(
    (await call('/sessions', { headers: { ...basic('app').headers, ...own(KEYS.admin).headers } })).status,
    200,
  )
  const cookie = { cookie: `menshen_session=${developer.cookies.get('menshen_session')}` }
  const refused: Record<string, Record<string, string>> = {
    nothing: {},
    'a session of a developer': cookie,
    'a session and a wrong key': { ...cookie, ...bearer(newKey()).headers },
    'a password': basic(KEYS.admin).headers,
    'a key without a scheme': { authorization: KEYS.admin },
    'a made-up key': bearer(newKey()).headers,
    'a personal key': bearer(personal).headers,
    'a machine without api': bearer(KEYS.plain).headers,
    'an expired machine': bearer(KEYS.expired).headers,
    'two keys that differ': { ...bearer(KEYS.admin).headers, ...own(KEYS.audit).headers },
    'a key with another letter': bearer(`${KEYS.admin}x`).headers,
    'an empty header': { 'x-menshen-key': '' },
    'a token': { authorization: 'Bearer eyJhbGciOiJub25lIn0.e30.' },
  }
  const paths = ['/sessions', '/sessions?user=admin', '/keys', '/audit', '/openapi.json', '/nothing', '', '/']
  for (const [name, headers] of Object.entries(refused))
    for (const path of paths) {
      const answer = await call(path, { headers })
      assert.equal(answer.status, 401, `${name} ${path}`)
      assert.equal(errorOf(answer), 'invalid_key')
      assert.equal(answer.headers['www-authenticate'], 'Bearer realm="menshen"')
    }
  for (const path of [`/sessions?key=${KEYS.admin}`, `/sessions?access_token=${KEYS.admin}`])
    for (const headers of [{}, cookie]) assert.equal((await call(path, { headers })).status, 401, path)
  const posted = { method: 'POST', headers: cookie, body: `key=${KEYS.admin}` }
  assert.equal((await call('/sessions', posted)).status, 401)
  for (const method of ['DELETE', 'PUT', 'OPTIONS', 'HEAD'])
    assert.equal((await call('/sessions?user=admin', { method, headers: cookie })).status, 401, method)
  assert.ok(await isSignedIn(developer))
  assert.doesNotMatch(JSON.stringify(lines), /mk_/)
  assert.ok(eventsOf('request').some(({ user }) => user === 'machine:admin'))
})

test('a refused key is logged with the reason, the call and the machine if it is known, and the response explains why', async t => {
  const { call, user, makeKey, eventsOf } = await setUpApi(t, { env: { PAGE_LANGUAGE: 'en' } })
  const personal = await makeKey(await user())
  const messages = []
  for (const key of [newKey(), personal, KEYS.plain, KEYS.expired, 'mk_short'])
    messages.push((await call('/sessions', bearer(key))).json<{ message: string }>().message)
  const both = { headers: { ...bearer(KEYS.admin).headers, ...own(KEYS.audit).headers } }
  for (const request of [both, basic(KEYS.admin)])
    messages.push((await call('/sessions', request)).json<{ message: string }>().message)
  assert.deepEqual(messages, [
    'This key is not in `machines` of the configuration. Personal keys are not accepted here.',
    'This key is not in `machines` of the configuration. Personal keys are not accepted here.',
    'The machine of this key has no `api` in the configuration.',
    'This key has expired: see `expires` of its machine in the configuration.',
    'This is not a key. A key is mk_ and 43 characters, without quotes or spaces.',
    'This request has two different keys. Send one of them.',
    'This request has no key. Send the key of a machine with `api` as “Authorization: Bearer …” or “X-Menshen-Key: …”.',
  ])
  assert.deepEqual(
    eventsOf('key_refused').map(({ reason, user, method, path }) => [reason, user, method, path]),
    [
      ['unknown', undefined],
      ['unknown', undefined],
      ['not_accepted', 'machine:plain'],
      ['expired', 'machine:expired'],
      ['malformed', undefined],
      ['several', undefined],
    ].map(row => [...row, 'GET', `${API}/sessions`]),
  )
})

test('the id of a session or key is shortened to ten characters in every log line about an API call', async t => {
  const { call, user, lines } = await setUpApi(t, { env: { ACCESS_LOG: 'true', PAGE_LANGUAGE: 'en' } })
  await user('zhangsan')
  const [{ id } = { id: '' }] = (await call('/sessions')).json<{ sessions: ApiSession[] }>().sessions
  const key = 'c0ffee'.repeat(11).slice(0, 64)
  const end = (path: string, from = KEYS.admin) => call(path, { method: 'DELETE', ...bearer(from) })
  const messageOf = (answer: { json<T>(): T }) => answer.json<{ message: string }>().message
  assert.equal((await end(`/sessions/${id}`, KEYS.audit)).status, 403)
  assert.equal((await end(`/sessions/${id}`, newKey())).status, 401)
  // What the log shows is not an id.
  assert.match(
    messageOf(await end(`/sessions/${id.slice(0, 10)}`)),
    /id is not complete\. The log shows only its first/,
  )
  assert.equal((await end(`/sessions/${id}`)).status, 204)
  assert.match(messageOf(await end(`/keys/${key}`)), /No personal key has this id/)
  assert.match(
    messageOf(await call('/session')),
    /Available: \/_menshen\/api\/sessions, .*\/_menshen\/api\/openapi\.json\.$/,
  )
  // Anywhere in the path: an id or a key that was pasted into the wrong place is not a resource.
  const pasted = newKey()
  for (const path of [`/${pasted}`, `/keys/${pasted}`, `/keys/x/${pasted}`, `/${id}/sessions`])
    assert.ok([401, 404].includes((await end(path, newKey())).status), path)
  const paths = lines.map(({ fields }) => String(Object(fields).path))
  const short = (text: string) => text.slice(0, 10)
  for (const shown of [
    `/sessions/${short(id)}`,
    `/keys/${short(key)}`,
    `/${short(pasted)}`,
    `/keys/x/${short(pasted)}`,
  ])
    assert.ok(paths.includes(API + shown), shown)
  for (const secret of [id, key, pasted]) assert.ok(!JSON.stringify(lines).includes(secret), secret)
})

test('a machine can use only the parts of the API that its configuration names, and every refusal is audited with its name', async t => {
  const { call, user, eventsOf } = await setUpApi(t)
  const refusals: string[] = []
  const zhangsan = await user('zhangsan')
  const [session] = (await call('/sessions')).json<{ sessions: ApiSession[] }>().sessions
  const calls = {
    sessions: ['GET /sessions', 'DELETE /sessions?user=nobody', `DELETE /sessions/${'x'.repeat(43)}`],
    keys: ['GET /keys', `DELETE /keys/${'0'.repeat(64)}`],
    audit: ['GET /audit'],
  }
  for (const [scope, lines] of Object.entries(calls))
    for (const line of lines)
      for (const machine of ['sessions', 'keys', 'audit'] as const) {
        const [method = '', path = ''] = line.split(' ')
        const answer = await call(path, { method, ...bearer(KEYS[machine]) })
        if (machine === scope) assert.ok([200, 404].includes(answer.status), line)
        else {
          assert.deepEqual([answer.status, errorOf(answer)], [403, 'insufficient_scope'], `${machine} ${line}`)
          refusals.push(`machine:${machine} ${method}`)
        }
      }
  const ended = await call(`/sessions/${session?.id}`, { method: 'DELETE', ...bearer(KEYS.audit) })
  assert.equal(ended.status, 403)
  // Before the method, the parameters and the id are looked at.
  assert.equal((await call('/sessions?x=1', { method: 'PATCH', ...bearer(KEYS.audit) })).status, 403)
  refusals.push('machine:audit DELETE', 'machine:audit PATCH')
  assert.ok(await isSignedIn(zhangsan))
  for (const machine of ['sessions', 'keys', 'audit'] as const)
    assert.equal((await call('/openapi.json', bearer(KEYS[machine]))).status, 200)
  const [refused] = eventsOf('refused')
  assert.equal(refused?.user, 'machine:keys')
  assert.equal(refused?.reason, 'insufficient_scope')
  assert.equal(refused?.key, 'machine')
  assert.equal(eventsOf('refused').length, refusals.length)
  type Refusal = Record<'user' | 'method' | 'reason', string>
  const audited = async () => (await call('/audit?event=refused&limit=200')).json<{ events: Refusal[] }>().events
  await until(async () => (await audited()).length >= refusals.length)
  const found = (await audited()).map(({ user, method, reason }) => `${user} ${method} ${reason}`)
  assert.deepEqual(found.sort(), refusals.map(refusal => `${refusal} insufficient_scope`).sort())
})

test('a machine with networks is refused from other addresses, by the API and by rules, whatever X-Forwarded-For contains', async t => {
  const { call, url, eventsOf } = await setUpApi(t, { env: { TRUSTED_PROXIES: '127.0.0.1' } })
  const from = (address: string, key = KEYS.office) => ({
    headers: { 'x-menshen-key': key, 'x-forwarded-for': address },
  })
  for (const address of ['192.0.2.9', '2001:db8::1', '::ffff:192.0.2.1'])
    assert.equal((await call('/sessions', from(address))).status, 200, address)
  for (const address of ['198.51.100.1', '2001:db9::1', '192.0.2.9, 198.51.100.1', 'unknown', ''])
    for (const path of ['/sessions', '/audit', '/openapi.json', '/nothing']) {
      const answer = await call(path, from(address))
      assert.deepEqual([answer.status, errorOf(answer)], [403, 'outside_network'], `${address} ${path}`)
    }
  assert.equal((await call('/sessions', from('198.51.100.1', newKey()))).status, 401)
  assert.equal(eventsOf('refused')[0]?.reason, 'outside_network')
  const visit = (address: string, key: string) =>
    createClient(url).get('/api', { headers: { 'x-menshen-key': key, 'x-forwarded-for': address } })
  assert.equal((await visit('192.0.2.9', KEYS.office)).status, 200)
  const refused = await visit('198.51.100.1', KEYS.office)
  assert.deepEqual([refused.status, errorOf(refused)], [401, 'key_not_accepted'])
  assert.equal(eventsOf('key_refused').at(-1)?.reason, 'outside_network')
  assert.equal((await visit('198.51.100.1', KEYS.plain)).status, 200, 'a machine without networks')
})

test('made-up keys are rate-limited with 429 and Retry-After, while a valid key from the same address works', async t => {
  const { call, eventsOf } = await setUpApi(t, { env: { RATE_LIMIT_PER_MINUTE: '5' } })
  const statuses: number[] = []
  for (let n = 0; n < 8; n++) statuses.push((await call('/sessions', bearer(newKey()))).status)
  assert.deepEqual(statuses, [401, 401, 401, 401, 401, 429, 429, 429])
  const limited = await call('/sessions', bearer(KEYS.plain))
  assert.deepEqual([limited.status, errorOf(limited), limited.headers['retry-after']], [429, 'too_many', '60'])
  assert.equal((await call('/sessions')).status, 200)
  assert.equal(eventsOf('rate_limited')[0]?.kind, 'ticket')
})

test('unknown paths get 404 and unsupported methods get 405 with Allow, both with a JSON error, and neither ends a session', async t => {
  const { call, user, url } = await setUpApi(t)
  const zhangsan = await user('zhangsan')
  const [{ id } = { id: '' }] = (await call('/sessions')).json<{ sessions: ApiSession[] }>().sessions
  for (const path of [
    '',
    '/',
    '/session',
    '/Sessions',
    '/sessions/',
    `/sessions/${id}/`,
    `/sessions/${id}/x`,
    '/audit/1',
    '/openapi',
    '/openapi.json/',
    '/__proto__',
    '/constructor/toString',
  ])
    for (const method of ['GET', 'DELETE', 'POST', 'OPTIONS']) {
      const answer = await call(path, { method, ...bearer(KEYS.admin) })
      const isResource = /^\/sessions\/[^/]+$/.test(path)
      const expected = isResource && method !== 'DELETE' ? [405, 'method_not_allowed'] : [404, 'not_found']
      assert.deepEqual([answer.status, errorOf(answer)], expected, `${method} ${path}`)
    }
  for (const path of [`/sessions/${id}x`, `/sessions/${'a'.repeat(43)}`, '/sessions/~', `/sessions/%${id}`])
    assert.ok([400, 404].includes((await call(path, { method: 'DELETE' })).status), path)
  for (const odd of [
    '%00',
    '{id}',
    '%2e%2e',
    '..',
    '%2f',
    'a%5cb',
    '%ff',
    `${id}%00`,
    '%E5%BC%A0',
    'a;b',
    "'--",
    '%22%3E%3Cscript%3E',
  ]) {
    const answer = await call(`/sessions/${odd}`, { method: 'DELETE' })
    assert.ok([400, 404].includes(answer.status), odd)
    assert.doesNotMatch(answer.text, /script/)
  }
  const allow = {
    '/sessions': 'GET, HEAD, DELETE',
    '/keys': 'GET, HEAD',
    '/audit': 'GET, HEAD',
    '/openapi.json': 'GET, HEAD',
  }
  for (const [path, methods] of Object.entries({ ...allow, [`/sessions/${id}`]: 'DELETE', '/keys/x': 'DELETE' }))
    for (const method of ['PUT', 'PATCH', 'POST', 'OPTIONS', 'TRACE', 'PROPFIND']) {
      const answer = await call(path, {
        method,
        headers: { ...bearer(KEYS.admin).headers, origin: 'https://evil.example' },
      })
      assert.deepEqual([answer.status, answer.headers.allow], [405, methods], `${method} ${path}`)
      assert.equal(errorOf(answer), 'method_not_allowed')
    }
  assert.ok(await isSignedIn(zhangsan))
  const head = await call('/sessions', { method: 'HEAD', ...bearer(KEYS.admin) })
  assert.deepEqual([head.status, head.text], [200, ''])
  const tooLong = await call(`/sessions/${'a'.repeat(5000)}`, { method: 'DELETE' })
  assert.equal(tooLong.status, 414)
  const upgrade = await raw(
    url,
    `GET ${API}/sessions HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nX-Menshen-Key: ${KEYS.admin}\r\n\r\n`,
  )
  assert.match(String(upgrade), /404/)
})

test('an unknown, repeated, empty, too long or invalid parameter gets 400 with its name, and no session is ended', async t => {
  const { call, user } = await setUpApi(t, { env: { PAGE_LANGUAGE: 'auto' } })
  const zhangsan = await user('zhangsan')
  const cases = [
    ...['limit=0', 'limit=201', 'limit=abc', 'limit=1e2', 'limit=-1', 'limit=1.0', 'limit=+1', 'limit=050'],
    ...['limit=', 'limit=1&limit=2', 'limit=%EF%BC%95', 'limit=0x10', `limit=${'1'.repeat(400)}`, 'limit=NaN'],
    ...['after=', 'after=x', 'after=1:a', 'after=%00', `after=${'a'.repeat(501)}`, 'after=1&after=2', 'after=a.b'],
    ...[`after=${'a'.repeat(40)}.${'a'.repeat(22)}`, 'after=..%2F', 'after=%F0%9F%92%A9'],
    ...[
      'user=',
      'user=a&user=b',
      `user=${'a'.repeat(501)}`,
      'user=%ff',
      'users=a',
      'User=a',
      'user[]=a',
      '=a',
      'constructor=1',
    ],
  ]
  for (const query of cases)
    for (const path of ['/sessions', '/keys', '/audit']) {
      const answer = await call(`${path}?${query}`)
      assert.deepEqual([answer.status, errorOf(answer)], [400, 'bad_request'], `${path}?${query}: ${answer.text}`)
    }
  for (const query of [
    'event=',
    'event=nothing',
    'event=request',
    'since=',
    'since=yesterday',
    'since=2026-02-31',
    'since=2026-03-01T08:00',
    'since=1794880000000',
  ])
    assert.equal((await call(`/audit?${query}`)).status, 400, query)
  const misspelt = { headers: { ...bearer(KEYS.admin).headers, 'accept-language': 'en' } }
  assert.match((await call('/audit?event=sign_in_faild', misspelt)).text, /an audited event, probably sign_in_failed\./)
  for (const query of ['event=sign_in', 'since=2026-03-01']) {
    assert.equal((await call(`/sessions?${query}`)).status, 400, query)
    assert.equal((await call(`/audit?${query}`)).status, 200, query)
  }
  for (const query of [
    '',
    '?',
    '?user=',
    '?user=zhangsan&limit=1',
    '?user=zhangsan&user=lisi',
    '?username=zhangsan',
    '?user=zhangsan&all=1',
    '?user=%ff',
  ])
    assert.equal((await call(`/sessions${query}`, { method: 'DELETE' })).status, 400, query)
  assert.equal((await call('/openapi.json?x=1')).status, 400)
  const [{ id } = { id: '' }] = (await call('/sessions?limit=200')).json<{ sessions: ApiSession[] }>().sessions
  assert.equal((await call(`/sessions/${id}?user=zhangsan`, { method: 'DELETE' })).status, 400)
  assert.ok(await isSignedIn(zhangsan))
  const { text } = await call('/sessions?limit=0', {
    headers: { ...bearer(KEYS.admin).headers, 'accept-language': 'en' },
  })
  assert.match(text, /The parameter limit is missing, repeated or invalid\. Expected: a whole number from 1 to 200\./)
  assert.match((await call('/sessions?limit=0')).text, /参数 limit 缺失、重复或无效，应为：1 到 200 的整数。/)
  assert.match((await call('/none')).text, /此地址不存在。可用的有：\/_menshen\/api\/sessions、\/_menshen\/api\//)
})

test('a session is ended once by its id, with or without a body; its user learns why, and the audit trail names the machine', async t => {
  const { call, user, eventsOf } = await setUpApi(t)
  const [zhangsan, lisi] = [await user('zhangsan'), await user('lisi')]
  const [{ id } = { id: '' }] = (await call('/sessions?user=zhangsan')).json<{ sessions: ApiSession[] }>().sessions
  const request = { method: 'DELETE', ...bearer(KEYS.sessions), body: JSON.stringify({ user: 'lisi' }) }
  assert.equal((await call(`/sessions/${id}`, request)).status, 204)
  assert.deepEqual([await isSignedIn(zhangsan), await isSignedIn(lisi)], [false, true])
  const again = await call(`/sessions/${id}`, { ...request })
  assert.deepEqual([again.status, errorOf(again)], [404, 'not_found'])
  const reasonShown = async () => (await zhangsan.get('/login')).text.includes(zhCN['ended.ended_by_developer'])
  assert.deepEqual([await reasonShown(), await reasonShown()], [true, false])
  const [ended, ...more] = eventsOf('session_ended')
  assert.deepEqual(more, [])
  const { session, by, byUser, ended: count } = ended ?? {}
  assert.deepEqual(
    [session, ended?.user, by, byUser, count],
    [id.slice(0, 10), 'zhangsan', 'machine', 'machine:sessions', 1],
  )
  assert.equal(typeof ended?.requestId, 'string')
  await until(async () => (await call('/audit?event=session_ended')).text.includes('machine:sessions'))
  const { events: found } = (await call('/audit?event=session_ended&user=machine%3Asessions')).json<{
    events: Record<string, unknown>[]
  }>()
  assert.equal(found.length, 1)
  const { time, level, event, user: whose } = found[0] ?? {}
  assert.deepEqual([time, level, event, whose], ['2026-03-01T08:00:00.000Z', 'info', 'session_ended', 'zhangsan'])
  const [admin] = [await user('admin')]
  const page = (await admin.get('/_menshen/console/audit?event=session_ended')).text
  assert.match(page, /机器（API）.*machine:sessions/s)
  const [other] = (await call('/sessions?user=lisi')).json<{ sessions: ApiSession[] }>().sessions
  assert.equal((await call(`/sessions/${other?.id}`, { method: 'DELETE', ...bearer(KEYS.sessions) })).status, 204)
  assert.equal(await isSignedIn(lisi), false)
})

test('personal keys are listed page by page without the key itself, and only their exact id revokes them', async t => {
  const { call, user, makeKey, eventsOf, visitor, passSeconds } = await setUpApi(t)
  const [zhangsan, lisi] = [await user('zhangsan'), await user('lisi')]
  const key = await makeKey(zhangsan, '笔记本')
  await makeKey(zhangsan, 'ci')
  const other = await makeKey(lisi, 'lisi')
  const use = (key: string) => visitor().get('/api', { headers: { 'x-menshen-key': key } })
  passSeconds(60)
  assert.equal((await use(key)).status, 200)
  type Key = Record<'id' | 'user' | 'name' | 'created' | 'expires' | 'lastUsed', string>
  const listed = await allPages<Key>(call, 'keys', 'limit=1')
  assert.deepEqual(listed.map(({ name }) => name).sort(), ['ci', 'lisi', '笔记本'])
  const ofUser = await allPages<Key>(call, 'keys', 'user=zhangsan&limit=1')
  assert.deepEqual(ofUser.map(({ user, name }) => `${user} ${name}`).sort(), ['zhangsan ci', 'zhangsan 笔记本'])
  await until(async () => (await call('/keys?user=zhangsan')).text.includes('lastUsed'))
  const all = (await call('/keys?user=zhangsan')).json<{ keys: Key[] }>().keys
  const { id = '', ...fields } = all.find(({ name }) => name === '笔记本') ?? {}
  assert.deepEqual(fields, {
    user: 'zhangsan',
    provider: 'default',
    name: '笔记本',
    created: '2026-03-01T08:00:00.000Z',
    expires: '2026-03-31T08:00:00.000Z',
    lastUsed: '2026-03-01T08:01:00.000Z',
  })
  for (const odd of ['x', id.toUpperCase(), id.slice(1), `${id}0`, 'personal-key', '0'.repeat(64)])
    assert.equal((await call(`/keys/${odd}`, { method: 'DELETE' })).status, 404, odd)
  assert.equal((await call(`/keys/${id}`, { method: 'DELETE', ...own(KEYS.keys) })).status, 204)
  assert.equal((await call(`/keys/${id}`, { method: 'DELETE' })).status, 404)
  assert.deepEqual([(await use(key)).status, (await use(other)).status], [401, 200])
  assert.ok(await isSignedIn(zhangsan))
  const [revoked, ...more] = eventsOf('key_revoked')
  assert.deepEqual(more, [])
  assert.deepEqual(
    [revoked?.user, revoked?.name, revoked?.by, revoked?.byUser],
    ['zhangsan', '笔记本', 'machine', 'machine:keys'],
  )
  assert.deepEqual((await call('/keys?user=nobody')).json(), { keys: [] })
})

test('sessions are listed and ended for exactly the given username, whatever characters it contains', async t => {
  const { call, user } = await setUpApi(t)
  const names = [
    'lisi',
    'Lisi',
    'li si',
    'li+si',
    '李四',
    'li&si=1',
    'a/b',
    'x%00',
    '<b>',
    "o'neil",
    'ﬁ',
    'e\u0301',
    'é',
  ]
  const clients = new Map<string, Awaited<ReturnType<typeof user>>>()
  for (const name of names) clients.set(name, await user(name))
  for (const name of names) {
    const { sessions } = (await call(`/sessions?user=${encodeURIComponent(name)}`)).json<{ sessions: ApiSession[] }>()
    assert.deepEqual(
      sessions.map(session => session.user),
      [name],
    )
  }
  for (const [n, name] of names.entries()) {
    const answer = await call(`/sessions?user=${encodeURIComponent(name)}`, { method: 'DELETE' })
    assert.deepEqual(answer.json(), { ended: 1, keys: 0 })
    for (const [m, other] of names.entries())
      assert.equal(await isSignedIn(clients.get(other) ?? assert.fail()), m > n, `${name} ${other}`)
  }
})

test('pagination is stable while sessions start and end: none is listed twice, and none that remains is missed', async t => {
  const { call, user, passSeconds } = await setUpApi(t)
  for (const query of ['limit=7', 'user=zhangsan&limit=7']) {
    const before: string[] = []
    for (let n = 0; n < 40; n++) {
      await user('zhangsan')
      // Several in the same millisecond, too.
      if (n % 3 > 0) passSeconds(1)
    }
    const known = (await allPages<ApiSession>(call, 'sessions', query.replace('7', '200'))).map(({ id }) => id)
    before.push(...known)
    const gone = new Set<string>()
    const listed = await allPages<ApiSession>(call, 'sessions', query, async page => {
      passSeconds(1)
      await user('zhangsan')
      const { id = '' } = page.at(-1) ?? {}
      gone.add(id)
      await call(`/sessions/${id}`, { method: 'DELETE' })
      const later = before.at(-gone.size - 1) ?? ''
      gone.add(later)
      await call(`/sessions/${later}`, { method: 'DELETE' })
    })
    const ids = listed.map(({ id }) => id)
    assert.equal(new Set(ids).size, ids.length)
    assert.deepEqual(
      ids.filter(id => !gone.has(id)),
      before.filter(id => !gone.has(id)),
    )
    const times = listed.map(({ since }) => since)
    assert.deepEqual(times, [...times].sort().reverse(), 'the newest first')
  }
})

test('the next cursor of one query is not accepted by another', async t => {
  const { call, user } = await setUpApi(t)
  for (const name of ['zhangsan', 'zhangsan', 'lisi']) await user(name)
  await until(async () => (await call('/audit')).text.includes('lisi'))
  const nextOf = async (path: string) =>
    encodeURIComponent((await call(path)).json<{ next: string }>().next ?? assert.fail(path))
  const paths = [
    '/sessions?limit=1',
    '/sessions?user=zhangsan&limit=1',
    '/audit?limit=1',
    '/audit?limit=1&event=sign_in',
  ]
  for (const from of paths)
    for (const to of paths) {
      const { status } = await call(`${to}&after=${await nextOf(from)}`)
      assert.equal(status, from === to ? 200 : 400, `${from} ${to}`)
    }
})

test('the audit trail is listed newest first, page by page, and can be filtered by user, event and time', async t => {
  const { call, user, passSeconds } = await setUpApi(t)
  for (const name of ['a', 'b', 'c']) {
    await user(name)
    passSeconds(3600 * 24)
  }
  type Event = Record<'time' | 'event' | 'user', string>
  await until(async () => (await call('/audit?event=sign_in&user=c')).text.includes('"c"'))
  const all = await allPages<Event>(
    (path, request) => call(path.replace('/events', '/audit'), request),
    'events',
    'event=sign_in&limit=1',
  )
  assert.deepEqual(
    all.map(({ user }) => user),
    ['c', 'b', 'a'],
  )
  const since = async (time: string) =>
    (await call(`/audit?event=sign_in&since=${encodeURIComponent(time)}`)).json<{ events: Event[] }>().events.length
  assert.deepEqual(
    [await since('2026-03-02'), await since('2026-03-02T08:00:00.001Z'), await since('2026-03-02T16:00:00+08:00')],
    [2, 1, 2],
  )
  await until(async () => (await call('/audit?event=key_used')).text.includes('machine:admin'))
})

test('with several hosts, the API exists only at BASE_URL', async t => {
  const scene = await setUpHosts(t, { config: { machines: CONFIG.machines } as Config })
  const ask = (host: string) =>
    createClient(scene.url).get(`${API}/sessions`, { headers: { host, ...bearer(KEYS.admin).headers } })
  assert.equal((await ask('portal.test')).status, 200)
  for (const host of ['wiki.test', 'grafana.test']) {
    const { status, text } = await ask(host)
    assert.equal(status, 404, host)
    assert.equal(JSON.parse(text).error, 'not_found')
  }
})

test('a forward-auth check of an API path gets 401 or 404 and never calls the API', async t => {
  const { user, url, eventsOf } = await setUpApi(t, { env: { TRUSTED_PROXIES: '127.0.0.1' } })
  const zhangsan = await user('zhangsan')
  const target = `${API}/sessions?user=zhangsan`
  const key = bearer(KEYS.admin).headers
  const client = createClient(url)
  const checks = [
    client.get('/_menshen/check', { headers: { ...key, 'x-original-uri': target, 'x-original-method': 'DELETE' } }),
    client.get('/_menshen/forward', { headers: { ...key, 'x-forwarded-uri': target, 'x-forwarded-method': 'DELETE' } }),
    client.request({ method: 'DELETE', path: `/_menshen/authz${target}`, headers: key }),
  ]
  for (const { status, text } of await Promise.all(checks)) {
    assert.ok([401, 404].includes(status), String(status))
    assert.doesNotMatch(text, /"ended"/)
  }
  assert.ok(await isSignedIn(zhangsan))
  assert.deepEqual(eventsOf('session_ended'), [])
})

test('the API ignores request bodies, however large', async t => {
  const { call, user } = await setUpApi(t)
  const zhangsan = await user('zhangsan')
  const body = 'user=zhangsan&'.repeat(50_000)
  assert.equal((await call('/sessions', { method: 'DELETE', body })).status, 400)
  assert.ok(await isSignedIn(zhangsan))
  assert.equal((await call('/sessions', { method: 'POST', body })).status, 405)
  assert.deepEqual((await call('/sessions?user=zhangsan', { method: 'DELETE', body })).json(), { ended: 1, keys: 0 })
})

test('metrics count the sign-outs by machines and the sessions that they end', async t => {
  const { call, user, url } = await setUpApi(t, { env: { METRICS_FROM: '127.0.0.1' } })
  for (let n = 0; n < 3; n++) await user('zhangsan')
  await call('/sessions?user=zhangsan', { method: 'DELETE' })
  const { value } = await scrape(url)
  assert.equal(value('menshen_sign_outs_total{by="machine"}'), 1)
  assert.equal(value('menshen_sessions_ended_total{reason="api"}'), 3)
})

test('a page of API results has 50 entries by default', async t => {
  const { call, user } = await setUpApi(t)
  for (let n = 0; n < 51; n++) await user(`user-${n}`)
  for (const [query, count] of [
    ['', 50],
    ['?limit=200', 51],
    ['?limit=3', 3],
  ] as const) {
    const { sessions, next } = (await call(`/sessions${query}`)).json<{ sessions: unknown[]; next?: string }>()
    assert.deepEqual([sessions.length, next === undefined], [count, count === 51])
  }
})

test('a configuration reload changes the permissions of a machine immediately', async t => {
  const { log } = createTestLog()
  const settings = readSettings({ STORE: 'memory:', RATE_LIMIT_PER_MINUTE: '0' })
  const core = await createCore({ settings, config: CONFIG, log, now: Date.now })
  t.after(() => core.close())
  const call = createCaller((await listen(t, createServer(core.listener))).url)
  assert.equal((await call('/sessions')).status, 200)
  const [admin = assert.fail(), ...others] = CONFIG.machines ?? []
  const use = async (machines: NonNullable<Config['machines']>) =>
    core.prepare(settings, { ...CONFIG, machines })(undefined)
  await use([{ ...admin, api: ['audit'] }, ...others])
  assert.equal((await call('/sessions')).status, 403)
  assert.equal((await call('/audit')).status, 200)
  await use([{ ...admin, networks: ['192.0.2.1'] }])
  assert.equal(errorOf(await call('/audit')), 'outside_network')
  await use([])
  assert.equal((await call('/audit')).status, 401)
})

test('the library serves the API like the gateway', async t => {
  const { menshen, user } = await setUpApi(t)
  const zhangsan = await user('zhangsan')
  const ask = (path: string, init: RequestInit = {}) =>
    menshen.fetch(new Request(`http://localhost${API}${path}`, { headers: { 'x-menshen-key': KEYS.admin }, ...init }))
  const listed = (await ask('/sessions')) ?? assert.fail()
  assert.equal(listed.status, 200)
  const { sessions } = (await listed.json()) as { sessions: ApiSession[] }
  assert.equal((await ask('/sessions', { headers: {} }))?.status, 401)
  assert.equal((await ask('/sessions', { headers: { 'x-menshen-key': KEYS.office } }))?.status, 403, 'no address')
  const ended = await ask(`/sessions/${sessions[0]?.id}`, { method: 'DELETE', body: 'x' })
  assert.deepEqual([ended?.status, await ended?.text()], [204, ''])
  assert.ok(!(await isSignedIn(zhangsan)))
})

test('the commands list the same sessions and keys as the API, and end and revoke them', async t => {
  const folder = tempFolder(t)
  const STORE = `sqlite:${folder}/menshen.db`
  const { call, user, makeKey, provider } = await setUpApi(t, { env: { STORE }, now: Date.now() })
  const [one, other] = [await user('zhangsan'), await user('zhangsan')]
  await makeKey(one)
  const run = async (...args: string[]) => {
    const { code, output } = await commands.run({ ...provider.settings, STORE }, { cwd: folder, args })
    assert.equal(code, 0, output)
    return output
  }
  const linesOf = async (...args: string[]) =>
    (await run(...args))
      .split('\n')
      .filter(Boolean)
      .map(line => JSON.parse(line) as Record<string, string>)
  type Listed = Record<'sessions' | 'keys', Record<string, string>[]>
  const { sessions } = (await call('/sessions')).json<Listed>()
  const shown = await linesOf('sessions', '--json')
  const common = ({ id, user, role, since, expires, address }: Record<string, string>) =>
    [id, user, role, since, expires, address].join(' ')
  assert.deepEqual(shown.map(common), sessions.map(common))
  const { keys } = (await call('/keys')).json<Listed>()
  const ofKey = ({ id, user, name, created, expires }: Record<string, string>) =>
    [id, user, name, created, expires].join(' ')
  assert.deepEqual((await linesOf('keys', 'list', '--user', 'zhangsan', '--json')).map(ofKey), keys.map(ofKey))
  await run('keys', 'revoke', keys[0]?.id ?? '')
  assert.deepEqual((await call('/keys')).json(), { keys: [] })
  await run('sessions', 'end', '--session', sessions[0]?.id ?? '')
  assert.deepEqual([await isSignedIn(one), await isSignedIn(other)].filter(Boolean), [true])
  assert.equal((await call(`/sessions/${sessions[0]?.id}`, { method: 'DELETE' })).status, 404)
})
