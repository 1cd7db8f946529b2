// `menshen doctor` against oidc-provider: a real one lets us tell a wrong secret from a wrong redirect address.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCommandRunner } from '../kit/command-runner.ts'
import { freePort } from '../kit/free-port.ts'
import { CLIENTS, startOidcProvider } from '../kit/live/oidc-provider.ts'

const commands = createCommandRunner()

test('menshen doctor distinguishes a working client, a wrong client secret and an unregistered redirect address', async t => {
  const BASE_URL = `http://localhost:${await freePort()}`
  const provider = await startOidcProvider({ gateway: BASE_URL })
  t.after(() => provider.close())
  const { id: CLIENT_ID, secret: CLIENT_SECRET } = CLIENTS.basic
  const env = { PROVIDER: 'oidc', AUTH_URL: provider.issuer, CLIENT_ID, CLIENT_SECRET, BASE_URL, STORE: 'memory:' }
  const doctor = (changed: object) => commands.run({ ...env, ...changed }, { args: ['doctor'] })

  const good = await doctor({})
  assert.equal(good.code, 0, good.output)
  for (const part of ['discovery', 'keys', 'client', 'redirect address', 'clock'])
    assert.match(good.output, new RegExp(`^✔ provider ${part}: `, 'm'))

  const wrongSecret = await doctor({ CLIENT_SECRET: 'wrong-CANARY' })
  assert.equal(wrongSecret.code, 1)
  assert.match(wrongSecret.output, /^✖ provider client: .*invalid_client.* → CLIENT_ID or CLIENT_SECRET/m)
  assert.match(wrongSecret.output, /^✔ provider redirect address/m)
  assert.doesNotMatch(wrongSecret.output, /CANARY/)

  const other = `http://localhost:${await freePort()}`
  const wrongAddress = await doctor({ BASE_URL: other })
  assert.equal(wrongAddress.code, 1)
  assert.match(wrongAddress.output, /^✔ provider client/m)
  assert.match(
    wrongAddress.output,
    new RegExp(`^✖ provider redirect address: .* → Register exactly ${other}/callback`, 'm'),
  )
})
