// The control panel: each way to misbehave, who may ask for it, and what the panel tells.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertError, CREDENTIALS, start, tokensOf } from './harness.ts'

test('access tokens expire after the lifetime set in the panel', async t => {
  const { misbehave, tokensFor, userInfo, pass } = await start(t)
  await misbehave({ accessTokenSeconds: '310' })
  const tokens = await tokensFor('admin')
  assert.equal(tokens.expires_in, 310)
  pass(309)
  assert.equal((await userInfo(tokens.access_token)).status, 200)
  pass(1)
  assert.equal((await userInfo(tokens.access_token)).status, 401)
})

test('with refuseRefreshes=1 the next refresh is refused and the one after it succeeds', async t => {
  const { misbehave, tokensFor, refresh } = await start(t)
  const { refresh_token } = await tokensFor('admin')
  await misbehave({ refuseRefreshes: '1' })
  await assertError(await refresh(refresh_token), 400, 'invalid_grant')
  await tokensOf(await refresh(refresh_token))
})

test('failTokenCalls makes that number of token calls fail with 500', async t => {
  const { misbehave, signIn, redeem } = await start(t)
  await misbehave({ failTokenCalls: '2' })
  const code = await signIn('admin')
  assert.equal((await redeem(code)).status, 500)
  assert.equal((await redeem(code)).status, 500)
  await tokensOf(await redeem(code))
})

test('the next user info calls return 500 with failUserInfoCalls and success=false with denyUserInfoCalls', async t => {
  const { misbehave, tokensFor, userInfo } = await start(t)
  const { access_token } = await tokensFor('admin')
  await misbehave({ failUserInfoCalls: '1', denyUserInfoCalls: '1' })
  assert.equal((await userInfo(access_token)).status, 500)
  const denied = await userInfo(access_token)
  assert.equal(denied.status, 200)
  const { success, data } = (await denied.json()) as Record<string, unknown>
  assert.deepEqual({ success, data }, { success: false, data: null })
  assert.equal(((await (await userInfo(access_token)).json()) as { success: boolean }).success, true)
})

test('a failure count of 999 lasts until the panel is reset', async t => {
  const { misbehave, tokensFor, userInfo, get } = await start(t)
  const { access_token } = await tokensFor('admin')
  await misbehave({ failUserInfoCalls: '999', accessTokenSeconds: '60' })
  for (let call = 0; call < 5; call++) assert.equal((await userInfo(access_token)).status, 500)
  assert.match(await (await get('/')).text(), /访问令牌有效期：60 秒<\/span> <span>用户信息接口故障：一直/)
  await misbehave({ reset: 'yes' })
  assert.equal((await userInfo(access_token)).status, 200)
  assert.match(await (await get('/')).text(), /一切正常/)
})

test('calls from a server are delayed by delayMs', async t => {
  const { misbehave, userInfo } = await start(t)
  await misbehave({ delayMs: '100' })
  const before = performance.now()
  assert.equal((await userInfo('any')).status, 401)
  assert.ok(performance.now() - before >= 99)
})

test('a delayed refresh takes effect even if the caller gives up before the response', async t => {
  const { misbehave, tokensFor, refresh, at, get } = await start(t)
  const { refresh_token } = await tokensFor('admin')
  await misbehave({ delayMs: '60000' })
  const body = new URLSearchParams({ grant_type: 'refresh_token', refresh_token, ...CREDENTIALS })
  const caller = new AbortController()
  const call = fetch(at('/oauth/token'), { method: 'POST', body, signal: caller.signal })
  while (!(await (await get('/')).text()).includes('<td>1 次</td>'));
  caller.abort()
  await assert.rejects(call, { name: 'AbortError' })
  await misbehave({ reset: 'yes' })
  await assertError(await refresh(refresh_token), 400, 'invalid_grant')
})

test('delayMs does not delay pages, and close does not wait for delayed calls', async t => {
  const { misbehave, get, userInfo, provider } = await start(t)
  await misbehave({ delayMs: '60000' })
  let isAnswered = false
  const call = userInfo('any')
    .then(() => {
      isAnswered = true
    })
    .catch(() => 'the connection was closed')
  assert.equal((await get('/')).status, 200)
  assert.equal(isAnswered, false)
  await provider.close()
  await call
})

test('the panel lists signed-in users and never shows a token', async t => {
  const { tokensFor, refresh, get } = await start(t)
  assert.match(await (await get('/')).text(), /当前没有会话/)
  const first = await tokensFor('zhangsan')
  const second = await tokensOf(await refresh(first.refresh_token))
  const page = await (await get('/')).text()
  assert.match(page, /zhangsan.*2026-01-01T00:00:00\.000Z.*1 次/s)
  for (const token of [first.access_token, second.access_token, second.refresh_token]) {
    for (const part of token.split('.')) assert.equal(page.includes(part), false)
  }
})

test('only requests from the panel itself can change its settings', async t => {
  const { postForm, provider, get } = await start(t)
  const change = { accessTokenSeconds: '60' }
  const foreign: Record<string, string>[] = [
    {},
    { origin: 'null' },
    { origin: 'http://evil.example' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site', origin: provider.url },
  ]
  for (const headers of foreign) assert.equal((await postForm('/panel', change, headers)).status, 403)
  assert.match(await (await get('/')).text(), /一切正常/)
  assert.equal((await postForm('/panel', change, { 'sec-fetch-site': 'same-origin' })).status, 303)
})

test('an invalid value or an unknown setting name gets 400 and changes nothing', async t => {
  const { postForm, provider, get } = await start(t)
  const wrong: Record<string, string>[] = [
    { accessTokenSeconds: '0' },
    { accessTokenSeconds: '86401' },
    { accessTokenSeconds: '1.5' },
    { accessTokenSeconds: '-1' },
    { delayMs: 'soon' },
    { delayMs: '1000', constructor: '1' },
    { delayMs: '1000', ['__proto__']: '1' },
  ]
  for (const change of wrong) {
    assert.equal((await postForm('/panel', change, { origin: provider.url })).status, 400, JSON.stringify(change))
  }
  assert.match(await (await get('/')).text(), /一切正常/)
})
