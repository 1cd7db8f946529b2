// The command line. The only file of the command that reads the environment.

import { type ConfigurationSources, ENV_FILE, tryConfiguration, withEnvFile } from '../config/load.ts'
import { MenshenError } from '../errors.ts'
import { ownPathsOf } from '../paths.ts'
import { type OperatorLanguage, phrase, phraseIn, phrasesOf } from '../text/text.ts'
import { takeInheritedSocket } from './inherited-socket.ts'
import { npmParentOf } from './signals.ts'
import { takeOnlyWorker } from './supervisor.ts'
import { createPaint, print, terminalLines, wantsColours } from './terminal.ts'
import { type CommandLine, errorLanguage, readCommandLine, UsageError } from './usage.ts'

const sources: ConfigurationSources = { environment: process.env, envFile: ENV_FILE, folder: process.cwd() }

function run(line: CommandLine): Promise<void> {
  if (line.kind === 'start') return runStart()
  if (line.kind === 'version') return printVersion()
  if (line.kind === 'help') return printHelp(line)
  return RUN[line.command](line.args)
}

// Each command imports only what it needs: `rules` takes half the time of a start.

async function printVersion(): Promise<void> {
  const { readVersion } = await import('../util/version.ts')
  await print([`${readVersion()}\n`])
}

async function printHelp({ command }: Extract<CommandLine, { kind: 'help' }>): Promise<void> {
  const { commandHelpText, helpText } = await import('./usage.ts')
  const language = errorLanguage(process.argv.slice(2), process.env)
  await print([command ? commandHelpText(command, language) : helpText(language)])
}

async function runStart(): Promise<void> {
  const { setV8Flags } = await import('../server/fast-path.ts')
  setV8Flags()
  const isOnlyWorker = takeOnlyWorker(process.env)
  const inherited = takeInheritedSocket(process.env)
  const { start } = await import('./start.ts')
  await start({ sources, inherited, isOnlyWorker, npmParent: npmParentOf(process.env), now: Date.now })
}

type Command = Extract<CommandLine, { kind: 'command' }>

const RUN: Readonly<Record<Command['command'], (args: Command['args']) => Promise<void>>> = {
  async check(args) {
    const { runCheckCommand } = await import('./commands/check.ts')
    // An error in .env is one of the problems that the command lists.
    const { text, problems } = await runCheckCommand(args, commandRun(process.env))
    process.exitCode = problems ? 1 : 0
    process.stderr.write(problems)
    await print([text])
  },
  async doctor(args) {
    const { runDoctorCommand } = await import('./commands/doctor.ts')
    const { text, ok } = await runDoctorCommand(args, commandRun())
    await print([text])
    // A hanging name server or socket must not delay the exit.
    process.exit(ok ? undefined : 1)
  },
  async rules(args) {
    const { runRulesCommand } = await import('./commands/rules.ts')
    const { environment, paint } = commandRun()
    // Only the configuration matters: other settings and their files and secrets may be missing here.
    const { config = {}, errors } = await tryConfiguration({ environment, folder: process.cwd(), secrets: 'leave' })
    if (errors.config) throw errors.config
    const { rules = [], roles, providers, upstreams = {}, hosts, machines } = config
    const [main] = Object.keys(providers ?? {})
    const prefixes = Object.keys(upstreams)
    const { signIn } = ownPathsOf(environment, Object.keys(providers ?? {}))
    const { lines, ok } = runRulesCommand(
      args,
      rules,
      roles,
      paint,
      signIn,
      main,
      prefixes,
      hosts,
      machines,
      environment,
    )
    process.exitCode = ok ? 0 : 1
    await print(lines.map(line => `${line}\n`))
  },
  async schema(args) {
    const { runSchemaCommand } = await import('./commands/schema.ts')
    await print([runSchemaCommand(args)])
  },
  async keys(args) {
    const { runKeysCommand } = await import('./commands/keys.ts')
    await runKeysCommand(args, commandRun, process.env)
  },
  async audit(args) {
    const { runAuditCommand } = await import('./commands/audit.ts')
    await runAuditCommand(args, commandRun())
  },
  async backup(args) {
    const { runBackupCommand } = await import('./commands/backup.ts')
    await runBackupCommand(args, commandRun())
  },
  async sessions(args) {
    const { runSessionsCommand } = await import('./commands/sessions.ts')
    await runSessionsCommand(args, commandRun())
  },
}

function commandRun(environment = withEnvFile(process.env, ENV_FILE)) {
  const paint = createPaint(wantsColours(environment, process.stdout.isTTY))
  return { environment, now: Date.now, paint }
}

/** In Chinese if the error has Chinese sentences; otherwise as in the log. */
function messageIn(language: OperatorLanguage, error: MenshenError | UsageError): string {
  if (language === 'en') return error.message
  const given = error instanceof MenshenError ? phrasesOf(error) : [error.phrase]
  return given.map(one => phraseIn(language, one)).join('\n')
}

/** A disk without space, for example. A reader that closes the pipe wants no more, which is not a failure. */
function reportFailedOutput(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') return
  const language = errorLanguage(process.argv.slice(2), process.env)
  const reason = error.code ?? error.message
  process.stderr.write(terminalLines(phraseIn(language, phrase('cli.output_failed', { reason }))))
  process.exitCode = 1
}

try {
  const line = readCommandLine(process.argv.slice(2))
  if (line.kind !== 'start') process.stdout.on('error', reportFailedOutput)
  await run(line)
} catch (error) {
  if (!(error instanceof MenshenError || error instanceof UsageError)) throw error
  const language = errorLanguage(process.argv.slice(2), process.env)
  process.stderr.write(terminalLines(messageIn(language, error)))
  // A store or a provider that has started must not keep a failed start alive.
  process.exit(error instanceof UsageError ? 2 : 1)
}
