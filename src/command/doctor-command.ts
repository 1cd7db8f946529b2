// `menshen doctor`: what a sign-in needs and does not have, one line each with its remedy.
import { MenshenError } from '../errors.ts'
import { type Examined, examine } from '../observe/doctor/doctor.ts'
import { type Finding, failure, good, runProbes, warning } from '../observe/doctor/finding.ts'
import { misspeltFinding } from '../observe/doctor/settings-probes.ts'
import { storeProbes } from '../observe/doctor/store-probes.ts'
import { findConfigFile } from '../settings/config/load-config.ts'
import { findMisspelt } from '../settings/misspelt.ts'
import { type Environment, readSettings, type Settings } from '../settings/read.ts'
import { inspect } from './check/inspect.ts'
import { findingLines, toJson } from './doctor-output.ts'
import { mappingLines } from './mapping-output.ts'
import { type Given, loadConfig, settingsInUse } from './settings-in-use.ts'
import type { Paint } from './terminal/colours.ts'
import { redirectUris, type TrialResult, trySignIn } from './trial-sign-in.ts'
import { readCommandArguments, refusal, refuseArgument } from './usage/command-arguments.ts'
import { COMMANDS } from './usage/command-table.ts'

export interface DoctorRun {
  readonly environment: Environment
  readonly now: () => number
  readonly paint: Paint
}

const STORE_DEADLINE_MS = 15_000
const NOBODY_CAME = 'nobody has signed in'

/** What goes to stdout, and whether all is well. */
export async function runDoctorCommand(
  args: readonly string[],
  run: DoctorRun,
): Promise<{ text: string; ok: boolean }> {
  const { values, positionals } = readCommandArguments(args, COMMANDS.doctor)
  const { json, show, 'sign-in': signIn } = values
  if (positionals[0] !== undefined) throw refuseArgument(positionals[0], COMMANDS.doctor)
  if (show && !signIn) throw refusal('--show is about a sign-in', COMMANDS.doctor, '--sign-in --show')
  if (signIn) return runTrial(run, json, show)
  const findings = await diagnose(run)
  const text = json ? toJson(findings) : findingLines(findings, run.paint)
  return { text, ok: findings.every(({ level }) => level !== 'failure') }
}

/** With `--json` the address goes to stderr: stdout is for the document. */
async function runTrial(run: DoctorRun, json: boolean, show: boolean): Promise<{ text: string; ok: boolean }> {
  const out = json ? process.stderr : process.stdout
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())
  const { value: result, problems } = await attempt('sign-in', async () => {
    const config = await loadConfig(run.environment)
    const settings = readSettings(run.environment)
    const examined = prepare(run.environment, run.now, { settings, config })
    const ended = await trySignIn(examined, { show, tell: text => out.write(text), signal: stop.signal })
    return { ...ended, redirectUri: redirectUris(examined) }
  })
  const findings = result ? trialFindings(result, result.redirectUri) : problems
  const ok = findings.every(({ level }) => level !== 'failure')
  if (json) return { text: toJson(findings, { signIn: result?.mapping ?? null }), ok }
  return { text: result?.mapping ? mappingLines(result.mapping) : findingLines(findings, run.paint), ok }
}

function trialFindings({ mapping, isBegun }: TrialResult, redirectUri: string): Finding[] {
  if (!mapping)
    return isBegun
      ? [
          failure(
            'sign-in',
            'the provider kept the browser: it went there and never came back',
            `Register exactly ${redirectUri} as a redirect address at the provider, and check CLIENT_ID; the page that it shows there says more.`,
          ),
        ]
      : [failure('sign-in', NOBODY_CAME, 'Open the address in a browser on any machine that reaches BASE_URL.')]
  const { problem, remedy = 'docs/providers.md says how fields are found.', role, notes = [] } = mapping
  return [
    problem === undefined
      ? good('sign-in', `this user would be signed in, as ${role}`)
      : failure('sign-in', problem, remedy),
    ...notes.map(note => warning('sign-in refresh', note.seen, note.remedy)),
  ]
}

/** With settings that cannot be used, every problem of theirs, and whatever can be looked at in spite of it. */
async function diagnose({ environment, now }: DoctorRun): Promise<Finding[]> {
  const settings = await attempt('settings', async () => readSettings(environment))
  const config = await attempt('configuration', () => loadConfig(environment))
  if (settings.value && config.value) {
    const given = { settings: settings.value, config: config.value }
    const examined = await attempt('configuration', async () => prepare(environment, now, given))
    if (examined.value)
      return withRefusals([...(await examine(examined.value)), configuration(environment)], environment, now)
    return withRefusals([...examined.problems, ...(await storeAlone(given.settings, now))], environment, now)
  }
  const store = settings.value ? await storeAlone(settings.value, now) : []
  const misspelt = findMisspelt(environment).map(misspeltFinding)
  return withRefusals([...settings.problems, ...config.problems, ...misspelt, ...store], environment, now)
}

/** What `menshen check` and a start refuse, too, unless a probe has said it already. */
async function withRefusals(
  findings: readonly Finding[],
  environment: Environment,
  now: () => number,
): Promise<Finding[]> {
  const { problems } = await inspect(environment, now)
  const said = findings.filter(({ level }) => level === 'failure').map(({ seen }) => seen)
  const isSaid = (problem: string) =>
    said.includes(problem) ||
    said.some(seen => problem.startsWith(`TLS_CERT_FILE: ${seen}.`)) ||
    said.some(seen => seen.startsWith('missing: ') && / is missing: nobody can sign in/.test(problem))
  const unsaid = problems.filter(problem => !isSaid(problem))
  return [...unsaid.map(problem => failure('settings', problem, 'Correct it as it says.')), ...findings]
}

interface Attempted<T> {
  readonly value?: T
  readonly problems: readonly Finding[]
}

async function attempt<T>(name: string, work: () => Promise<T>): Promise<Attempted<T>> {
  try {
    return { value: await work(), problems: [] }
  } catch (error) {
    if (!(error instanceof MenshenError)) throw error
    // One sentence a line, each with what is expected.
    const problems = error.message.split('\n').map(sentence => failure(name, sentence, 'Correct it as it says.'))
    return { problems }
  }
}

function configuration({ CONFIG }: Environment): Finding {
  const file = findConfigFile(process.cwd(), CONFIG || undefined)
  return good('configuration', file ? `${file} can be used` : 'no file, and none is needed')
}

function prepare(environment: Environment, now: () => number, given: Given): Examined {
  return { ...settingsInUse(environment, given), now, misspelt: findMisspelt(environment) }
}

async function storeAlone(settings: Settings, now: () => number): Promise<Finding[]> {
  return runProbes(storeProbes({ settings, now }), STORE_DEADLINE_MS)
}
