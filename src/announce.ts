// What the start says: to the log, and in plain words to the person who typed the command.
import type { Log } from './log.ts'
import { hidePassword } from './secret.ts'
import { missingSettings, type Settings } from './settings.ts'

export function announce(log: Log, settings: Settings, users: readonly string[] | undefined): void {
  const { BASE_URL, HOST, PORT, AUTH_URL, WORKERS } = settings
  const store = hidePassword(settings.STORE)
  const provider = users ? `${AUTH_URL} (development provider, not for production)` : AUTH_URL
  log.info(
    {
      address: BASE_URL,
      listening: `${HOST}:${PORT}`,
      provider,
      store,
      workers: WORKERS,
      ...(users && { users }),
    },
    'started',
  )
  const missing = missingSettings(settings)
  if (missing.length > 0) log.error({ missing }, 'nobody can sign in: settings of the provider are missing')
  if (settings.STATE_CHECK === 'suffix' && settings.PKCE === 'off')
    log.warn(
      { remedy: 'STATE_CHECK=bound' },
      'the state is checked by its suffix only: another site can sign a visitor in as somebody else (login CSRF)',
    )
  if (process.stdout.isTTY) process.stdout.write(welcome(BASE_URL, provider, store, users))
}

/** A pipe gets the log alone. */
function welcome(address: string, provider = 'none yet', store: string, users: readonly string[] = []): string {
  const lines = [`Menshen is at ${address}`, `provider  ${provider}`, `store     ${store}`]
  if (users.length > 0) lines.push(`users     ${users.join(', ')} (one click each)`)
  return `\n${lines.map(line => `  ${line}\n`).join('')}\n`
}
