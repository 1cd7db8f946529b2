// The command: settings → store → listen → close. The only file that reads the environment.
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { parseEnv } from 'node:util'
import { pino } from 'pino'
import { startDevProvider } from './dev-provider/dev-provider.ts'
import { MenshenError } from './errors.ts'
import { createMenshen } from './index.ts'
import { Secret } from './secret.ts'
import { type Environment, missingSettings, readSettings, type Settings, wantsDevProvider } from './settings.ts'

const DEV_CLIENT = { id: 'menshen-development', secret: 'development-only' }

try {
  await run()
} catch (error) {
  if (!(error instanceof MenshenError)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
}

async function run(): Promise<void> {
  const given = readSettings({ ...readEnvFile(), ...process.env })
  const log = pino({ level: given.LOG_LEVEL, base: null, timestamp: pino.stdTimeFunctions.isoTime })
  const development = wantsDevProvider(given) ? await startDevelopment(given) : undefined
  const settings = development?.settings ?? given
  const menshen = await createMenshen({ settings, log })
  const server = createServer(menshen.listener)
  await listen(server, settings)

  const missing = missingSettings(settings)
  log.info(
    {
      address: settings.BASE_URL,
      listening: `${settings.HOST}:${settings.PORT}`,
      provider: development ? `development provider at ${settings.AUTH_URL}, not for production` : settings.AUTH_URL,
      ...(development ? { users: development.users } : {}),
      store: settings.STORE,
    },
    'started',
  )
  if (missing.length > 0) log.error({ missing }, 'nobody can sign in: settings of the provider are missing')
  if (settings.STATE_CHECK === 'suffix')
    log.warn(
      {},
      'STATE_CHECK=suffix lets another site sign a visitor in as somebody else (login CSRF); STATE_CHECK=bound closes it',
    )

  const stop = async () => {
    server.close()
    server.closeIdleConnections()
    await menshen.close()
    await development?.close()
  }
  process.once('SIGTERM', stop)
  process.once('SIGINT', stop)
}

/** The environment wins over the file. */
function readEnvFile(): Environment {
  try {
    return parseEnv(readFileSync('.env', 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw new MenshenError(
      'cannot_start',
      `.env cannot be read (${(error as NodeJS.ErrnoException).code}); make it readable or remove it.`,
    )
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

async function listen(server: Server, { HOST, PORT }: Settings): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(PORT, HOST, resolve)
  }).catch(error => refuseToListen(error, 'PORT', PORT))
}

function refuseToListen(error: NodeJS.ErrnoException, setting: string, port: number): never {
  const why =
    error.code === 'EADDRINUSE'
      ? `port ${port} is already in use; stop what uses it or choose another by ${setting}`
      : `cannot listen on port ${port} (${error.code}); check HOST and ${setting}`
  throw new MenshenError('cannot_start', `${setting}: ${why}.`)
}
