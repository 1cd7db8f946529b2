// What can be said of the settings by themselves: what is risky, misspelt or contradicts itself, and which cookies they mean.
import { EVENTS } from '../../events.ts'
import type { ProviderPlan } from '../../provider/plan.ts'
import { secretProblem } from '../../session/keys/derived-keys.ts'
import { adviceFor } from '../../settings/advice.ts'
import type { Config } from '../../settings/config/config-file.ts'
import { isLoopback } from '../../settings/deployment.ts'
import { printable } from '../../settings/json-place.ts'
import type { Misspelt } from '../../settings/misspelt.ts'
import { isSecure, type Settings } from '../../settings/read.ts'
import { type Finding, failure, good, warning } from './finding.ts'

/** Before this program was made: the clock was never set. */
const EARLIEST = Date.UTC(2026, 0, 1)

export function settingsFindings(
  settings: Settings,
  plans: readonly [ProviderPlan, ...ProviderPlan[]],
  misspelt: readonly Misspelt[],
  roles: Config['roles'],
): Finding[] {
  const secret = secretProblem(settings, plans[0])
  const found = [
    ...(secret ? [failure('settings', secret, 'Set SECRET or SECRET_FILE.')] : []),
    ...misspelt.map(misspeltFinding),
    ...adviceFor(settings, plans, roles).map(({ code, remedy }) => warning('settings', EVENTS[code].sentence, remedy)),
  ]
  return found.length > 0 ? found : [good('settings', 'all of them can be used, and fit together')]
}

export function misspeltFinding({ name, likely }: Misspelt): Finding {
  const remedy = likely ? `Did you mean ${likely}?` : 'docs/settings.md has all names.'
  return warning('settings', `${printable(name, 100)} is no setting of ours and has no effect`, remedy)
}

export function cookieFinding(settings: Settings): Finding {
  const { BASE_URL } = settings
  if (isSecure(settings)) return good('cookies', `__Host- and Secure, for ${BASE_URL} alone`)
  const plain = `without Secure, because ${BASE_URL} is plain http`
  if (isLoopback(BASE_URL)) return good('cookies', `${plain}; it does not leave this machine`)
  return warning(
    'cookies',
    `${plain}: they can be read on the way`,
    'BASE_URL=https://…, with TLS_CERT_FILE or a proxy in front.',
  )
}

export function timeFinding(now: number): Finding {
  const seen = new Date(now).toISOString()
  return now < EARLIEST
    ? failure('time', `${seen}: the clock was never set`, 'Set the time of this machine by NTP.')
    : good('time', seen)
}
