// Starts the embedded development provider, and the settings that lead to it.
import type { DevProvider } from '../dev-provider/dev-provider.ts'
import { MenshenError } from '../errors.ts'
import type { EventLog } from '../log.ts'
import type { Config } from '../settings/config/config-file.ts'
import { type DevProviderConfig, subOf } from '../settings/config/dev-provider-config.ts'
import { isLoopback, isProduction } from '../settings/deployment.ts'
import { type Environment, namesProvider, type Settings } from '../settings/read.ts'
import { refuseToListen } from './listen-failure.ts'

/** How Menshen is known to it. */
export const DEVELOPMENT_CLIENT = { CLIENT_ID: 'menshen-development', CLIENT_SECRET: 'development-only' }

export interface Development extends Omit<DevProvider, 'setUsers'> {
  /** What the operator would set for it. */
  readonly settings: Environment
  /** After a reload. */
  reconfigure(config: Config): void
}

/** On any free port if it is 0. */
export async function startDevelopment(
  { BASE_URL, PAGE_LANGUAGE }: Pick<Settings, 'BASE_URL' | 'PAGE_LANGUAGE'>,
  { devProvider }: Config,
  port: number,
  now: () => number,
): Promise<Development> {
  // Loaded only where it is used: nothing of it belongs into an application in production.
  const { startDevProvider } = await import('../dev-provider/dev-provider.ts')
  const provider = await startDevProvider({
    port,
    clientId: DEVELOPMENT_CLIENT.CLIENT_ID,
    clientSecret: DEVELOPMENT_CLIENT.CLIENT_SECRET,
    redirectUri: `${BASE_URL}/callback`,
    users: usersOf(devProvider),
    language: PAGE_LANGUAGE,
    now,
  }).catch(error => refuseToListen(error, { setting: 'DEV_PROVIDER_PORT', port, host: '127.0.0.1' }))
  return {
    ...provider,
    settings: { AUTH_URL: provider.url, ...DEVELOPMENT_CLIENT },
    reconfigure: ({ devProvider }) => provider.setUsers(usersOf(devProvider)),
  }
}

/** With every field that the provider answers with. */
function usersOf({ users }: DevProviderConfig = {}) {
  return users?.map(user => {
    const { username, nickname = '', email = '', phone_number = '', ou_id = '', ou_name = '', groups = [] } = user
    return { sub: subOf(user), username, nickname, email, phone_number, ou_id, ou_name, groups }
  })
}

/** It lets anybody in: never beyond somebody's own machine, and never beside a real provider. */
export function demandDevelopment(settings: Settings, { provider, providers }: Config): void {
  const refuse = (reason: string, expected: string) => {
    throw new MenshenError('bad_settings', `devProvider is true although ${reason}; expected ${expected}.`)
  }
  if (isProduction(settings)) refuse(`NODE_ENV is "${settings.NODE_ENV}"`, 'a provider: it lets anybody in')
  if (!isLoopback(settings.BASE_URL))
    refuse(`BASE_URL is "${settings.BASE_URL}"`, 'a BASE_URL on this machine, for example http://localhost:3000')
  if (namesProvider(settings) || provider !== undefined || providers !== undefined)
    refuse('there is a provider', 'one of them')
}

/** Nobody shall take it for a real one, and whoever wants to try it has to know its users. */
export function tellOfDevelopment(log: EventLog, { BASE_URL, AUTH_URL }: Settings, users: readonly string[]): void {
  log.report('started', { address: BASE_URL, provider: developmentNote(AUTH_URL), users })
  log.close()
}

export function developmentNote(url: string | undefined): string {
  return `${url} (development provider, not for production)`
}
