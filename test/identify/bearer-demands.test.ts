// What a rule demands of a token: whom it is for, by every interpretation of the path, that it is an access token, and its
// scopes.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { JWTPayload } from 'jose'
import type { Config, Rule } from '../../src/index.ts'
import { scrape } from '../kit/scrape.ts'
import { type OidcSetUpOptions, setUpOidc } from '../kit/set-up.ts'

const AT = { typ: 'at+jwt' }
const OUTER = 'https://api.example'
const INNER = 'https://admin.example'
const MACHINE = { sub: 'robot-1', client_id: 'robot', scope: 'read' }
const CONFIG: Config = {
  rules: [
    { path: '/api', roles: ['*'], bearer: true, audience: OUTER },
    { path: '/api/admin', roles: ['*'], bearer: true, audience: [INNER, 'admin'] },
    { path: '/plain', roles: ['*'], bearer: true },
    { path: '/mcp', roles: ['*'], bearer: true, scopes: ['mcp:read', 'mcp:write'] },
    { path: '/mcp/admin', roles: ['*'], bearer: true, scopes: ['mcp:admin'] },
    { path: '/mcp/closed', users: ['boss'], bearer: true, scopes: ['mcp:read'] },
  ],
}

/** A gateway whose rules demand an audience or scopes of a token. */
const setUpTokenDemands = (t: TestContext, { env, config = CONFIG }: OidcSetUpOptions = {}) =>
  setUpOidc(t, { env: { TRUSTED_PROXIES: '127.0.0.1', ...env }, config })

test('the audience is required for every interpretation of a path, not only for the path as sent', async t => {
  const { provider, upstream, bring } = await setUpTokenDemands(t)
  const outer = await provider.sign({ ...MACHINE, aud: OUTER }, AT)
  const inner = await provider.sign({ ...MACHINE, aud: 'admin' }, AT)
  const both = await provider.sign({ ...MACHINE, aud: [OUTER, INNER] }, AT)
  assert.equal((await bring(outer, '/api/items')).status, 200)
  assert.equal((await bring(inner, '/api/admin/x')).status, 200)
  assert.equal((await bring(outer, '/api/admin/x')).status, 401)
  const before = upstream.received.length
  for (const path of ['/api/Admin/x', '/api/admin.json', '/api/admin%20/x', '/api/ADMIN', '/api/admin~/x']) {
    for (const token of [outer, inner]) assert.equal((await bring(token, path)).status, 401, path)
    const asked = await bring(outer, '/_menshen/check', { 'x-original-uri': path })
    assert.equal(asked.status, 401, `forward-auth ${path}`)
  }
  assert.equal(upstream.received.length, before)
  for (const path of ['/api/Admin/x', '/api/admin.json']) assert.equal((await bring(both, path)).status, 200, path)
})

test('an introspection response without aud is refused if the rule or BEARER_AUDIENCE names an audience', async t => {
  const { provider, bring, lines } = await setUpTokenDemands(t)
  const answers: Record<string, object> = {
    silent: { active: true, sub: 'u-7', username: 'zhangsan', client_id: provider.clientId },
    outer: { active: true, sub: 'u-7', username: 'zhangsan', aud: OUTER },
    ours: { active: true, sub: 'u-7', username: 'zhangsan', aud: provider.clientId },
    another: { active: true, sub: 'u-7', username: 'zhangsan', aud: ['x'] },
  }
  provider.introspect = token => answers[token] ?? { active: false }
  for (const [token, path, status] of [
    ['silent', '/api', 401],
    ['outer', '/api', 200],
    ['ours', '/api', 401],
    ['another', '/api', 401],
    ['outer', '/api/Admin', 401],
    ['silent', '/plain', 200],
    ['ours', '/plain', 200],
    ['another', '/plain', 401],
  ] as const)
    assert.equal((await bring(token, path)).status, status, `${token} ${path}`)
  assert.ok(
    lines.some(({ event, fields }) => event === 'token_refused' && (fields as { reason?: string }).reason === 'aud'),
  )
  const set = await setUpTokenDemands(t, { env: { BEARER_AUDIENCE: 'https://set.example' } })
  set.provider.introspect = () => ({ active: true, sub: 'u-7', username: 'zhangsan' })
  assert.equal((await set.bring('silent', '/plain')).status, 401)
})

test('an opaque token of another client is refused if no audience is configured, unless the rule has audience any', async t => {
  const rules: Rule[] = [
    { path: '/plain', roles: ['*'], bearer: true },
    { path: '/any', roles: ['*'], bearer: true, audience: 'any' },
    { path: '/any/named', roles: ['*'], bearer: true, audience: OUTER },
  ]
  const { provider, bring, lines } = await setUpTokenDemands(t, { config: { rules } })
  const user = { active: true, sub: 'u-7', username: 'zhangsan' }
  const answers: Record<string, object> = {
    ours: { ...user, client_id: provider.clientId },
    theirs: { ...user, client_id: 'other-app' },
    silent: user,
    list: { ...user, client_id: [provider.clientId] },
    'for-us': { ...user, client_id: 'other-app', aud: provider.clientId },
    'for-others': { ...user, client_id: provider.clientId, aud: 'x' },
    named: { ...user, client_id: 'other-app', aud: OUTER },
  }
  provider.introspect = token => answers[token] ?? { active: false }
  for (const [token, plain, any, named] of [
    ['ours', 200, 200, 401],
    ['theirs', 401, 200, 401],
    ['silent', 401, 200, 401],
    ['list', 401, 200, 401],
    ['for-us', 200, 200, 401],
    ['for-others', 401, 200, 401],
    ['named', 401, 200, 200],
  ] as const) {
    const statuses = []
    for (const path of ['/plain', '/any', '/any/named']) statuses.push((await bring(token, path)).status)
    assert.deepEqual(statuses, [plain, any, named], token)
  }
  assert.ok(lines.some(({ event, fields }) => event === 'token_refused' && fields.reason === 'client_id'))
  const signed = await provider.sign(
    { sub: 'u-7', preferred_username: 'zhangsan', aud: 'other-app', scope: 'read' },
    AT,
  )
  assert.equal((await bring(signed, '/any')).status, 401, 'any is about introspected tokens alone')
})

test('a token without a type is accepted only if its claims show that it is an access token', async t => {
  const { provider, bring } = await setUpTokenDemands(t)
  const idToken: JWTPayload = { sub: 'u-7', preferred_username: 'zhangsan', azp: provider.clientId, sid: 's-1' }
  assert.equal((await bring(await provider.sign(idToken, {}), '/plain')).status, 401)
  assert.equal((await bring(await provider.sign({ ...idToken, auth_time: 1 }, {}), '/plain')).status, 401)
  for (const claim of [{ scope: 'read' }, { scp: ['read'] }, { client_id: 'robot' }, { cid: 'robot' }])
    assert.equal((await bring(await provider.sign({ ...idToken, ...claim }, {}), '/plain')).status, 200)
  assert.equal((await bring(await provider.sign({ ...idToken, scope: 'read', nonce: 'n' }, {}), '/plain')).status, 401)
  assert.equal((await bring(await provider.sign(idToken, AT), '/plain')).status, 200, 'RFC 9068')
})

test('BEARER_AUDIENCE is split at commas only, not at spaces', async t => {
  const { provider, bring } = await setUpTokenDemands(t, { env: { BEARER_AUDIENCE: 'our api, https://set.example' } })
  for (const [aud, status] of [
    ['our api', 200],
    ['https://set.example', 200],
    ['our', 401],
    ['api', 401],
  ] as const)
    assert.equal((await bring(await provider.sign({ ...MACHINE, aud }, AT), '/plain')).status, status, aud)
})

test('all scopes of a rule are required for every interpretation of the path and named in the 403 response', async t => {
  const { url, provider, upstream, bring, lines } = await setUpTokenDemands(t)
  const sign = (claims: JWTPayload) => provider.sign({ sub: 'robot-1', client_id: 'robot', ...claims }, AT)
  const rows: [claims: JWTPayload, path: string, scope: string | undefined][] = [
    [{ scope: 'mcp:read mcp:write' }, '/mcp/x', undefined],
    [{ scope: 'x  mcp:write mcp:read' }, '/mcp/x', undefined],
    [{ scope: ['mcp:read', 'mcp:write'] }, '/mcp/x', undefined],
    [{ scp: 'mcp:read mcp:write' }, '/mcp/x', undefined],
    [{ scp: ['mcp:read', 'mcp:write'] }, '/mcp/x', undefined],
    [{ scope: 'mcp:admin' }, '/mcp/admin', undefined],
    [{ scope: 'mcp:read mcp:write mcp:admin' }, '/mcp/Admin', undefined],
    [{ scope: 'mcp:read' }, '/mcp/x', 'mcp:read mcp:write'],
    [{ scope: 'mcp:reads mcp:write' }, '/mcp/x', 'mcp:read mcp:write'],
    [{ scope: { 'mcp:read': 1 } }, '/mcp/x', 'mcp:read mcp:write'],
    [{}, '/mcp', 'mcp:read mcp:write'],
    [{ scope: 'mcp:read mcp:write' }, '/mcp/admin/x', 'mcp:admin'],
    [{ scope: 'mcp:read mcp:write' }, '/mcp/Admin/x', 'mcp:read mcp:write mcp:admin'],
  ]
  for (const [claims, path, scope] of rows) {
    const answer = await bring(await sign(claims), path)
    const told = `${JSON.stringify(claims)} ${path}`
    assert.equal(answer.status, scope === undefined ? 200 : 403, told)
    const resource = path.startsWith('/mcp/admin') ? '/mcp/admin' : '/mcp'
    const metadata = `${url}/.well-known/oauth-protected-resource${resource}`
    const challenge = scope && `Bearer error="insufficient_scope", scope="${scope}", resource_metadata="${metadata}"`
    assert.equal(answer.headers['www-authenticate'], challenge, told)
    const asked = await bring(await sign(claims), '/_menshen/check', { 'x-original-uri': path })
    assert.deepEqual([asked.status, asked.headers['www-authenticate']], [scope ? 403 : 200, challenge], told)
  }
  const told = lines.find(({ event }) => event === 'refused')?.fields
  assert.partialDeepStrictEqual(told, { reason: 'insufficient_scope', scope: 'mcp:read mcp:write', path: '/mcp/x' })
  const closed = await bring(await sign({ scope: 'mcp:read' }), '/mcp/closed')
  assert.deepEqual(
    [closed.status, closed.headers['www-authenticate']],
    [403, 'Bearer error="insufficient_scope"'],
    'scopes are there, and would not help',
  )
  provider.introspect = token => ({
    active: true,
    client_id: provider.clientId,
    sub: 'u',
    scope: token === 'wide' ? 'mcp:read mcp:write' : 'mcp:read',
  })
  assert.equal((await bring('wide', '/mcp')).status, 200)
  assert.equal((await bring('narrow', '/mcp')).status, 403)
  assert.ok(upstream.received.length > 0)
})

test('a token without sub is refused, and the log names the missing claim but no values', async t => {
  const { provider, bring, lines } = await setUpTokenDemands(t)
  const nobody = { ...MACHINE, sub: undefined, client_id: 'CANARY' } as unknown as JWTPayload
  assert.equal((await bring(await provider.sign(nobody, AT), '/plain')).status, 401)
  provider.introspect = () => ({ active: true, client_id: 'CANARY', aud: provider.clientId })
  assert.equal((await bring('opaque', '/plain')).status, 401)
  const told = lines
    .filter(({ event }) => event === 'token_refused')
    .map(({ fields }) => fields as Record<string, string>)
  assert.equal(told.length, 2)
  for (const { reason, detail } of told) {
    assert.equal(reason, 'claims')
    assert.match(String(detail), /^no sub \(looked for in .*\); received: .*client_id/)
  }
  assert.ok(!JSON.stringify(told).includes('CANARY'))
})

test('an introspection is measured in menshen_provider_seconds, once for three requests with one token', async t => {
  const { provider, bring, url } = await setUpTokenDemands(t, { env: { TRUSTED_PROXIES: '' } })
  provider.introspect = () => ({ active: true, client_id: provider.clientId, sub: 'u-7', username: 'zhangsan' })
  for (let n = 0; n < 3; n++) assert.equal((await bring('opaque', '/plain')).status, 200)
  const series = 'menshen_provider_seconds_count{call="introspection",result="ok"}'
  assert.equal((await scrape(url)).value(series), 1, 'once: the answer is kept')
})
