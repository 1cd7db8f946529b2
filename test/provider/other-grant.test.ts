// Other grants at the token endpoint: with the request of the plan, and a response with the names of RFC 6749.

import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { startScripted } from './scripted.ts'
import { CLIENT_ID, CLIENT_SECRET } from './sheet.ts'
import { SHEETS } from './sheets/all-sheets.ts'

test('another grant is sent in the provider’s format, and its response is mapped to the names of RFC 6749', async t => {
  const { provider, sent, next } = await startFor(t, 'dingtalk')
  next({ body: { accessToken: 'xt-1', expireIn: 60 } })
  const response = await provider.requestGrant('token_exchange', { grant_type: 'urn:example:grant', audience: 'wiki' })
  const { access_token, expires_in } = response as Record<string, unknown>
  assert.deepEqual([access_token, expires_in], ['xt-1', 60])
  const [{ json } = {}] = sent()
  assert.deepEqual(json, {
    grantType: 'urn:example:grant',
    audience: 'wiki',
    clientId: CLIENT_ID,
    clientSecret: CLIENT_SECRET,
  })
})

test('another grant that the provider refuses fails with its error code and without text from the response', async t => {
  const { provider, next } = await startFor(t, 'oidc')
  next({ status: 400, body: { error: 'invalid_grant', error_description: 'CANARY' } })
  await assert.rejects(provider.requestGrant('token_exchange', { grant_type: 'x' }), (error: Error) => {
    assert.equal(Object(error).code, 'provider_refused')
    assert.equal(Object(error).errorCode, 'invalid_grant')
    assert.doesNotMatch(error.message, /CANARY/)
    return true
  })
})

function startFor(t: TestContext, preset: string) {
  const sheet = SHEETS[preset]
  assert.ok(sheet)
  return startScripted(t, preset, sheet)
}
