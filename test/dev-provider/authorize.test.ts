// The authorization endpoint: who may ask, what is refused, and what the page and its buttons do.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createClient } from '../kit/client.ts'
import { landing, start } from './harness.ts'

test('the authorization page has a button for every user and one to deny access', async t => {
  const { get, authorizePath, provider } = await start(t)
  const response = await get(authorizePath())
  const page = await response.text()
  assert.equal(response.status, 200)
  assert.match(page, /<html lang="zh-CN">/)
  assert.match(page, /开发用身份认证平台/)
  assert.deepEqual(provider.users.slice(0, 3), ['admin', 'zhangsan', 'lisi'])
  for (const username of provider.users) {
    assert.match(page, new RegExp(`<button[^>]*value="${username}".*?${username}</span>.*?</button>`, 's'))
  }
  assert.match(page, /<button[^>]*>拒绝<\/button>/)
})

test('the page has no inline script or style, and its CSP limits forms to itself and the application', async t => {
  const { get, authorizePath } = await start(t)
  const response = await get(authorizePath())
  const policy = response.headers.get('content-security-policy') ?? ''
  assert.match(policy, /default-src 'none'/)
  assert.match(policy, /form-action 'self' http:\/\/localhost:4000;/)
  assert.doesNotMatch(policy, /unsafe|script-src/)
  assert.doesNotMatch(await response.text(), /<script|<style| style=| on\w+=/)
  assert.match((await get('/style.css')).headers.get('content-type') ?? '', /^text\/css/)
  assert.match((await get('/icon.svg')).headers.get('content-type') ?? '', /^image\/svg\+xml/)
})

test('choosing a user redirects to the application with a code and the state', async t => {
  const { postForm, authorizePath } = await start(t)
  const response = await postForm(authorizePath(), { username: 'admin' })
  assert.equal(response.status, 303)
  const back = landing(response)
  assert.deepEqual([...back.keys()], ['code', 'state'])
  assert.equal(back.get('state'), 'random_idp')
})

test('a click on 拒绝 redirects to the application with access_denied and the state', async t => {
  const { postForm, authorizePath } = await start(t)
  const back = landing(await postForm(authorizePath(), { deny: 'yes' }))
  assert.equal(back.get('error'), 'access_denied')
  assert.equal(back.get('state'), 'random_idp')
  assert.equal(back.has('code'), false)
})

test('a form posted from another site gets 403 and signs no user in', async t => {
  const { postForm, authorizePath } = await start(t)
  for (const headers of [{ origin: 'http://evil.example' }, { 'sec-fetch-site': 'cross-site' }]) {
    const response = await postForm(authorizePath(), { username: 'admin' }, headers)
    assert.equal(response.status, 403)
    assert.equal(response.headers.get('location'), null)
  }
})

test('a page of another host whose name leads to this machine gets 403, signs no user in and changes nothing', async t => {
  const { authorizePath, provider, get } = await start(t)
  const client = createClient(provider.url)
  const { port } = new URL(provider.url)
  for (const name of ['evil.example', 'localhost.evil.example', '127.0.0.1.evil.example', '192.0.2.7']) {
    const headers = { host: `${name}:${port}`, origin: `http://${name}:${port}` }
    const chosen = await client.post(authorizePath(), { username: 'admin' }, { headers })
    assert.deepEqual([chosen.status, chosen.headers.location], [403, undefined], name)
    assert.equal((await client.post('/panel', { accessTokenSeconds: '60' }, { headers })).status, 403)
    assert.doesNotMatch((await client.get('/', { headers })).text, /accessTokenSeconds/)
  }
  assert.match(await (await get('/')).text(), /一切正常/)
  for (const name of ['localhost', 'app.localhost', '127.0.0.1', '[::1]']) {
    const headers = { host: `${name}:${port}`, origin: `http://${name}:${port}` }
    assert.equal((await client.post(authorizePath(), { username: 'admin' }, { headers })).status, 303, name)
  }
})

test('an unknown or missing username gets a 400 page and is never redirected', async t => {
  const { postForm, authorizePath } = await start(t)
  for (const form of [{ username: 'nobody' }, { username: '' }, {}]) {
    const response = await postForm(authorizePath(), form)
    assert.equal(response.status, 400)
    assert.equal(response.headers.get('location'), null)
    assert.match(response.headers.get('content-type') ?? '', /^text\/html/)
    assert.doesNotMatch(await response.text(), /code=/)
  }
})

test('a wrong client or redirect URI gets a 400 page and is never redirected', async t => {
  const { get, authorizePath, at } = await start(t)
  const good = authorizePath()
  const untrusted = [
    authorizePath({ client_id: 'other' }),
    authorizePath({ redirect_uri: 'http://localhost:4000/callback/' }),
    authorizePath({ redirect_uri: 'http://evil.example/callback' }),
    `${good}&client_id=test-app`,
    `${good}&redirect_uri=http://evil.example/`,
    '/oauth/authorize',
  ]
  for (const path of untrusted) {
    for (const response of [await get(path), await fetch(at(path), { method: 'POST', redirect: 'manual' })]) {
      assert.equal(response.status, 400, path)
      assert.equal(response.headers.get('location'), null)
      assert.match(response.headers.get('content-type') ?? '', /^text\/html/)
    }
  }
})

test('every other invalid request redirects to the application with its error and the state', async t => {
  const { get, authorizePath } = await start(t)
  const challenge = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'
  const mistakes: [path: string, error: string][] = [
    [authorizePath({ response_type: 'token' }), 'unsupported_response_type'],
    [authorizePath({ response_type: '' }), 'invalid_request'],
    [authorizePath({ scope: 'write' }), 'invalid_scope'],
    [authorizePath({ scope: '' }), 'invalid_scope'],
    [`${authorizePath()}&scope=read`, 'invalid_request'],
    [`${authorizePath()}&anything=1&anything=1`, 'invalid_request'],
    [authorizePath({ code_challenge: challenge }), 'invalid_request'],
    [authorizePath({ code_challenge: challenge, code_challenge_method: 'plain' }), 'invalid_request'],
    [authorizePath({ code_challenge: 'short', code_challenge_method: 'S256' }), 'invalid_request'],
    [authorizePath({ code_challenge_method: 'S256' }), 'invalid_request'],
  ]
  for (const [path, error] of mistakes) {
    const response = await get(path)
    assert.equal(response.status, 302, path)
    const back = landing(response)
    assert.deepEqual([...back.keys()], ['error', 'error_description', 'state'], path)
    assert.equal(back.get('error'), error, path)
    assert.equal(back.get('state'), 'random_idp')
  }
})

test('a request with two states gets invalid_request without a state', async t => {
  const { get, authorizePath } = await start(t)
  const back = landing(await get(`${authorizePath()}&state=other_idp`))
  assert.equal(back.get('error'), 'invalid_request')
  assert.equal(back.has('state'), false)
})
