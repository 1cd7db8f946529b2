// The command: settings → store → listen → close. The only file that reads the environment.
import cluster from 'node:cluster'
import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { type Logger, pino } from 'pino'
import { createMenshen } from '../create.ts'
import { type DevProvider, startDevProvider } from '../dev-provider/dev-provider.ts'
import { MenshenError } from '../errors.ts'
import type { Report } from '../events.ts'
import { createEventLog } from '../log.ts'
import { loadConfig } from '../settings/config-file.ts'
import { type Environment, readSettings, type Settings, wantsDevProvider } from '../settings/read.ts'
import { announce } from './announce.ts'
import { runRulesCommand } from './rules-command.ts'
import { serve } from './serve.ts'
import { startWorkers } from './workers.ts'

const DEV_CLIENT = { CLIENT_ID: 'menshen-development', CLIENT_SECRET: 'development-only' }
/** How long requests in flight may take to finish when the process is asked to end. */
const CLOSE_PATIENCE_MS = 10_000

interface Closing {
  close(): Promise<void>
}

try {
  if (process.argv[2] === undefined) await run()
  else await runCommand(process.argv.slice(2))
} catch (error) {
  if (!(error instanceof MenshenError)) throw error
  process.stderr.write(`${error.message}\n`)
  // A store or a provider that did start must not keep a failed start alive.
  process.exit(1)
}

async function run(): Promise<void> {
  const environment = { ...readEnvFile(), ...process.env }
  const given = readSettings(environment)
  const development = wantsDevProvider(given) ? await startDevelopment(given) : undefined
  const provider = development && { ...DEV_CLIENT, AUTH_URL: development.url }
  const settings = provider ? readSettings({ ...environment, ...provider }) : given
  const log = openLog(settings)
  const { report } = createEventLog(log, Date.now)
  const isPrimary = cluster.isPrimary && settings.WORKERS > 1
  const running = isPrimary ? await startAll(settings, provider, report) : await startOne(settings, log, report)
  if (cluster.isPrimary) announce(report, settings, development?.users)
  closeOnSignal(running, development, report)
}

async function runCommand([name, ...args]: string[]): Promise<void> {
  if (name !== 'rules')
    throw new MenshenError('bad_settings', `Unknown command ${name}; without one Menshen starts, or: rules.`)
  const { rules = [] } = await loadConfig(process.cwd())
  const { lines, ok } = runRulesCommand(args, rules)
  process.stdout.write(lines.map(line => `${line}\n`).join(''))
  process.exitCode = ok ? 0 : 1
}

async function startOne(settings: Settings, log: Logger, report: Report): Promise<Closing> {
  const menshen = await createMenshen({ settings, config: await loadConfig(process.cwd()), log })
  const { PORT, HOST, TLS_CERT_FILE, TLS_KEY_FILE } = settings
  const tls = TLS_CERT_FILE && TLS_KEY_FILE ? { certFile: TLS_CERT_FILE, keyFile: TLS_KEY_FILE } : undefined
  const address = { port: PORT, host: HOST, ...(tls && { tls }) }
  const serving = await serve(menshen, address, report).catch(error =>
    refuseToListen(error, { setting: 'PORT', port: PORT, host: HOST }),
  )
  return {
    async close() {
      await serving.close(CLOSE_PATIENCE_MS)
      await menshen.close()
    },
  }
}

async function startAll({ WORKERS }: Settings, provider: Environment | undefined, report: Report): Promise<Closing> {
  const workers = await startWorkers(WORKERS, { ...process.env, ...provider }, report)
  // The worker has said why.
  return workers ?? process.exit(1)
}

function closeOnSignal(running: Closing, development: DevProvider | undefined, report: Report): void {
  let closing = false
  const close = async (signal: NodeJS.Signals) => {
    // A terminal's Ctrl-C and a service manager reach every process, and the first one tells its workers once more.
    if (closing && cluster.isWorker) return
    if (closing) {
      running.close()
      process.exit(1)
    }
    closing = true
    report('stopping', { signal })
    try {
      await running.close()
      await development?.close()
      report('stopped')
      process.exit(0)
    } catch (error) {
      report('close_failed', { err: error })
      process.exit(1)
    }
  }
  process.on('SIGTERM', close)
  process.on('SIGINT', close)
}

/** The environment wins over the file. */
function readEnvFile(): Environment {
  try {
    return parseEnv(readFileSync('.env', 'utf8').replace(/^\ufeff/, ''))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return {}
    throw new MenshenError('cannot_start', `.env cannot be read (${code}); make it a readable file, or remove it.`)
  }
}

function startDevelopment({ DEV_PROVIDER_PORT: port, BASE_URL }: Settings): Promise<DevProvider> {
  return startDevProvider({
    port,
    clientId: DEV_CLIENT.CLIENT_ID,
    clientSecret: DEV_CLIENT.CLIENT_SECRET,
    redirectUri: `${BASE_URL}/callback`,
    now: Date.now,
  }).catch(error => refuseToListen(error, { setting: 'DEV_PROVIDER_PORT', port, host: '127.0.0.1' }))
}

interface Wanted {
  readonly setting: 'PORT' | 'DEV_PROVIDER_PORT'
  readonly port: number
  readonly host: string
}

function refuseToListen({ code }: NodeJS.ErrnoException, { setting, port, host }: Wanted): never {
  if (code === 'EADDRINUSE')
    throw new MenshenError(
      'cannot_start',
      `${setting}: port ${port} is already in use; stop what uses it, or choose another by ${setting}.`,
    )
  if (code?.startsWith('ERR_OSSL'))
    throw new MenshenError(
      'cannot_start',
      `TLS_CERT_FILE and TLS_KEY_FILE cannot be used (${code}); expected a certificate and its key in PEM.`,
    )
  throw new MenshenError(
    'cannot_start',
    `HOST is "${host}", where port ${port} cannot be listened on (${code}); expected an address of this machine and a port that this user may use.`,
  )
}

function openLog({ LOG_LEVEL }: Settings): Logger {
  return pino({
    level: LOG_LEVEL,
    base: cluster.worker ? { worker: cluster.worker.id } : null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: level => ({ level }) },
  })
}
