// What the start says: to the log, and in plain words to the person who typed the command.
import type { Report } from '../events.ts'
import { missingSettings, type Settings } from '../settings/read.ts'
import { hidePassword } from '../settings/secret.ts'

export function announce(report: Report, settings: Settings, users: readonly string[] | undefined): void {
  const { BASE_URL, HOST, PORT, AUTH_URL, WORKERS } = settings
  const store = hidePassword(settings.STORE)
  const provider = users ? `${AUTH_URL} (development provider, not for production)` : AUTH_URL
  report('started', {
    address: BASE_URL,
    listening: `${HOST}:${PORT}`,
    provider,
    store,
    workers: WORKERS,
    ...(users && { users }),
  })
  const missing = missingSettings(settings)
  if (missing.length > 0) report('settings_missing', { missing })
  if (settings.STATE_CHECK === 'suffix' && settings.PKCE === 'off')
    report('weak_state_check', { remedy: 'STATE_CHECK=bound' })
  if (process.stdout.isTTY) process.stdout.write(welcome(BASE_URL, provider, store, users))
}

/** A pipe gets the log alone. */
function welcome(address: string, provider = 'none yet', store: string, users: readonly string[] = []): string {
  const lines = [`Menshen is at ${address}`, `provider  ${provider}`, `store     ${store}`]
  if (users.length > 0) lines.push(`users     ${users.join(', ')} (one click each)`)
  return `\n${lines.map(line => `  ${line}\n`).join('')}\n`
}
