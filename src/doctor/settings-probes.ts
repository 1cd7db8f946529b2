// Checks the settings on their own: which are risky, misspelt or contradict each other, and which cookies result from them.

import { adviceFor } from '../config/advice.ts'
import { isLoopback, isProduction } from '../config/deployment.ts'
import type { Config } from '../config/file.ts'
import { expiredMachines } from '../config/machines.ts'
import { isSecure } from '../config/read.ts'
import type { Settings } from '../config/settings.ts'
import type { MisspeltName } from '../config/suggestions.ts'

import type { ProviderPlan } from '../provider/plan.ts'
import { secretProblem } from '../session/derived-keys.ts'
import { type Phrase, phrase, quoted } from '../text/text.ts'
import { sanitize } from '../util/safe-text.ts'
import { type Finding, failure, good, warning } from './finding.ts'

/** An earlier time is before this program was made: the clock was never set. */
const MIN_PLAUSIBLE_TIME = Date.UTC(2026, 0, 1)

export function settingsFindings(
  settings: Settings,
  plans: readonly [ProviderPlan, ...ProviderPlan[]],
  misspelt: readonly MisspeltName[],
  config: Config,
  now: number,
): Finding[] {
  const secret = secretProblem(settings, plans[0])
  const found = [
    ...(secret ? [failure('settings', quoted(secret), phrase('set_secret'))] : []),
    ...misspelt.map(misspeltFinding),
    ...adviceFor(settings, plans, config.roles, expiredMachines(config.machines, now), config).map(({ code, remedy }) =>
      warning('settings', phrase(`advice.${code}`), remedy),
    ),
  ]
  return found.length > 0 ? found : [good('settings', phrase('settings_good'))]
}

export function misspeltFinding({ name, likely, page }: MisspeltName): Finding {
  const remedy = likely ? phrase('did_you_mean', { name: likely }) : settingsPage(page)
  return warning('settings', phrase('no_such_setting', { name: sanitize(name, 100) }), remedy)
}

/** Where to find the name of a setting. */
export function settingsPage(page: string | undefined): Phrase {
  return page === undefined ? phrase('see_settings_page') : phrase('see_migration_page', { page })
}

export function cookieFinding(settings: Settings): Finding {
  const { BASE_URL: url } = settings
  if (isSecure(settings)) return good('cookies', phrase('cookies_secure', { url }))
  if (isLoopback(url) && isProduction(settings))
    return warning('cookies', phrase('cookies_local', { url }), phrase('advise_public_base_url'))
  if (isLoopback(url)) return good('cookies', phrase('cookies_loopback', { url }))
  return warning('cookies', phrase('cookies_plain', { url }), phrase('use_https'))
}

export function timeFinding(now: number): Finding {
  const time = new Date(now).toISOString()
  return now < MIN_PLAUSIBLE_TIME
    ? failure('time', phrase('clock_never_set', { time }), phrase('set_time_by_ntp'))
    : good('time', quoted(time))
}
