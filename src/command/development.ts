// Starts the embedded development provider, and the settings that lead to it.
import { type DevProvider, startDevProvider } from '../dev-provider/dev-provider.ts'
import type { Environment, Settings } from '../settings/read.ts'
import { refuseToListen } from './listen-failure.ts'

const CLIENT_ID = 'menshen-development'
const CLIENT_SECRET = 'development-only'

interface Development extends DevProvider {
  /** What the operator would set for it. */
  readonly settings: Environment
}

export async function startDevelopment(settings: Settings, now: () => number): Promise<Development> {
  const { DEV_PROVIDER_PORT: port, BASE_URL } = settings
  const provider = await startDevProvider({
    port,
    clientId: CLIENT_ID,
    clientSecret: CLIENT_SECRET,
    redirectUri: `${BASE_URL}/callback`,
    now,
  }).catch(error => refuseToListen(error, { setting: 'DEV_PROVIDER_PORT', port, host: '127.0.0.1' }))
  return { ...provider, settings: { AUTH_URL: provider.url, CLIENT_ID, CLIENT_SECRET } }
}
