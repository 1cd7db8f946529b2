// Menshen as a relying party of the OpenID provider of the tests: a whole sign-in, and what "accepts" and "rejects" mean.

import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Config } from '../../src/index.ts'
import type { Client, Response } from '../kit/client.ts'
import type { Environment } from '../kit/instance.ts'
import { OIDC_SECRETS, type OidcPlace, startStrictOidcServer } from '../kit/oidc/strict-oidc-server.ts'
import { openGateway } from '../kit/set-up.ts'

export type RelyingParty = Awaited<ReturnType<typeof openRelyingParty>>

export async function openRelyingParty(
  t: TestContext,
  env: Environment = {},
  config: Config = {},
  place: OidcPlace = {},
) {
  const op = await startStrictOidcServer(t, place)
  const rp = await openGateway(t, { ...op.settings, ...env }, { config })
  op.client = { baseUrl: rp.url, now: rp.now }

  /** Presses the button, goes to the provider and comes back; the answer is that of /callback. */
  async function signIn(client: Client): Promise<Response> {
    return client.follow(await comeBack(client))
  }

  /** The same, up to the provider's redirect to /callback. */
  async function comeBack(client: Client): Promise<Response> {
    return client.follow(await client.post('/login'))
  }

  /** A sign-in works, and the provider has nothing to complain about. */
  async function accepts(what = ''): Promise<Client> {
    const client = rp.visitor()
    const { headers } = await signIn(client)
    assert.equal(headers.location, '/', `${what} ${JSON.stringify(rp.lines.at(-1))}`)
    assert.equal((await client.get('/_menshen/me')).status, 200, what)
    assert.deepEqual(op.complaints, [])
    return client
  }

  /** There is no session, user info was not even asked for, and neither the log nor the page tells any secret. */
  async function rejects(error = 'token_error', what = ''): Promise<void> {
    const asked = op.callsTo('userinfo').length
    await refuses(error, what)
    assert.equal(op.callsTo('userinfo').length, asked, `${what}: user info was asked for`)
  }

  async function refuses(error: string, what = ''): Promise<void> {
    const client = rp.visitor()
    const said = rp.lines.length
    const answer = await signIn(client)
    assert.equal(answer.status, 302, what)
    assert.equal(answer.headers.location, `/login?error=${error}`, `${what} ${JSON.stringify(rp.lines.at(-1))}`)
    assert.ok(!client.cookies.has('menshen_session'), what)
    assert.equal((await client.get('/_menshen/me')).status, 401, what)
    assert.deepEqual(op.complaints, [], what)
    const told = JSON.stringify(rp.lines.slice(said)) + (await client.follow(answer)).text
    for (const secret of OIDC_SECRETS) assert.ok(!told.includes(secret), `${what}: ${secret} is told`)
    assert.equal((await client.get('/_menshen/health')).status, 200, what)
  }

  return { op, rp, visitor: rp.visitor, signIn, comeBack, accepts, rejects, refuses }
}

export const isIn = async (client: Client) => (await client.get('/_menshen/me')).status === 200
