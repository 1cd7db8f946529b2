// DNS rebinding (S69): a name that led to the open network when the metadata was read leads into a private one when it is
// called.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { freePort } from '../kit/free-port.ts'
import { AT_OPEN, inside, names, OPEN, PRIVATE } from './private-network.ts'
import { openRelyingParty } from './relying-party.ts'

async function openRebinding(t: TestContext) {
  const leads = names(t, { 'idp.test': OPEN, 'api.idp.test': OPEN, 'users.idp.test': OPEN })
  const scene = await openRelyingParty(t, { REVOKE: 'always', REFRESH_FAILURE: 'clear' }, {}, AT_OPEN)
  const { port } = new URL(scene.op.issuer)
  scene.op.bend.discovery = right => ({
    ...right,
    token_endpoint: `http://api.idp.test:${port}/token`,
    userinfo_endpoint: `http://users.idp.test:${port}/userinfo`,
  })
  return { ...scene, leads, seen: await inside(t, Number(port)) }
}

test('a name that resolves into a private network after discovery is not connected to', async t => {
  const { op, rp, leads, seen, accepts, refuses } = await openRebinding(t)
  await accepts()
  leads['api.idp.test'] = PRIVATE
  await refuses('token_error')
  assert.deepEqual(seen, [])
  assert.match(JSON.stringify(rp.lines.at(-1)), /provider_answer.*private network/)
  leads['api.idp.test'] = OPEN
  op.bend.token = right => {
    leads['users.idp.test'] = PRIVATE
    return right
  }
  await refuses('userinfo_error')
  assert.deepEqual(seen, [])
})

test('a refresh and a revocation do not connect to a name that now resolves into a private network', async t => {
  const { rp, leads, seen, accepts } = await openRebinding(t)
  const user = await accepts()
  const leaving = await accepts()
  leads['api.idp.test'] = PRIVATE
  rp.passSeconds(7000)
  assert.equal((await user.get('/_menshen/me')).status, 401)
  await leaving.post('/logout', '', { headers: { origin: rp.url } })
  assert.deepEqual(seen, [])
})

test('an issuer that briefly resolves to a private address gives no access to the private network', async t => {
  const { op, leads, seen, visitor } = await openRebinding(t)
  leads['api.idp.test'] = PRIVATE
  const { discovery } = op.bend
  op.bend.discovery = right => {
    // The connection for the metadata is made already: only whoever looks the name up once more is deceived.
    leads['idp.test'] = PRIVATE
    return discovery?.(right)
  }
  const client = visitor()
  const away = await client.post('/login')
  leads['idp.test'] = OPEN
  if (!away.headers.location?.startsWith('/login')) await client.follow(await client.follow(away))
  assert.deepEqual(seen, [])
})

test('an address in the operator’s own configuration can be private', async t => {
  names(t, { 'idp.test': OPEN, 'inner.test': PRIVATE })
  const port = await freePort()
  const seen = await inside(t, port)
  const config = { provider: { userInfoUrl: `http://inner.test:${port}/me` } }
  const scene = await openRelyingParty(t, {}, config, AT_OPEN)
  await scene.refuses('userinfo_error')
  assert.deepEqual(seen, ['GET /me'])
})

test('an issuer in a private network can name endpoints there', async t => {
  names(t, { 'idp.test': PRIVATE, 'api.idp.test': PRIVATE })
  const scene = await openRelyingParty(t, {}, {}, { host: PRIVATE, name: 'idp.test' })
  const { port } = new URL(scene.op.issuer)
  scene.op.bend.discovery = right => ({ ...right, userinfo_endpoint: `http://api.idp.test:${port}/userinfo` })
  await scene.accepts()
})
