// Sign-out: a server ends a session, a browser passes through and is only ever sent back to the application.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertError, CLIENT, start, tokensOf } from './harness.ts'

test('a server ends the session by posting the refresh token to /oauth/logout', async t => {
  const { tokensFor, postForm, userInfo, refresh } = await start(t)
  const tokens = await tokensFor('admin')
  const form = { client_id: CLIENT.clientId, refresh_token: tokens.refresh_token }
  const response = await postForm('/oauth/logout', form)
  assert.equal(response.status, 200)
  assert.deepEqual(await response.json(), { success: true })
  assert.equal((await userInfo(tokens.access_token)).status, 401)
  await assertError(await refresh(tokens.refresh_token), 400, 'invalid_grant')
  assert.equal((await postForm('/oauth/logout', form)).status, 200)
})

test('a sign-out with an unknown client or without a token is refused and ends no session', async t => {
  const { tokensFor, postForm, refresh } = await start(t)
  const { refresh_token } = await tokensFor('admin')
  await assertError(await postForm('/oauth/logout', { client_id: 'other', refresh_token }), 401, 'invalid_client')
  await assertError(await postForm('/oauth/logout', { client_id: CLIENT.clientId }), 400, 'invalid_request')
  await tokensOf(await refresh(refresh_token))
})

test('sign-out redirects a browser to the application’s redirect_url or post_logout_redirect_uri', async t => {
  const { get } = await start(t)
  for (const name of ['redirect_url', 'post_logout_redirect_uri']) {
    const response = await get(`/oauth/logout?${name}=${encodeURIComponent('http://localhost:4000/login?a=1')}`)
    assert.equal(response.status, 302)
    assert.equal(response.headers.get('location'), 'http://localhost:4000/login?a=1')
  }
})

test('sign-out without a redirect address, or with a foreign one, shows the signed-out page', async t => {
  const { get } = await start(t)
  const foreign = [
    'http://evil.example/',
    'http://localhost:4000@evil.example/',
    'http://localhost:40000/',
    'https://localhost:4000/',
    '//evil.example/',
    '/login',
    'javascript:alert(1)',
  ]
  for (const query of ['', ...foreign.map(address => `?redirect_url=${encodeURIComponent(address)}`)]) {
    const response = await get(`/oauth/logout${query}`)
    assert.equal(response.status, 200, query)
    assert.match(await response.text(), /已退出/)
  }
})
