// `menshen doctor`: what a sign-in needs and does not have, one line each with its remedy.
import { isDeepStrictEqual } from 'node:util'
import { MenshenError } from '../errors.ts'
import { type Examined, examine } from '../observe/doctor/doctor.ts'
import { type Finding, failure, good, runProbes, warning } from '../observe/doctor/finding.ts'
import { misspeltFinding } from '../observe/doctor/settings-probes.ts'
import { storeProbes } from '../observe/doctor/store-probes.ts'
import { type OperatorLanguage, type Phrase, phrase, phraseOf, quoted } from '../phrases.ts'
import { findConfigFile } from '../settings/config/load-config.ts'
import { findMisspelt } from '../settings/misspelt.ts'
import { type Environment, readSettings, type Settings } from '../settings/read.ts'
import { inspect } from './check/inspect.ts'
import { findingLines, toJson } from './doctor-output.ts'
import { mappingIn, mappingLines } from './mapping-output.ts'
import { type Given, loadConfig, settingsInUse } from './settings-in-use.ts'
import type { Paint } from './terminal/colours.ts'
import { redirectUris, type TrialResult, trySignIn } from './trial-sign-in.ts'
import { readCommandArguments, refusal, refuseArgument } from './usage/command-arguments.ts'
import { COMMANDS } from './usage/command-table.ts'
import { operatorLanguage } from './usage/operator-language.ts'

export interface DoctorRun {
  readonly environment: Environment
  readonly now: () => number
  readonly paint: Paint
}

const STORE_DEADLINE_MS = 15_000

/** What goes to stdout, and whether all is well. */
export async function runDoctorCommand(
  args: readonly string[],
  run: DoctorRun,
): Promise<{ text: string; ok: boolean }> {
  const { values, positionals } = readCommandArguments(args, COMMANDS.doctor)
  const { json, show, 'sign-in': signIn } = values
  const language = operatorLanguage(values.language, run.environment, COMMANDS.doctor)
  if (positionals[0] !== undefined) throw refuseArgument(positionals[0], COMMANDS.doctor)
  if (show && !signIn) throw refusal('--show is about a sign-in', COMMANDS.doctor, '--sign-in --show')
  if (signIn) return runTrial(run, { json, show, language })
  const findings = await diagnose(run)
  const text = json ? toJson(findings, language) : findingLines(findings, run.paint, language)
  return { text, ok: findings.every(({ level }) => level !== 'failure') }
}

interface TrialChoices {
  readonly json: boolean
  readonly show: boolean
  readonly language: OperatorLanguage
}

/** With `--json` the address goes to stderr: stdout is for the document. */
async function runTrial(
  run: DoctorRun,
  { json, show, language }: TrialChoices,
): Promise<{ text: string; ok: boolean }> {
  const out = json ? process.stderr : process.stdout
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())
  const { value: result, problems } = await attempt('sign-in', async () => {
    const config = await loadConfig(run.environment)
    const settings = readSettings(run.environment)
    const examined = prepare(run.environment, run.now, { settings, config })
    const ended = await trySignIn(examined, { show, language, tell: text => out.write(text), signal: stop.signal })
    return { ...ended, redirectUri: redirectUris(examined) }
  })
  const findings = result ? trialFindings(result, result.redirectUri) : problems
  const ok = findings.every(({ level }) => level !== 'failure')
  const mapping = result?.mapping
  if (json) return { text: toJson(findings, language, { signIn: mapping ? mappingIn(mapping, language) : null }), ok }
  return { text: mapping ? mappingLines(mapping, language) : findingLines(findings, run.paint, language), ok }
}

function trialFindings({ mapping, isBegun }: TrialResult, redirectUri: Phrase): Finding[] {
  if (!mapping)
    return isBegun
      ? [failure('sign-in', phrase('provider_kept_browser'), phrase('register_redirect_url', { url: redirectUri }))]
      : [failure('sign-in', phrase('nobody_signed_in'), phrase('open_address'))]
  const { problem, remedy = phrase('see_providers_page'), role = '', notes = [] } = mapping
  return [
    problem === undefined
      ? good('sign-in', phrase('would_be_signed_in', { role }))
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
  const isSaid = (problem: Phrase) =>
    said.some(
      seen =>
        isDeepStrictEqual(seen, problem) ||
        // A finding of a probe that both use.
        isDeepStrictEqual(seen, problem.values.seen) ||
        (seen.code === 'provider_settings_missing' && problem.code === 'setting_missing'),
    )
  const unsaid = problems.filter(problem => !isSaid(problem))
  return [...unsaid.map(problem => failure('settings', problem, phrase('correct_it'))), ...findings]
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
    const said = phraseOf(error)
    if (said) return { problems: [failure(name, said, phrase('correct_it'))] }
    // One sentence a line, each with what is expected.
    const problems = error.message.split('\n').map(sentence => failure(name, quoted(sentence), phrase('correct_it')))
    return { problems }
  }
}

function configuration({ CONFIG }: Environment): Finding {
  const file = findConfigFile(process.cwd(), CONFIG || undefined)
  return good('configuration', file ? phrase('config_usable', { file }) : phrase('config_none'))
}

function prepare(environment: Environment, now: () => number, given: Given): Examined {
  return { ...settingsInUse(environment, given), now, misspelt: findMisspelt(environment) }
}

async function storeAlone(settings: Settings, now: () => number): Promise<Finding[]> {
  return runProbes(storeProbes({ settings, now }), STORE_DEADLINE_MS)
}
