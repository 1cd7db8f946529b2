// A gateway with two providers.

import type { TestContext } from 'node:test'
import { signedInAt, startOidcServer } from './oidc-server.ts'
import { type OidcSetUpOptions, openGateway } from './set-up.ts'
import { startUpstream } from './upstream.ts'

/** As `setUpOidc`, with two providers: `staff` and `partners`. */
export async function setUpTwoProviders(
  t: TestContext,
  { config = {}, env = {}, metadata = {} }: Pick<OidcSetUpOptions, 'config' | 'env' | 'metadata'> = {},
) {
  const [staff, partners] = [await startOidcServer(t, { metadata }), await startOidcServer(t, { metadata })]
  const upstream = await startUpstream(t)
  const providers = {
    staff: { ...staff.config, name: '企业账号' },
    partners: { ...partners.config, name: '合作伙伴', revoke: 'always' as const },
  }
  const gateway = await openGateway(t, { UPSTREAM: upstream.url, ...env }, { config: { providers, ...config } })
  for (const provider of [staff, partners]) provider.now = gateway.now
  return {
    ...gateway,
    staff,
    partners,
    upstream,
    providers,
    signIn: (provider: 'staff' | 'partners') => signedInAt(gateway.url, gateway.now, provider),
  }
}
