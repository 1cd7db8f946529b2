// Who a user is follows each token refresh: user info, groups and role. What a refresh leaves out, and what fails, costs nobody
// the session.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import * as http from 'node:http'
import test, { type TestContext } from 'node:test'
import { type Config, createMenshen, readSettings } from '../../src/index.ts'
import type { Answer } from '../kit/answers.ts'
import { type Client, cookieOf, createClient, signIn } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import type { Environment } from '../kit/instance.ts'
import { OIDC_SECRETS_OF_USER, OIDC_USER, startStrictOidcServer } from '../kit/oidc/strict-oidc-server.ts'
import { setUp } from '../kit/set-up.ts'
import { createTestLog } from '../kit/test-log.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'
import { dial, setUpSockets } from '../kit/websocket.ts'
import { isIn, openRelyingParty } from '../relying-party/relying-party.ts'

const DUE = 7000
const ROLES: Config = { roles: [{ role: 'ops', groups: ['ops'] }] }

interface Me {
  readonly userInfo: { readonly nickname: string; readonly email: string; readonly username: string }
  readonly userRole: string
  readonly groups?: readonly string[]
}

/** A user of the group `ops`, signed in by OpenID Connect. */
async function open(t: TestContext, env: Environment = {}, config: Config = ROLES) {
  const { op, rp, ...rest } = await openRelyingParty(t, env, config)
  const says = (more: object) => {
    op.bend.userinfo = right => ({ ...right, groups: ['ops', 'staff'], ...more })
  }
  says({})
  const user = await rest.accepts()
  return { op, rp, ...rest, says, user, eventsOf: rp.eventsOf, me: (client = user) => meOf(client) }
}

async function meOf(client: Client) {
  const answer = await client.get('/_menshen/me')
  if (answer.status !== 200) return answer.status
  const { userInfo, userRole, groups = [] } = answer.json<Me>()
  return [userRole, ...groups, userInfo.nickname, userInfo.email]
}

const SAME = ['ops', 'ops', 'staff', OIDC_USER.name, OIDC_USER.email]

test('a refresh updates user info, groups and role from the provider, already for the request that triggered it', async t => {
  const { op, rp, says, me, eventsOf } = await open(t)
  assert.deepEqual(await me(), SAME)
  says({ groups: ['staff'], name: '张三丰' })
  assert.deepEqual(await me(), SAME)
  rp.passSeconds(DUE)
  assert.deepEqual(await me(), ['common', 'staff', '张三丰', OIDC_USER.email])
  assert.deepEqual([op.callsTo('refresh').length, op.callsTo('userinfo').length], [1, 2])
  const [changed, ...more] = eventsOf('identity_changed')
  assert.deepEqual([changed?.user, changed?.changed, more], ['zhangsan', 'role, groups, nickname', []])
  says({})
  rp.passSeconds(DUE)
  assert.deepEqual(await me(), SAME)
  assert.deepEqual(op.complaints, [])
})

test('an identity refresh costs one more call for 20 waiting requests, and none with IDENTITY_REFRESH=never', async t => {
  for (const [env, calls] of [
    [{}, 1],
    [{ IDENTITY_REFRESH: 'always' }, 1],
    [{ IDENTITY_REFRESH: 'never' }, 0],
  ] as const) {
    const { op, rp, user, says, me } = await open(t, env)
    says({ groups: [] })
    for (let round = 1; round <= 2; round++) {
      rp.passSeconds(DUE)
      const before = op.calls.length
      await Promise.all(Array.from({ length: 20 }, () => user.get('/_menshen/me')))
      const made = op.calls
        .slice(before)
        .map(({ endpoint }) => endpoint)
        // Metadata and keys are cached for less time than has passed.
        .filter(endpoint => endpoint !== 'discovery' && endpoint !== 'keys')
      assert.deepEqual(made, ['refresh', 'userinfo'].slice(0, 1 + calls), JSON.stringify(env))
    }
    assert.equal(((await me()) as string[])[0], calls ? 'common' : 'ops')
  }
})

test('for idaas, a refresh is one call, and IDENTITY_REFRESH=always adds a second one', async t => {
  for (const [env, calls] of [
    [{}, 0],
    [{ IDENTITY_REFRESH: 'always' }, 1],
  ] as const) {
    const scene = await setUp(t, { env, application: false })
    const user = await scene.user()
    scene.passSeconds(DUE)
    const before = scene.provider.calls.length
    assert.equal((await user.get('/')).status, 200)
    assert.equal(scene.provider.calls.length - before, 1 + calls)
  }
})

test('a refresh without changes logs neither identity_changed nor identity_refresh_failed', async t => {
  const { rp, me, eventsOf } = await open(t)
  rp.passSeconds(DUE)
  assert.deepEqual(await me(), SAME)
  assert.deepEqual(eventsOf('session_refreshed').length, 1)
  assert.deepEqual([...eventsOf('identity_changed'), ...eventsOf('identity_refresh_failed')], [])
})

test('groups stay if user info leaves them out, and an empty list or null removes them', async t => {
  for (const [groups, expected] of [
    [undefined, ['ops', 'ops', 'staff']],
    [[], ['common']],
    [null, ['common']],
    ['staff', ['common', 'staff']],
    [7, ['common', '7']],
    [['ops'], ['ops', 'ops']],
  ] as const) {
    const { rp, says, me } = await open(t)
    says({ groups })
    for (let round = 0; round < 2; round++) {
      rp.passSeconds(DUE)
      assert.deepEqual(await me(), [...expected, OIDC_USER.name, OIDC_USER.email], JSON.stringify(groups))
    }
  }
})

test('a role from the groups claim stays if Entra leaves groups out, and a row for absent groups does not match', async t => {
  const config: Config = {
    roles: [
      { role: 'guest', claim: { groups: ['guests'] } },
      { role: 'ops', claim: { groups: ['ops'] } },
      { role: 'nobody', claim: { groups: [null] } },
    ],
  }
  const { rp, says, me } = await open(t, {}, config)
  says({ groups: undefined, _claim_names: { groups: 'src1' }, _claim_sources: { src1: {} } })
  for (let round = 0; round < 2; round++) {
    rp.passSeconds(DUE)
    assert.equal(((await me()) as string[])[0], 'ops')
  }
  says({ groups: ['guests'] })
  rp.passSeconds(DUE)
  assert.equal(((await me()) as string[])[0], 'guest')
})

test('a claim that user info no longer has gives no role, unless _claim_names lists it', async t => {
  const config: Config = { roles: [{ role: 'lead', claim: { grade: [7] } }] }
  for (const [more, expected] of [
    [{}, 'common'],
    [{ _claim_names: { grade: 'src1' } }, 'lead'],
  ] as const) {
    const { rp, says, me, accepts } = await open(t, {}, config)
    says({ grade: 7 })
    const user = await accepts()
    assert.equal(((await me(user)) as string[])[0], 'lead')
    says(more)
    rp.passSeconds(DUE)
    assert.equal(((await me(user)) as string[])[0], expected)
  }
})

test('claims that only the id_token had stay while refreshes return no id_token, and follow a new one', async t => {
  const config: Config = { roles: [{ role: 'lead', claim: { grade: [7] } }] }
  const { op, rp, says, me, accepts } = await open(t, {}, config)
  op.bend.claims = right => ({ ...right, grade: 7, groups: ['of-id-token'] })
  says({ groups: undefined })
  const user = await accepts()
  const expected = ['lead', 'of-id-token', OIDC_USER.name, OIDC_USER.email]
  assert.deepEqual(await me(user), expected)
  op.bend.refresh = ({ id_token: _, ...right }) => right
  for (let round = 0; round < 3; round++) {
    rp.passSeconds(DUE)
    assert.deepEqual(await me(user), expected)
  }
  says({ groups: ['of-user-info'], name: 'new' })
  rp.passSeconds(DUE)
  assert.deepEqual(await me(user), ['lead', 'of-user-info', 'new', OIDC_USER.email])
  delete op.bend.refresh
  op.bend.claims = right => right
  rp.passSeconds(DUE)
  assert.deepEqual(await me(user), ['common', 'of-user-info', 'new', OIDC_USER.email])
})

test('an e-mail address that the id_token verified stays without a new id_token, and an unverified one is never used', async t => {
  const { op, rp, says, me, accepts } = await open(t)
  op.bend.claims = right => ({ ...right, email: OIDC_USER.email, email_verified: true })
  says({ email_verified: undefined })
  const user = await accepts()
  const email = async () => ((await me(user)) as string[]).at(-1)
  assert.equal(await email(), OIDC_USER.email)
  op.bend.refresh = ({ id_token: _, ...right }) => right
  rp.passSeconds(DUE)
  assert.equal(await email(), OIDC_USER.email)
  says({ email: 'boss@example.com', email_verified: undefined })
  rp.passSeconds(DUE)
  assert.equal(await email(), OIDC_USER.email)
  says({ email: 'boss@example.com', email_verified: false })
  rp.passSeconds(DUE)
  assert.equal(await email(), '')
  says({ email: 'new@example.com', email_verified: true })
  rp.passSeconds(DUE)
  assert.equal(await email(), 'new@example.com')
})

const FAILURES: Record<string, Answer> = {
  'status 500': { kind: 'json', status: 500, body: { error: 'server_error' } },
  'status 401': { kind: 'json', status: 401, body: { error: 'invalid_token' } },
  'no sub': { kind: 'json', body: { preferred_username: 'zhangsan', groups: [] } },
  'a sub that is a number': { kind: 'json', body: { sub: 7, preferred_username: 'zhangsan', groups: [] } },
  'a sub that is empty': { kind: 'json', body: { sub: '', preferred_username: 'zhangsan', groups: [] } },
  'a list': { kind: 'json', body: [{ sub: OIDC_USER.sub }] },
  garbage: { kind: 'bytes', body: '<html>firewall</html>', headers: { 'content-type': 'text/html' } },
  'bytes that are not text': { kind: 'bytes', body: Buffer.from([0xff, 0xfe, 0x00]) },
  '10 MB': { kind: 'json', body: { sub: OIDC_USER.sub, groups: [], x: 'x'.repeat(10_000_000) } },
  'no end': { kind: 'endless' },
  'a broken connection': { kind: 'cut', when: 'in the body' },
  'a redirect': { kind: 'redirect', to: 'http://127.0.0.1:1/' },
}

test('a failed user info request leaves the session and the user unchanged and is logged without secrets', async t => {
  const { op, rp, me, eventsOf } = await open(t)
  for (const [n, [what, answer]] of Object.entries(FAILURES).entries()) {
    op.answer('userinfo', answer)
    rp.passSeconds(DUE)
    const said = rp.lines.length
    assert.deepEqual(await me(), SAME, what)
    const failures = eventsOf('identity_refresh_failed')
    assert.deepEqual([failures.length, failures.at(-1)?.user], [n + 1, 'zhangsan'], what)
    const told = JSON.stringify(rp.lines.slice(said))
    for (const secret of OIDC_SECRETS_OF_USER) assert.ok(!told.includes(secret), `${what}: ${secret}`)
  }
  assert.deepEqual(
    new Set(rp.lines.filter(({ event }) => event === 'identity_refresh_failed').map(l => l.level)),
    new Set(['warn']),
  )
  op.answer('userinfo', { kind: 'normal' })
  op.bend.userinfo = right => ({ ...right, groups: [] })
  rp.passSeconds(DUE)
  assert.equal(((await me()) as string[])[0], 'common', 'the next refresh makes up for it')
})

test('a request returns before hanging user info times out, and the call then fails with provider_unreachable', async t => {
  const { op, rp, me, eventsOf } = await open(t, { PROVIDER_TIMEOUT_MS: '3000' })
  op.answer('userinfo', { kind: 'hang' })
  rp.passSeconds(DUE)
  assert.deepEqual(await me(), SAME)
  assert.equal(eventsOf('identity_refresh_failed').length, 0, 'the call goes on after the request')
  await until(() => eventsOf('identity_refresh_failed').length === 1)
  assert.equal(eventsOf('identity_refresh_failed')[0]?.error, 'provider_unreachable')
  assert.deepEqual(await me(), SAME)
})

test('user info that arrives after the request went on applies from then on', async t => {
  const { op, rp, says, me, eventsOf } = await open(t)
  const { promise, resolve } = Promise.withResolvers<void>()
  says({ groups: [] })
  op.answer('userinfo', { kind: 'held', until: promise })
  rp.passSeconds(DUE)
  assert.deepEqual(await me(), SAME)
  resolve()
  await until(() => eventsOf('identity_changed').length === 1)
  assert.equal(((await me()) as string[])[0], 'common')
})

test('a different sub in user info or the id_token ends the session, and the login page shows the reason', async t => {
  for (const [what, bend] of [
    ['user info', { userinfo: (right: object) => ({ ...right, sub: 'sub-of-another' }) }],
    ['id_token', { claims: (right: object) => ({ ...right, sub: 'sub-of-another' }) }],
  ] as const)
    for (const env of [{}, { REFRESH_FAILURE: 'keep' }]) {
      const { op, rp, user, me, eventsOf } = await open(t, env)
      op.bend = bend
      rp.passSeconds(DUE)
      const page = await user.get('/', { headers: { accept: 'text/html' } })
      assert.equal(page.headers.location, '/login', what)
      assert.equal(await me(), 401)
      const login = await user.get('/login', { headers: { accept: 'text/html' } })
      assert.match(login.text, /您的账号信息已变更/)
      const [{ user: name, reason, by, ended } = {}, ...more] = eventsOf('session_ended')
      assert.deepEqual([name, reason, by, ended, more], ['zhangsan', 'subject_changed', 'provider', 1, []], what)
      assert.deepEqual([...eventsOf('session_refresh_failed'), ...eventsOf('identity_changed')], [])
    }
})

test('a require that is no longer met ends the session, and the log has the reason requirement_failed', async t => {
  const config: Config = { provider: { require: { department: ['research'] } } }
  const { op, rp } = await openRelyingParty(t, {}, config)
  const says = (department: unknown) => {
    op.bend.userinfo = right => ({ ...right, department })
  }
  const accept = async () => {
    says('research')
    const client = rp.visitor()
    await client.follow(await client.follow(await client.post('/login')))
    assert.ok(await isIn(client))
    return client
  }
  for (const department of ['sales', undefined, null, []]) {
    const client = await accept()
    rp.passSeconds(DUE)
    assert.ok(await isIn(client))
    says(department)
    rp.passSeconds(DUE)
    assert.ok(!(await isIn(client)), String(department))
    const { fields } = rp.lines.findLast(({ event }) => event === 'session_ended') ?? {}
    assert.deepEqual([fields?.reason, fields?.user], ['requirement_failed', 'zhangsan'])
  }
})

test('a require of a group stays met while user info leaves groups out, even if there were too many groups to keep', async t => {
  for (const count of [2, 3000]) {
    const config: Config = {
      provider: { require: { groups: ['group-1'] } },
      roles: [{ role: 'ops', claim: { groups: ['group-1'] } }],
    }
    const { op, rp } = await openRelyingParty(t, {}, config)
    const groups = Array.from({ length: count }, (_, n) => `group-${n}`)
    op.bend.userinfo = right => ({ ...right, groups })
    const client = rp.visitor()
    await client.follow(await client.follow(await client.post('/login')))
    const role = async () => ((await meOf(client)) as string[])[0]
    assert.equal(await role(), count === 2 ? 'ops' : 'common')
    op.bend.userinfo = right => right
    for (let round = 0; round < 2; round++) {
      rp.passSeconds(DUE)
      assert.equal(await role(), count === 2 ? 'ops' : 'common', 'neither given nor taken')
    }
    assert.equal((await client.get('/_menshen/me')).json<Me>().groups?.length, count)
  }
})

for (const [what, answer] of Object.entries({
  'returns changes': { groups: [] },
  'returns no changes': {},
  fails: { sub: '' },
  'names another user': { sub: 'sub-of-another' },
}))
  test(`a sign-out wins over a concurrent user info call that ${what}`, async t => {
    const { op, rp, says, user, me, eventsOf } = await open(t)
    const { promise, resolve } = Promise.withResolvers<void>()
    const cookie = `menshen_session=${user.cookies.get('menshen_session')}`
    says(answer)
    op.answer('userinfo', { kind: 'held', until: promise })
    rp.passSeconds(DUE)
    const pending = user.get('/_menshen/me')
    await until(() => op.callsTo('userinfo').length === 2)
    await user.post('/logout')
    resolve()
    assert.equal((await pending).status, 401)
    assert.equal((await user.get('/_menshen/me', { headers: { cookie } })).status, 401)
    assert.equal(await me(), 401)
    assert.deepEqual([...eventsOf('identity_changed'), ...eventsOf('session_ended')], [])
  })

test('a logout token with the provider’s session id ends the session even after its user data has changed', async t => {
  const { op, rp, says, me, accepts } = await open(t)
  op.bend.claims = right => ({ ...right, sid: 'sid-1' })
  const user = await accepts()
  op.bend.claims = right => right
  says({ preferred_username: 'lisi', groups: [] })
  rp.passSeconds(DUE)
  assert.equal(((await me(user)) as string[])[0], 'common')
  const token = await op.sign(
    {
      iss: op.issuer,
      aud: op.settings.CLIENT_ID,
      iat: Math.floor(rp.now() / 1000),
      exp: Math.floor(rp.now() / 1000) + 60,
      jti: 'jti-1',
      sid: 'sid-1',
      events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
    },
    { typ: 'logout+jwt' },
  )
  assert.equal((await rp.visitor().post('/_menshen/backchannel-logout', { logout_token: token })).status, 200)
  assert.equal(await me(user), 401)
})

test('a changed username appears in the identity headers, the assertion, the account page and the console', async t => {
  const upstream = await startUpstream(t)
  const config: Config = {
    roles: [
      { role: 'developer', username: ['admin'] },
      { role: 'ops', groups: ['ops'] },
    ],
  }
  const { op, rp, says, user, accepts } = await open(t, { UPSTREAM: upstream.url }, config)
  const seen = async () => {
    await user.get('/')
    const { 'x-menshen-assertion': assertion = '', ...headers } = upstream.last().headers
    const { username, role, groups, nickname } = JSON.parse(
      Buffer.from(String(assertion).split('.')[1] ?? '', 'base64url').toString(),
    )
    return [username, role, groups, nickname, headers['x-forwarded-user'], headers['x-forwarded-groups']]
  }
  assert.deepEqual(await seen(), ['zhangsan', 'ops', ['ops', 'staff'], OIDC_USER.name, 'zhangsan', 'ops,staff'])
  says({ preferred_username: 'lisi', groups: ['staff'], name: '李四' })
  rp.passSeconds(DUE)
  assert.deepEqual(await seen(), ['lisi', 'common', ['staff'], '李四', 'lisi', 'staff'])
  const { text } = await user.get('/_menshen/account')
  assert.match(text, /<dd>lisi<\/dd>/)
  assert.doesNotMatch(text, /<dd>zhangsan<\/dd>/)
  op.bend.userinfo = right => ({ ...right, preferred_username: 'admin', name: 'A' })
  const admin = await accepts()
  const listed = async (name: string) => (await admin.get(`/_menshen/console/sessions?username=${name}`)).text
  assert.match(await listed('lisi'), /李四/)
  assert.doesNotMatch(await listed('zhangsan'), /name="session"/)
})

test('user info of a provider without OpenID Connect is refreshed too, and a different sub ends the session', async t => {
  const scene = await setUp(t, { env: { IDENTITY_REFRESH: 'always' }, application: false })
  const user = scene.visitor()
  await signIn(user, scene.provider, { username: 'zhangsan' })
  const nickname = async () => {
    const answer = await user.get('/_menshen/me')
    return answer.status === 200 ? answer.json<Me>().userInfo.nickname : answer.status
  }
  const says = (data: object) =>
    scene.provider.answer('userinfo', { kind: 'json', body: { success: true, code: '200', data } })
  says({ sub: 'sub-zhangsan', username: 'zhangsan', nickname: 'new' })
  scene.passSeconds(DUE)
  assert.equal(await nickname(), 'new')
  for (const data of [{ username: 'zhangsan' }, { sub: 'sub-zhangsan' }, { sub: 'sub-zhangsan', username: 7 }]) {
    says(data)
    scene.passSeconds(DUE)
    assert.equal(await nickname(), 'new', JSON.stringify(data))
  }
  says({ sub: 'sub-lisi', username: 'zhangsan' })
  scene.passSeconds(DUE)
  assert.equal(await nickname(), 401)
  const ended = scene.lines.filter(({ event }) => event === 'session_ended').map(({ fields }) => fields.reason)
  assert.deepEqual(ended, ['subject_changed'])
})

test('open WebSockets and event streams of a user who lost the group close, and those of others stay', async t => {
  const config: Config = { rules: [{ path: '/live', groups: ['ops'] }] }
  const scene = await setUpSockets(t, {
    env: { IDENTITY_REFRESH: 'always' },
    config,
    answer: (_, response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n'),
  })
  const { provider } = scene
  const asked = () => provider.callsTo('userinfo').length
  const says = (username: string, groups: string[]) =>
    provider.answer('userinfo', {
      kind: 'json',
      body: { success: true, code: '200', data: { sub: username, username, groups } },
    })
  says('lisi', ['ops'])
  const lisi = await scene.user('lisi')
  scene.passSeconds(3600)
  says('zhangsan', ['ops'])
  const zhangsan = await scene.user('zhangsan')
  const open = async (client: Client) => {
    const socket = dial(scene, client, '/live/socket')
    await once(socket, 'open')
    const stream = http.get(`${scene.url}/live/events`, { headers: { cookie: cookieOf(client) } })
    const [answer] = (await once(stream, 'response')) as [http.IncomingMessage]
    assert.equal(answer.statusCode, 200)
    answer.resume().on('error', () => {})
    return {
      socket,
      answer,
      closed: Promise.all([once(socket, 'close'), new Promise(resolve => answer.on('close', resolve))]),
    }
  }
  const [ofLisi, ofZhangsan] = [await open(lisi), await open(zhangsan)]
  t.after(() => ofZhangsan.socket.terminate())
  says('lisi', ['staff'])
  const before = asked()
  // Only the token of one of them is due. The stream itself refreshes it.
  scene.passSeconds(3500)
  await ofLisi.closed
  assert.equal(asked() - before, 1)
  assert.equal(ofZhangsan.socket.readyState, ofZhangsan.socket.OPEN)
  assert.ok(!ofZhangsan.answer.destroyed)
  assert.equal((await lisi.get('/live/socket')).status, 403)
})

test('a user id from the token response is reused if a refresh leaves it out, and a different one ends the session', async t => {
  const userInfoFrom = ['userinfo', 'token'] as const
  const fields = { sub: ['openid'], username: ['openid'], nickname: ['nickname'] }
  const config: Config = {
    provider: {
      preset: 'oauth2',
      authorizationUrl: '{auth_url}/oauth/authorize',
      tokenUrl: '{auth_url}/oauth/token',
      userInfoUrl: '{auth_url}/api/bff/v1.2/oauth2/userinfo',
      scope: 'read',
      userInfoRequest: { params: { openid: '$openid' } },
      userInfoAnswer: { at: 'data', success: { success: [true] } },
      userInfoFrom: [...userInfoFrom],
      fields,
    },
    roles: [{ role: 'ops', claim: { level: [7] } }],
  }
  const scene = await setUp(t, { config, application: false, provider: { extras: { openid: 'o-1', level: 7 } } })
  const { provider } = scene
  const user = scene.visitor()
  const started = await user.post('/login')
  await user.follow(await user.follow(started))
  const me = async () => {
    const answer = await user.get('/_menshen/me')
    if (answer.status !== 200) return answer.status
    const { userInfo, userRole } = answer.json<Me>()
    return [userInfo.username, userInfo.nickname, userRole]
  }
  assert.deepEqual(await me(), ['o-1', '张三', 'ops'])
  provider.behaviour.extras = {}
  for (const nickname of ['one', 'two']) {
    provider.answer('userinfo', { kind: 'json', body: { success: true, data: { nickname } } })
    scene.passSeconds(DUE)
    assert.deepEqual(await me(), ['o-1', nickname, 'ops'])
    assert.equal(provider.callsTo('userinfo').at(-1)?.query.get('openid'), 'o-1')
  }
  provider.behaviour.extras = { openid: 'o-2' }
  scene.passSeconds(DUE)
  assert.equal(await me(), 401)
})

test('application data of a session survives an identity refresh, and the next request has the new identity', async t => {
  const op = await startStrictOidcServer(t)
  const clock = { now: Date.parse('2026-03-01T08:00:00Z') }
  const port = await freePort()
  const url = `http://localhost:${port}`
  op.client = { baseUrl: url, now: () => clock.now }
  op.bend.userinfo = right => ({ ...right, groups: ['ops'] })
  let signIns = 0
  const { log, lines } = createTestLog()
  const menshen = await createMenshen({
    settings: readSettings({ ...op.settings, STORE: 'memory:', BASE_URL: url, RATE_LIMIT_PER_MINUTE: '0' }),
    config: ROLES,
    log,
    now: () => clock.now,
    onSignIn: () => ({ tenant: `t-${++signIns}` }),
  })
  const server = http.createServer(menshen.listener).listen(port, '127.0.0.1')
  t.after(async () => {
    server.close()
    server.closeAllConnections()
    await menshen.close()
  })
  await once(server, 'listening')
  const user = createClient(url, () => clock.now)
  await user.follow(await user.follow(await user.post('/login')))
  op.bend.userinfo = right => ({ ...right, groups: [] })
  clock.now += DUE * 1000
  assert.equal(((await meOf(user)) as string[])[0], 'common', JSON.stringify(lines.at(-1)))
  const session = await menshen.session({ headers: { cookie: cookieOf(user) } } as http.IncomingMessage)
  assert.deepEqual([session?.data, session?.userRole, session?.groups, signIns], [{ tenant: 't-1' }, 'common', [], 1])
})

test('a personal key loses a group at the next refresh and is revoked when a require is no longer met', async t => {
  const config: Config = {
    provider: { require: { department: ['research'] } },
    roles: [{ role: 'ops', groups: ['ops'] }],
    rules: [{ path: '/', roles: ['ops'], keys: 'personal' }],
  }
  const { op, rp, accepts, signIn } = await openRelyingParty(t, {}, config)
  const says = (more: object) => {
    op.bend.userinfo = right => ({ ...right, groups: ['ops'], department: 'research', ...more })
  }
  const makeKey = async (client: Client) => {
    const form = { name: `key ${rp.now()}`, days: '30' }
    const { text } = await client.post('/_menshen/account/keys', form, { headers: { origin: rp.url } })
    return /mk_[\w-]{43}/.exec(text)?.[0] ?? assert.fail('no key')
  }
  // There is no application: what is admitted is not found.
  const bring = async (key: string) => (await rp.visitor().get('/x', { headers: { 'x-menshen-key': key } })).status
  says({})
  const client = await accepts()
  const key = await makeKey(client)
  assert.equal(await bring(key), 404)
  says({ groups: [] })
  assert.equal(await bring(key), 404)
  rp.passSeconds(DUE)
  assert.ok(await isIn(client))
  assert.equal(await bring(key), 403)
  says({})
  rp.passSeconds(DUE)
  assert.ok(await isIn(client))
  assert.equal(await bring(key), 404)
  says({ department: 'sales' })
  rp.passSeconds(DUE)
  assert.ok(!(await isIn(client)))
  assert.equal(await bring(key), 401)
  says({})
  const again = await makeKey(await accepts())
  says({ department: 'sales' })
  assert.equal((await signIn(rp.visitor())).headers.location, '/login?error=userinfo_error')
  assert.equal(await bring(again), 401)
  const ended = rp.lines.filter(({ event }) => event === 'key_revoked').map(({ fields }) => fields?.by)
  assert.deepEqual(ended, ['provider', 'provider'])
})
