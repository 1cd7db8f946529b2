// The gateway in front of a real provider, with nothing configured but what a new operator would.

import type { TestContext } from 'node:test'
import type { Config } from '../../../src/index.ts'
import { freePort } from '../free-port.ts'
import type { Environment } from '../instance.ts'
import { openGateway } from '../set-up.ts'
import { ALICE, CLIENTS, type LiveOptions, startOidcProvider } from './oidc-provider.ts'
import { type Account, createPerson } from './person.ts'

export interface LiveSetUpOptions {
  client?: { readonly id: string; readonly secret?: string | undefined }
  env?: Environment
  config?: Config
  configuration?: LiveOptions['configuration']
  tls?: LiveOptions['tls']
  registered?: LiveOptions['registered']
  audiences?: LiveOptions['audiences']
}

/** What many a provider wants before it gives a refresh token: OpenID Connect Core 11. */
export const OFFLINE = {
  env: { SCOPE: 'openid profile email groups offline_access' },
  config: { provider: { authorizationParams: { prompt: 'consent' } } },
}

export type LiveSetUp = Awaited<ReturnType<typeof setUpLive>>

export async function setUpLive(t: TestContext, wishes: LiveSetUpOptions = {}) {
  const { client = CLIENTS.basic, env = {}, config = {}, configuration = {}, tls, registered, audiences } = wishes
  const port = await freePort()
  const gatewayUrl = `http://localhost:${port}`
  const more = { ...(tls && { tls }), ...(registered && { registered }), ...(audiences && { audiences }) }
  const provider = await startOidcProvider({ gateway: gatewayUrl, configuration, ...more })
  t.after(() => provider.close())
  // Its grants are those of one browser, so that a revocation ends nothing else.
  const given = { REVOKE: 'always', ...env }
  const gateway = await openLiveGateway(t, { port, issuer: provider.issuer, client, env: given, config })
  return { ...gateway, provider }
}

export interface LiveGateway {
  readonly port: number
  readonly issuer: string
  readonly client: { readonly id: string; readonly secret?: string | undefined }
  readonly env?: Environment
  readonly config?: Config
}

export async function openLiveGateway(t: TestContext, { port, issuer, client, env = {}, config = {} }: LiveGateway) {
  const settings = {
    PORT: String(port),
    PROVIDER: 'oidc',
    AUTH_URL: issuer,
    CLIENT_ID: client.id,
    ...(client.secret && { CLIENT_SECRET: client.secret }),
    ...env,
  }
  let ahead = 0
  const gateway = await openGateway(t, settings, { config, now: Date.now() })
  return {
    ...gateway,
    passSeconds(seconds: number): void {
      ahead += seconds * 1000
      gateway.passSeconds(seconds)
    },
    person: (account: Account = ALICE) => createPerson(gateway.url, account, () => Date.now() + ahead),
    /** The codes of what it reported. */
    events: () => gateway.lines.map(({ event }) => event),
  }
}
