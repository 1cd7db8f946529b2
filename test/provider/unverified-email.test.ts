// An e-mail address that the provider has not verified gives nobody a name, a role or a page.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Config } from '../../src/index.ts'
import { setUpOidc } from '../kit/set-up.ts'

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

test('an unverified address of another user gives no username, e-mail, role, page or console access', async t => {
  const { upstream, user, lines } = await setUpOidc(t, { config: CONFIG })
  for (const email_verified of [false, undefined, 'true', 'false']) {
    const client = await user({ sub: 'mallory', email: BOSS, email_verified })
    assert.equal((await client.get('/')).status, 200)
    const { headers } = upstream.last()
    assert.deepEqual([headers['x-forwarded-user'], headers['x-forwarded-email']], ['mallory', ''])
    assert.equal((await client.get('/_menshen/me')).json<{ userRole: string }>().userRole, 'common')
    for (const path of ['/boss', '/audit', '/_menshen/console'])
      assert.equal((await client.get(path)).status, 403, path)
  }
  const told = lines.filter(({ event }) => event === 'email_unverified')
  assert.equal(told.length, 4)
  assert.ok(!JSON.stringify(told).includes(BOSS))
  const boss = await user({ sub: 'the-boss', email: BOSS, email_verified: true })
  for (const path of ['/boss', '/_menshen/console']) assert.equal((await boss.get(path)).status, 200, path)
})

test('an access token with an unverified address of another user is refused, and one with a verified address is accepted', async t => {
  const { provider, bring } = await setUpOidc(t, { config: CONFIG })
  const ask = async (claims: object) => {
    const token = await provider.sign({ sub: 'mallory', scope: 'api', ...claims }, { typ: 'at+jwt' })
    return (await bring(token, '/api')).status
  }
  assert.equal(await ask({ email: BOSS }), 403)
  assert.equal(await ask({ email: BOSS, email_verified: false }), 403)
  assert.equal(await ask({ email: BOSS, email_verified: false, preferred_username: BOSS }), 403)
  assert.equal(await ask({ email: BOSS, email_verified: true }), 200)
})

test('with ALLOW_UNVERIFIED_EMAIL an unverified address gives access and is forwarded', async t => {
  const { upstream, user } = await setUpOidc(t, { config: CONFIG, env: { ALLOW_UNVERIFIED_EMAIL: 'true' } })
  const client = await user({ sub: 'mallory', email: BOSS, email_verified: false })
  assert.equal((await client.get('/boss')).status, 200)
  assert.equal(upstream.last().headers['x-forwarded-email'], BOSS)
})
