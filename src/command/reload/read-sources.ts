// Everything that can be read anew while we run: the settings of .env, the configuration with what it imports, and the files
// that either of them names.
import { resolve } from 'node:path'
import { MenshenError } from '../../errors.ts'
import type { Config } from '../../settings/config/config-file.ts'
import { configCandidates, findConfigFile, type LoadedConfig, loadConfig } from '../../settings/config/load-config.ts'
import { type Environment, readSettings, type Settings, wantsDevProvider } from '../../settings/read.ts'
import { filesNamedBy, partsOf } from './source-parts.ts'

export interface Sources {
  readonly settings: Settings
  readonly config: Config
  readonly configFile: string | undefined
  /** Nothing says where to sign in. */
  readonly wantsDevelopment: boolean
  /** What was read, and what would be read if it were there. */
  readonly files: readonly string[]
  /** What each part is like, by its name. */
  readonly parts: Readonly<Record<string, string>>
}

/** Why something cannot be used, and in which file it stands. */
export class SourceProblem extends MenshenError {
  readonly file: string

  constructor(file: string, { code, message, cause }: MenshenError) {
    super(code, message, cause)
    this.file = file
  }
}

export const ENV_FILE = '.env'
const NOTHING_LOADED: LoadedConfig = { config: {}, files: [] }

/** `development` is what leads to the development provider, where that runs. */
export async function readSources(readEnvironment: () => Environment, development?: Environment): Promise<Sources> {
  let environment: Environment = {}
  let configFile: string | undefined
  try {
    const given = readEnvironment()
    environment = { ...given, ...development }
    const settings = readSettings(environment)
    configFile = findConfigFile(process.cwd(), settings.CONFIG)
    const { config, files } = configFile ? await loadConfig(configFile) : NOTHING_LOADED
    const isConfigured = config.provider !== undefined || config.providers !== undefined
    const named = filesNamedBy(environment, config)
    const all = [ENV_FILE, ...configCandidates(settings.CONFIG), ...files, ...named.values()]
    return {
      settings,
      config,
      configFile,
      wantsDevelopment: !isConfigured && wantsDevProvider(development ? readSettings(given) : settings),
      files: [...new Set(all.map(file => resolve(file)))],
      parts: partsOf({ environment, settings, config, named }),
    }
  } catch (error) {
    if (!(error instanceof MenshenError)) throw error
    throw new SourceProblem(configFile ?? fileNamedIn(error.message, environment), error)
  }
}

/** A setting that cannot be used stands in .env, unless it is what stands in the file that it names. */
function fileNamedIn(message: string, environment: Environment): string {
  const [, setting = ''] = /^(\w+_FILE) is /m.exec(message) ?? []
  return environment[setting] || ENV_FILE
}
