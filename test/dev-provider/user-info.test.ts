// User info: the envelope of specification 5.4 for a good token, a 401 for any other.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertError, start } from './harness.ts'

test('user info for a valid token has the seven fields and the groups in the envelope', async t => {
  const { tokensFor, userInfo } = await start(t)
  const response = await userInfo((await tokensFor('admin')).access_token)
  assert.equal(response.status, 200)
  const { requestId, ...envelope } = (await response.json()) as Record<string, unknown>
  assert.match(String(requestId), /\S/)
  assert.deepEqual(envelope, {
    success: true,
    code: '200',
    data: {
      sub: '1000000000000000001',
      ou_id: '2000000000000000001',
      nickname: '管理员',
      phone_number: '86 10000000001',
      ou_name: '信息中心',
      email: 'admin@example.com',
      username: 'admin',
      groups: ['admins', 'staff'],
    },
    message: null,
  })
})

test('every user has a distinct sub, and all fields except the groups are strings', async t => {
  const { provider, tokensFor, userInfo } = await start(t)
  const subs = new Set<unknown>()
  for (const username of provider.users) {
    const response = await userInfo((await tokensFor(username)).access_token)
    const { data } = (await response.json()) as { data: Record<string, unknown> }
    const { groups, ...fields } = data
    assert.ok(Array.isArray(groups) && groups.every(group => typeof group === 'string'))
    assert.equal(fields.username, username)
    assert.ok(Object.values(fields).every(value => typeof value === 'string'))
    subs.add(data.sub)
  }
  assert.equal(subs.size, provider.users.length)
})

test('user info returns 401 invalid_token for an unknown, empty or expired token and for a refresh token', async t => {
  const { tokensFor, userInfo, pass } = await start(t)
  const tokens = await tokensFor('admin')
  await assertError(await userInfo('unknown'), 401, 'invalid_token')
  await assertError(await userInfo(''), 401, 'invalid_token')
  await assertError(await userInfo(tokens.refresh_token), 401, 'invalid_token')
  pass(7200)
  const expired = await userInfo(tokens.access_token)
  assert.match(expired.headers.get('www-authenticate') ?? '', /^Bearer/)
  await assertError(expired, 401, 'invalid_token')
})

test('the token is accepted only in a Bearer header', async t => {
  const { tokensFor, at } = await start(t)
  const { access_token } = await tokensFor('admin')
  const path = '/api/bff/v1.2/oauth2/userinfo'
  await assertError(await fetch(at(`${path}?access_token=${access_token}`)), 401, 'invalid_token')
  const basic = await fetch(at(path), { headers: { authorization: `Basic ${access_token}` } })
  await assertError(basic, 401, 'invalid_token')
})
