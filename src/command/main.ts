// The command: what was typed, and the environment. The only file that reads the environment.
import { MenshenError } from '../errors.ts'
import { findConfigFile, loadConfigFile } from '../settings/config/load-config.ts'
import { withEnvFile } from '../settings/env-file.ts'
import { nearest } from '../settings/nearest.ts'
import type { Environment } from '../settings/read.ts'
import { takeInheritedSocket } from './socket-activation/inherited-socket.ts'

const COMMANDS = ['audit', 'doctor', 'rules', 'sessions']
/** What npm calls its ways to start us, in its variable npm_lifecycle_event. */
const NPM_STARTS = ['start', 'npx']
const npmParent = NPM_STARTS.includes(process.env.npm_lifecycle_event ?? '') ? process.ppid : undefined

try {
  const environment = withEnvFile(process.env, '.env')
  const [name, ...args] = process.argv.slice(2)
  if (name === undefined) await runStart(environment)
  else if (name === 'rules') await runRules(args, environment)
  else if (name === 'doctor') await runDoctor(args, environment)
  else if (name === 'audit') await runAudit(args, environment)
  else if (name === 'sessions') await runSessions(args, environment)
  else throw new MenshenError('bad_settings', unknownCommand(name))
} catch (error) {
  if (!(error instanceof MenshenError)) throw error
  process.stderr.write(`${error.message}\n`)
  // A store or a provider that did start must not keep a failed start alive.
  process.exit(1)
}

// Each command loads what it needs and no more: rules are checked in half the time that a start takes.

async function runStart(environment: Environment): Promise<void> {
  const inherited = takeInheritedSocket(process.env)
  const { start } = await import('./start.ts')
  await start({ environment, inherited, npmParent, now: Date.now })
}

async function runRules(args: readonly string[], environment: Environment): Promise<void> {
  const { runRulesCommand } = await import('./rules-command.ts')
  // Rules can be checked where the other settings, with their files and secrets, are not at hand.
  const { rules = [], roles } = await loadConfigFile(findConfigFile(process.cwd(), environment.CONFIG || undefined))
  const { lines, ok } = runRulesCommand(args, rules, roles)
  process.stdout.write(lines.map(line => `${line}\n`).join(''))
  process.exitCode = ok ? 0 : 1
}

async function runDoctor(args: readonly string[], environment: Environment): Promise<void> {
  const { runDoctorCommand } = await import('./doctor-command.ts')
  const isTerminal = process.stdout.isTTY
  const { text, ok } = await runDoctorCommand(args, { environment, now: Date.now, isTerminal })
  // A name server or a socket that still hangs must not keep it waiting.
  process.stdout.write(text, () => process.exit(ok ? 0 : 1))
}

async function runAudit(args: readonly string[], environment: Environment): Promise<void> {
  const { runAuditCommand } = await import('./records/audit-command.ts')
  await runAuditCommand(args, { environment, now: Date.now })
}

async function runSessions(args: readonly string[], environment: Environment): Promise<void> {
  const { runSessionsCommand } = await import('./records/sessions-command.ts')
  await runSessionsCommand(args, { environment, now: Date.now })
}

function unknownCommand(name: string): string {
  if (name.startsWith('-'))
    return `Unknown option ${name}; settings are given by the environment or .env, and the commands are: ${COMMANDS.join(', ')}.`
  const likely = nearest(name, COMMANDS, letters => letters * 2 < name.length)
  const question = likely ? `did you mean ${likely}?` : `there is: ${COMMANDS.join(', ')}.`
  return `Unknown command ${name}; ${question} Without a command Menshen starts.`
}
