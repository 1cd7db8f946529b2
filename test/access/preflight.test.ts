// CORS: a preflight brings no cookie, so a rule has to let it through; what it asks for stays as guarded as it was.
import assert from 'node:assert/strict'
import test from 'node:test'
import type { Rule } from '../../src/index.ts'
import { setUp } from '../kit/set-up.ts'

const RULES: Rule[] = [
  { path: '/api', methods: ['OPTIONS'], public: true },
  { path: '/api/internal', roles: ['developer'] },
  { path: '/api/open', roles: ['developer'] },
  { path: '/api/open', methods: ['OPTIONS'], public: true },
]
const ORIGIN = 'https://app.example.com'
const PREFLIGHT = { origin: ORIGIN, 'access-control-request-method': 'PUT', 'access-control-request-headers': 'x-csrf' }

test('a CORS preflight reaches the application, and the browser gets its response', async t => {
  const scene = await setUp(t, {
    config: { rules: RULES },
    answer: (_, response) => response.writeHead(204, { 'access-control-allow-origin': ORIGIN }).end(),
  })
  const visitor = scene.visitor()
  for (const path of ['/api', '/api/items/1', '/api/items.json', '/api/open']) {
    const answer = await visitor.request({ method: 'OPTIONS', path, headers: PREFLIGHT })
    assert.equal(answer.status, 204, path)
    assert.equal(answer.headers['access-control-allow-origin'], ORIGIN)
    const { method, target, headers } = scene.upstream.last()
    assert.deepEqual({ method, target, ...headers }, { ...headers, ...PREFLIGHT, method: 'OPTIONS', target: path })
  }
})

test('a public rule for OPTIONS admits no other method, no other path and no method override header', async t => {
  const scene = await setUp(t, { config: { rules: RULES } })
  const visitor = scene.visitor()
  const script = { origin: ORIGIN, accept: 'application/json' }
  for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'PROPFIND'])
    assert.equal((await visitor.request({ method, path: '/api/items', headers: script })).status, 401, method)
  for (const path of ['/', '/other', '/apiary', '/api/internal'])
    assert.equal((await visitor.request({ method: 'OPTIONS', path, headers: PREFLIGHT })).status, 401, path)
  const disguised = { ...script, 'x-http-method-override': 'OPTIONS', 'x-method-override': 'OPTIONS' }
  assert.equal((await visitor.request({ method: 'PUT', path: '/api/items', headers: disguised })).status, 401)
  assert.equal(scene.upstream.received.length, 0)
  const common = await scene.user()
  assert.equal((await common.request({ method: 'PUT', path: '/api/items', headers: script })).status, 200)
  assert.equal((await common.request({ method: 'PUT', path: '/api/open', headers: script })).status, 403)
})

test('a forward-auth check of a CORS preflight gets the same decision as the preflight itself', async t => {
  const scene = await setUp(t, { config: { rules: RULES }, env: { TRUSTED_PROXIES: '127.0.0.1' } })
  const ask = async (method: string, path: string) => {
    const headers = { 'x-original-method': method, 'x-original-uri': path }
    return (await scene.visitor().get('/_menshen/check', { headers })).status
  }
  assert.equal(await ask('OPTIONS', '/api/items'), 200)
  assert.equal(await ask('PUT', '/api/items'), 401)
  assert.equal(await ask('OPTIONS', '/api/internal'), 401)
})
