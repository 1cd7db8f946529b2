// Starts the embedded development provider, and the settings that lead to it.
import { type DevProvider, startDevProvider } from '../dev-provider/dev-provider.ts'
import type { Environment, Settings } from '../settings/read.ts'
import { refuseToListen } from './listen-failure.ts'

/** How Menshen is known to it. */
export const DEVELOPMENT_CLIENT = { CLIENT_ID: 'menshen-development', CLIENT_SECRET: 'development-only' }

interface Development extends DevProvider {
  /** What the operator would set for it. */
  readonly settings: Environment
}

export async function startDevelopment(settings: Settings, now: () => number): Promise<Development> {
  const { DEV_PROVIDER_PORT: port, BASE_URL } = settings
  const provider = await startDevProvider({
    port,
    clientId: DEVELOPMENT_CLIENT.CLIENT_ID,
    clientSecret: DEVELOPMENT_CLIENT.CLIENT_SECRET,
    redirectUri: `${BASE_URL}/callback`,
    now,
  }).catch(error => refuseToListen(error, { setting: 'DEV_PROVIDER_PORT', port, host: '127.0.0.1' }))
  return { ...provider, settings: { AUTH_URL: provider.url, ...DEVELOPMENT_CLIENT } }
}
