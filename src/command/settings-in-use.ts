// The settings that a start in this folder would use, for commands that look at what it keeps: with those of the development
// provider where that would be started.
import { DEVELOPMENT_CLIENT } from '../library/development.ts'
import { planProviders } from '../provider/providers.ts'
import type { Config } from '../settings/config/config-file.ts'
import { findConfigFile, loadConfigFile } from '../settings/config/load-config.ts'
import { type Environment, readSettings, type Settings, wantsDevProvider } from '../settings/read.ts'

export interface Given {
  readonly settings: Settings
  readonly config: Config
}

export async function loadConfig({ CONFIG }: Environment): Promise<Config> {
  return loadConfigFile(findConfigFile(process.cwd(), CONFIG || undefined))
}

export function settingsInUse(environment: Environment, { settings: given, config }: Given) {
  const isConfigured = config.provider !== undefined || config.providers !== undefined
  const isDevelopment = !isConfigured && wantsDevProvider(given)
  const AUTH_URL = `http://localhost:${given.DEV_PROVIDER_PORT}`
  const settings = isDevelopment ? readSettings({ ...environment, ...DEVELOPMENT_CLIENT, AUTH_URL }) : given
  return { settings, config, plans: planProviders(config, settings), isDevelopment }
}
