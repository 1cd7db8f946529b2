// A path that is longer than any page's is refused before anybody tries to read it: 414, by every way in.

import assert from 'node:assert/strict'
import test from 'node:test'
import { answerRuleQuery } from '../../src/access/rule-query.ts'
import { createRules } from '../../src/access/rules.ts'
import { createMenshen } from '../../src/index.ts'
import { cookieOf } from '../kit/client.ts'
import { setUp } from '../kit/set-up.ts'
import { raw, request, statusOf } from '../proxy/raw.ts'

const LONGEST = `/${'a'.repeat(4095)}`
const DEEPEST = '/a'.repeat(100)
const TOO_LONG = [`${LONGEST}a`, `/${'%2D'.repeat(5000)}`, `/${'(a)~'.repeat(3500)}`, `${DEEPEST}/a`, '/'.repeat(4000)]
const RULES = [{ path: '/admin', roles: ['developer'] }]

test('the gateway answers 414 to a path that is too long and forwards paths just within the limits', async t => {
  const scene = await setUp(t, { config: { rules: RULES } })
  const user = await scene.user()
  for (const path of TOO_LONG) {
    const answer = await user.get(path)
    assert.equal(answer.status, 414, path.slice(0, 20))
    assert.match(answer.text, /<html lang="zh-CN"[\s\S]*地址过长/)
    assert.equal((await scene.visitor().get(`${path}?x=1`)).status, 414)
  }
  assert.equal(scene.upstream.received.length, 0)
  for (const path of [LONGEST, DEEPEST, `/page?${'/x'.repeat(3000)}`]) assert.equal((await user.get(path)).status, 200)
})

test('a WebSocket upgrade with a path that is too long is refused with 414', async t => {
  const scene = await setUp(t, { config: { rules: RULES } })
  const user = await scene.user()
  for (const path of TOO_LONG) {
    const lines = [`cookie: ${cookieOf(user)}`, 'upgrade: websocket', 'sec-websocket-version: 13']
    const bytes = request(`GET ${path} HTTP/1.1`, ...lines, 'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==')
    assert.equal(statusOf(await raw(scene.url, bytes.replace('connection: close', 'connection: upgrade'))), 414)
  }
  assert.equal(scene.upstream.received.length, 0)
})

test('a forward-auth check of a path that is too long is answered with 414', async t => {
  const scene = await setUp(t, { env: { TRUSTED_PROXIES: '127.0.0.1' }, config: { rules: RULES } })
  const user = await scene.user()
  for (const uri of TOO_LONG) {
    const check = await user.get('/_menshen/check', { headers: { 'x-original-uri': uri } })
    const forward = await user.get('/_menshen/forward', { headers: { 'x-forwarded-uri': uri } })
    assert.deepEqual([check.status, forward.status], [414, 414])
  }
  for (const uri of [LONGEST, DEEPEST])
    assert.equal((await user.get('/_menshen/check', { headers: { 'x-original-uri': uri } })).status, 200)
})

test('a rule query for a path that is too long has the outcome uri_too_long', () => {
  const asked = { method: 'GET', role: 'common', groups: [], user: '' }
  for (const path of TOO_LONG)
    assert.deepEqual(answerRuleQuery(createRules(RULES), { ...asked, path }), { outcome: 'uri_too_long' })
  assert.equal(answerRuleQuery(createRules(RULES), { ...asked, path: LONGEST }).outcome, 'admitted')
})

test('the library returns a 414 response for a path that is too long', async t => {
  const menshen = await createMenshen({ baseUrl: 'http://localhost:3000', store: 'memory:', devProvider: false })
  t.after(() => menshen.close())
  for (const path of TOO_LONG) {
    const { answer } = await menshen.admit(new Request(`http://localhost:3000${path}`), { address: '127.0.0.1' })
    assert.equal(answer?.status, 414)
  }
})
