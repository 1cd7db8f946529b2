// A store that cannot be reached is named before the user leaves for the provider, not after the way back.

import assert from 'node:assert/strict'
import test from 'node:test'
import { startOidcServer } from '../kit/oidc-server.ts'
import { startRedis } from '../kit/redis-server.ts'
import { openGateway } from '../kit/set-up.ts'

const NOTICE = 'Signing in is not possible at the moment'

test('while the store is away the login page says so, and no attempt leaves for the provider', async t => {
  const redis = await startRedis()
  t.after(() => redis.stop())
  const op = await startOidcServer(t)
  const env = { ...op.settings, STORE: `redis://${redis.host}`, PAGE_LANGUAGE: 'en' }
  const gateway = await openGateway(t, env, { now: Date.now() })
  op.now = gateway.now
  const client = gateway.visitor()
  assert.ok(!(await client.get('/login')).text.includes(NOTICE))
  await redis.kill()
  const page = await client.get('/login')
  assert.equal(page.status, 200)
  assert.ok(page.text.includes(NOTICE))
  assert.ok((await client.get('/login?error=callback_error')).text.includes(NOTICE), 'after the way back as well')
  const started = await client.post('/login')
  assert.deepEqual([started.status, started.headers['retry-after'], started.headers.location], [503, '5', undefined])
  assert.ok(started.text.includes('you were not sent to the identity provider'))
})
