// The command: settings → store → listen → close. The only file that reads the environment.
import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { type Logger, pino } from 'pino'
import { loadConfig } from './config-file.ts'
import { startDevProvider } from './dev-provider/dev-provider.ts'
import { MenshenError } from './errors.ts'
import { createMenshen } from './index.ts'
import { Secret } from './secret.ts'
import { serve } from './serve.ts'
import { type Environment, missingSettings, readSettings, type Settings, wantsDevProvider } from './settings.ts'

const DEV_CLIENT = { id: 'menshen-development', secret: 'development-only' }
/** How long requests in flight may take to finish when the process is asked to end. */
const CLOSE_PATIENCE_MS = 10_000

try {
  await run()
} catch (error) {
  if (!(error instanceof MenshenError)) throw error
  process.stderr.write(`${error.message}\n`)
  // A store or a provider that did start must not keep a failed start alive.
  process.exit(1)
}

async function run(): Promise<void> {
  const given = readSettings({ ...readEnvFile(), ...process.env })
  const config = await loadConfig(process.cwd())
  const development = wantsDevProvider(given) ? await startDevelopment(given) : undefined
  const settings = development?.settings ?? given
  const log = openLog(settings)
  const menshen = await createMenshen({ settings, config, log })
  const { PORT, HOST } = settings
  const serving = await serve(menshen.listener, PORT, HOST).catch(error => refuseToListen(error, 'PORT', PORT))
  announce(log, settings, development?.users)

  const stop = async (signal: NodeJS.Signals) => {
    for (const again of ['SIGTERM', 'SIGINT'] as const) process.once(again, () => process.exit(1))
    log.info({ signal }, 'stopping')
    await serving.close(CLOSE_PATIENCE_MS)
    await menshen.close()
    await development?.close()
    log.info({}, 'stopped')
  }
  process.once('SIGTERM', stop)
  process.once('SIGINT', stop)
}

/** The environment wins over the file. */
function readEnvFile(): Environment {
  try {
    return parseEnv(readFileSync('.env', 'utf8'))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return {}
    throw new MenshenError('cannot_start', `.env cannot be read (${code}); make it a readable file, or remove it.`)
  }
}

async function startDevelopment(given: Settings) {
  const { url, users, close } = await startDevProvider({
    port: given.DEV_PROVIDER_PORT,
    clientId: DEV_CLIENT.id,
    clientSecret: DEV_CLIENT.secret,
    redirectUri: `${given.BASE_URL}/callback`,
    now: Date.now,
  }).catch(error => refuseToListen(error, 'DEV_PROVIDER_PORT', given.DEV_PROVIDER_PORT))
  const CLIENT_SECRET = new Secret(DEV_CLIENT.secret)
  return { settings: { ...given, AUTH_URL: url, CLIENT_ID: DEV_CLIENT.id, CLIENT_SECRET }, users, close }
}

function refuseToListen(error: NodeJS.ErrnoException, setting: string, port: number): never {
  const why =
    error.code === 'EADDRINUSE'
      ? `port ${port} is already in use; stop what uses it, or choose another by ${setting}`
      : `cannot listen on port ${port} (${error.code}); check HOST and ${setting}`
  throw new MenshenError('cannot_start', `${setting}: ${why}.`)
}

function openLog({ LOG_LEVEL }: Settings): Logger {
  return pino({
    level: LOG_LEVEL,
    base: null,
    messageKey: 'event',
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: level => ({ level }) },
  })
}

function announce(log: Logger, settings: Settings, users: readonly string[] | undefined): void {
  const { BASE_URL, HOST, PORT, AUTH_URL, STORE } = settings
  const provider = users ? `${AUTH_URL} (development provider, not for production)` : AUTH_URL
  log.info(
    { address: BASE_URL, listening: `${HOST}:${PORT}`, provider, store: STORE, ...(users && { users }) },
    'started',
  )
  const missing = missingSettings(settings)
  if (missing.length > 0) log.error({ missing }, 'nobody can sign in: settings of the provider are missing')
  if (settings.STATE_CHECK === 'suffix')
    log.warn(
      { remedy: 'STATE_CHECK=bound' },
      'the state is checked by its suffix only: another site can sign a visitor in as somebody else (login CSRF)',
    )
  if (process.stdout.isTTY) process.stdout.write(welcome(BASE_URL, provider, STORE, users))
}

/** For the person who typed the command; a pipe gets the log alone. */
function welcome(address: string, provider = 'none yet', store: string, users: readonly string[] = []): string {
  const lines = [`Menshen is at ${address}`, `provider  ${provider}`, `store     ${store}`]
  if (users.length > 0) lines.push(`users     ${users.join(', ')} (one click each)`)
  return `\n${lines.map(line => `  ${line}\n`).join('')}\n`
}
