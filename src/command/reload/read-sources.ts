// Everything that can be read anew while we run: the settings of .env, the configuration with what it imports, and the files
// that either of them names.
import { resolve } from 'node:path'
import { MenshenError } from '../../errors.ts'
import type { Config } from '../../settings/config/config-file.ts'
import { configCandidates, findConfigFile, loadConfig } from '../../settings/config/load-config.ts'
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
  /** Where a change may be the mend. */
  readonly files: readonly string[]

  constructor(file: string, { code, message, cause }: MenshenError, files: Iterable<string> = []) {
    super(code, message, cause)
    this.file = file
    this.files = absolute([file, ...files])
  }
}

export const ENV_FILE = '.env'

/** `development` is what leads to the development provider, where that runs. */
export async function readSources(readEnvironment: () => Environment, development?: Environment): Promise<Sources> {
  let environment: Environment = {}
  let configFile: string | undefined
  const files = new Set<string>()
  try {
    const given = readEnvironment()
    environment = { ...given, ...development }
    const settings = readSettings(environment)
    configFile = findConfigFile(process.cwd(), settings.CONFIG)
    const config = configFile ? await loadConfig(configFile, files) : {}
    const isConfigured = config.provider !== undefined || config.providers !== undefined
    const named = filesNamedBy(environment, config)
    const all = [ENV_FILE, ...configCandidates(settings.CONFIG), ...files, ...named.values()]
    return {
      settings,
      config,
      configFile,
      wantsDevelopment: !isConfigured && wantsDevProvider(development ? readSettings(given) : settings),
      files: absolute(all),
      parts: partsOf({ environment, settings, config, named }),
    }
  } catch (error) {
    if (!(error instanceof MenshenError)) throw error
    throw new SourceProblem(configFile ?? fileNamedIn(error.message, environment), error, files)
  }
}

function absolute(files: readonly string[]): string[] {
  return [...new Set(files.map(file => resolve(file)))]
}

/** A setting that cannot be used stands in .env, unless it is what stands in the file that it names. */
function fileNamedIn(message: string, environment: Environment): string {
  const [, setting = ''] = /^(\w+_FILE) is /m.exec(message) ?? []
  return environment[setting] || ENV_FILE
}
