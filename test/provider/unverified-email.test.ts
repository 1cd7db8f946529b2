// An e-mail address that the provider has not verified gives nobody a name, a role or a page.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Config } from '../../src/index.ts'
import { createClient } from '../kit/client.ts'
import { signedInAt, startOidcServer } from '../kit/oidc-server.ts'
import { openGateway } from '../kit/set-up.ts'
import { startUpstream } from '../kit/upstream.ts'

const BOSS = 'boss@corp.example'
const CONFIG: Config = {
  roles: [
    { role: 'developer', username: [BOSS] },
    { role: 'auditor', claim: { email: [BOSS] } },
  ],
  rules: [
    { path: '/boss', users: [BOSS] },
    { path: '/audit', roles: ['auditor'] },
    { path: '/api', users: [BOSS], bearer: true },
  ],
}

test('a user with somebody else’s address is not taken for them: no username, e-mail, role, rule or console', async t => {
  const oidc = await startOidcServer(t)
  const upstream = await startUpstream(t)
  const gateway = await openGateway(t, { ...oidc.settings, UPSTREAM: upstream.url }, { config: CONFIG })
  oidc.now = gateway.now
  for (const email_verified of [false, undefined, 'true', 'false']) {
    oidc.user = { sub: 'mallory', email: BOSS, email_verified }
    const client = await signedInAt(gateway.url, gateway.now)
    assert.equal((await client.get('/')).status, 200)
    const { headers } = upstream.last()
    assert.deepEqual([headers['x-forwarded-user'], headers['x-forwarded-email']], ['mallory', ''])
    assert.equal((await client.get('/_menshen/me')).json<{ userRole: string }>().userRole, 'common')
    for (const path of ['/boss', '/audit', '/_menshen/console'])
      assert.equal((await client.get(path)).status, 403, path)
  }
  const told = gateway.lines.filter(({ event }) => event === 'email_unverified')
  assert.equal(told.length, 4)
  assert.ok(!JSON.stringify(told).includes(BOSS))
  oidc.user = { sub: 'the-boss', email: BOSS, email_verified: true }
  const boss = await signedInAt(gateway.url, gateway.now)
  for (const path of ['/boss', '/_menshen/console']) assert.equal((await boss.get(path)).status, 200, path)
})

test('an access token with somebody else’s address is not taken for theirs', async t => {
  const oidc = await startOidcServer(t)
  const upstream = await startUpstream(t)
  const gateway = await openGateway(t, { ...oidc.settings, UPSTREAM: upstream.url }, { config: CONFIG })
  oidc.now = gateway.now
  const ask = async (claims: object) => {
    const token = await oidc.sign({ sub: 'mallory', scope: 'api', ...claims }, { typ: 'at+jwt' })
    const headers = { authorization: `Bearer ${token}` }
    return (await createClient(gateway.url, gateway.now).get('/api', { headers })).status
  }
  assert.equal(await ask({ email: BOSS }), 403)
  assert.equal(await ask({ email: BOSS, email_verified: false }), 403)
  assert.equal(await ask({ email: BOSS, email_verified: false, preferred_username: BOSS }), 403)
  assert.equal(await ask({ email: BOSS, email_verified: true }), 200)
})

test('ALLOW_UNVERIFIED_EMAIL accepts the risk', async t => {
  const oidc = await startOidcServer(t)
  const upstream = await startUpstream(t)
  const env = { ...oidc.settings, UPSTREAM: upstream.url, ALLOW_UNVERIFIED_EMAIL: 'true' }
  const gateway = await openGateway(t, env, { config: CONFIG })
  oidc.now = gateway.now
  oidc.user = { sub: 'mallory', email: BOSS, email_verified: false }
  const client = await signedInAt(gateway.url, gateway.now)
  assert.equal((await client.get('/boss')).status, 200)
  assert.equal(upstream.last().headers['x-forwarded-email'], BOSS)
})
