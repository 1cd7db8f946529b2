// A configuration that was checked as a whole: what can be said about it without a store, at a start and at a reload alike.
import { MenshenError } from '../errors.ts'
import { createLook, type Look } from '../pages/look/look.ts'
import { createLanguages, type Languages } from '../pages/words/languages.ts'
import { demandVerifiable } from '../provider/bearer/verifiable.ts'
import { planProviders } from '../provider/providers.ts'
import { secretProblem } from '../session/keys/derived-keys.ts'
import type { Config } from '../settings/config/config-file.ts'
import { refuseBaseUrlAsUpstream } from '../settings/own-upstream.ts'
import type { Settings } from '../settings/read.ts'

export interface Configuration {
  readonly settings: Settings
  readonly config: Config
  readonly plans: ReturnType<typeof planProviders>
  readonly languages: Languages
  readonly look: Look
}

/** Of settings and a configuration file that were checked each by itself. */
export function checkWhole(settings: Settings, config: Config): Configuration {
  refuseBaseUrlAsUpstream(settings, config)
  const look = createLook(settings, config)
  const languages = createLanguages(settings, config, look)
  const plans = planProviders(config, settings)
  demandVerifiable(config.rules ?? [], plans)
  const problem = secretProblem(settings, plans[0])
  if (problem) throw new MenshenError('bad_settings', problem)
  return { settings, config, plans, languages, look }
}
