// A store that cannot be reached is named before the user leaves for the provider, not after the way back.

import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import type { Environment } from '../kit/instance.ts'
import { answerOf } from '../kit/oidc-server.ts'
import { startRedis } from '../kit/redis-server.ts'
import { setUpOidc } from '../kit/set-up.ts'
import { until } from '../kit/until.ts'

const NOTICE = 'Sign-in is unavailable right now'

async function openWithRedis(t: TestContext, more: Environment = {}) {
  const redis = await startRedis()
  t.after(() => redis.stop())
  const env = { STORE: `redis://${redis.host}`, PAGE_LANGUAGE: 'en', ...more }
  return { redis, ...(await setUpOidc(t, { env, now: Date.now(), application: false })) }
}

test('during a store outage the login page shows a notice, and a sign-in gets 503 instead of a redirect', async t => {
  const { redis, client } = await openWithRedis(t)
  assert.ok(!(await client.get('/login')).text.includes(NOTICE))
  await redis.kill()
  const page = await client.get('/login')
  assert.equal(page.status, 200)
  assert.ok(page.text.includes(NOTICE))
  assert.ok((await client.get('/login?error=callback_error')).text.includes(NOTICE), 'after the way back as well')
  const started = await client.post('/login')
  assert.deepEqual([started.status, started.headers['retry-after'], started.headers.location], [503, '5', undefined])
  assert.ok(started.text.includes('you weren’t sent to the identity provider'))
})

const UNEXPECTED = 'Something unexpected happened during sign-in'
const NOT_SAVED = 'Your sign-in couldn’t be saved because of a problem with this service'

test('if the store fails between code exchange and session, the login page names the cause and tokens are revoked', async t => {
  const { redis, provider: op, client, visitor } = await openWithRedis(t, { REVOKE: 'always' })
  op.tokenFields = { ...op.tokenFields, refresh_token: 'rt-CANARY' }
  op.intercept = async ({ path }) => {
    if (path === '/userinfo') await redis.kill()
    return false
  }
  const back = await client.get(await answerOf(client))
  assert.equal(back.headers.location, '/login?error=callback_error')
  await until(() => op.callsTo('/revoke').length > 0)
  assert.deepEqual(
    op.callsTo('/revoke').map(({ form }) => form.get('token')),
    ['rt-CANARY'],
  )
  const during = (await client.get('/login?error=callback_error')).text
  assert.ok(during.includes(NOTICE) && during.includes('Try again in a few minutes'))
  assert.ok(!during.includes(UNEXPECTED), 'the store is the cause, and the page has one notice')
  await redis.restart()
  await until(async () => (await client.get('/_menshen/ready')).status === 200)
  const after = (await client.get('/login?error=callback_error')).text
  assert.ok(after.includes(NOT_SAVED) && after.includes('Sign in again'))
  assert.ok(!after.includes(UNEXPECTED) && !after.includes(NOTICE))
  const other = await visitor().get('/login?error=callback_error', { headers: { 'user-agent': 'another' } })
  assert.ok(other.text.includes(UNEXPECTED), 'other failures have their own sentence')
})
