// A provider that comes up later than the gateway, or not at all: the start does not wait for it, and sign-ins begin as
// soon as it answers.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import test from 'node:test'
import { freePort } from '../kit/free-port.ts'
import { startInstance } from '../kit/instance.ts'
import { ALICE, CLIENTS, startOidcProvider } from '../kit/live/oidc-provider.ts'
import { createPerson } from '../kit/live/person.ts'
import { until } from '../kit/until.ts'

const UNAVAILABLE = '/login?error=temporarily_unavailable'

const settings = (issuer: string) => ({
  STORE: 'memory:',
  RATE_LIMIT_PER_MINUTE: '0',
  PROVIDER: 'oidc',
  AUTH_URL: issuer,
  CLIENT_ID: CLIENTS.basic.id,
  CLIENT_SECRET: CLIENTS.basic.secret,
})

test('users can sign in as soon as a provider that started after the gateway is up', async t => {
  const port = await freePort()
  const menshen = await startInstance(settings(`http://127.0.0.1:${port}`))
  t.after(() => menshen.stop())
  const alice = createPerson(menshen.url, ALICE)
  assert.equal((await alice.open('/')).status, 200)
  assert.equal((await alice.pressSignIn()).headers.location, UNAVAILABLE)
  const page = await alice.open(UNAVAILABLE)
  assert.match(page.text, /身份认证/)

  const provider = await startOidcProvider({ gateway: menshen.url, port })
  t.after(() => provider.close())
  await until(async () => (await alice.pressSignIn()).headers.location?.startsWith(provider.issuer) === true)
  assert.match((await alice.signIn()).text, /Alice Example/)
})

test('a provider that never answers blocks neither the start nor the login page, and sign-in is temporarily_unavailable', async t => {
  const silent = createServer(socket => socket.on('error', () => {})).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  t.after(() => silent.close())
  const address = silent.address()
  assert.ok(address && typeof address === 'object')
  const menshen = await startInstance({ ...settings(`http://127.0.0.1:${address.port}`), PROVIDER_TIMEOUT_MS: '500' })
  t.after(() => menshen.stop())
  const alice = createPerson(menshen.url, ALICE)
  assert.equal((await alice.open('/login')).status, 200)
  assert.equal((await alice.pressSignIn()).headers.location, UNAVAILABLE)
})
