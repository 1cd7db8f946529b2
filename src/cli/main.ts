// The command: what was typed, and the environment. The only file that reads the environment.

import { findConfigFile, loadConfigFile, withEnvFile } from '../config/load-config.ts'
import type { Environment } from '../config/settings.ts'
import { MenshenError } from '../errors.ts'
import { callbackPathsOf } from '../paths.ts'
import { takeInheritedSocket } from './inherited-socket.ts'
import { countHeldBuffers } from './start.ts'
import { createPaint, say, terminalLines, wantsColours } from './terminal.ts'

import { type Asked, readCommandLine, UsageError } from './usage.ts'

/** What npm calls its ways to start us, in its variable npm_lifecycle_event. */
const NPM_STARTS = ['start', 'npx']
const npmParent = NPM_STARTS.includes(process.env.npm_lifecycle_event ?? '') ? process.ppid : undefined

function run(asked: Asked): Promise<void> {
  if (asked.kind === 'start') return runStart()
  if (asked.kind === 'version') return sayVersion()
  if (asked.kind === 'help') return sayHelp(asked)
  return RUN[asked.command](asked.args)
}

// Each command loads what it needs and no more: rules are checked in half the time that a start takes.

async function sayVersion(): Promise<void> {
  const { readVersion } = await import('../util/version.ts')
  await say([`${readVersion()}\n`])
}

async function sayHelp({ command }: Extract<Asked, { kind: 'help' }>): Promise<void> {
  const { commandHelpText, helpText } = await import('./usage.ts')
  await say([command ? commandHelpText(command) : helpText()])
}

async function runStart(): Promise<void> {
  countHeldBuffers()
  const inherited = takeInheritedSocket(process.env)
  const { start } = await import('./start.ts')
  await start({ readEnvironment, inherited, npmParent, now: Date.now })
}

type Command = Extract<Asked, { kind: 'command' }>

const RUN: Readonly<Record<Command['command'], (args: Command['args']) => Promise<void>>> = {
  async check(args) {
    const { runCheckCommand } = await import('./check-command.ts')
    // What is wrong with .env is one of the things that it says.
    const { text, problems } = await runCheckCommand(args, commandRun(process.env))
    process.exitCode = problems ? 1 : 0
    process.stderr.write(problems)
    await say([text])
  },
  async doctor(args) {
    const { runDoctorCommand } = await import('./doctor-command.ts')
    const { text, ok } = await runDoctorCommand(args, commandRun())
    await say([text])
    // A name server or a socket that still hangs must not keep it waiting.
    process.exit(ok ? 0 : 1)
  },
  async rules(args) {
    const { runRulesCommand } = await import('./rules-command.ts')
    const { environment, paint } = commandRun()
    // Rules can be checked where the other settings, with their files and secrets, are not at hand.
    const config = await loadConfigFile(findConfigFile(process.cwd(), environment.CONFIG || undefined))
    const { rules = [], roles, providers, upstreams = {} } = config
    const [main] = Object.keys(providers ?? {})
    const prefixes = Object.keys(upstreams)
    const { lines, ok } = runRulesCommand(args, rules, roles, paint, callbackPathsOf(providers), main, prefixes)
    process.exitCode = ok ? 0 : 1
    await say(lines.map(line => `${line}\n`))
  },
  async audit(args) {
    const { runAuditCommand } = await import('./audit-command.ts')
    await runAuditCommand(args, commandRun())
  },
  async backup(args) {
    const { runBackupCommand } = await import('./backup-command.ts')
    await runBackupCommand(args, commandRun())
  },
  async sessions(args) {
    const { runSessionsCommand } = await import('./sessions-command.ts')
    await runSessionsCommand(args, commandRun())
  },
}

function commandRun(environment = readEnvironment()) {
  const paint = createPaint(wantsColours(environment, process.stdout.isTTY))
  return { environment, now: Date.now, paint }
}

function readEnvironment(): Environment {
  return withEnvFile(process.env, '.env')
}

try {
  await run(readCommandLine(process.argv.slice(2)))
} catch (error) {
  if (!(error instanceof MenshenError || error instanceof UsageError)) throw error
  process.stderr.write(terminalLines(error.message))
  // A store or a provider that did start must not keep a failed start alive.
  process.exit(error instanceof UsageError ? 2 : 1)
}
