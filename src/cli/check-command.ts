// `menshen check`: whether the settings and the configuration can be used, for CI and before a restart.

import { adviceFor } from '../config/advice.ts'
import { refuseListenerAsUpstream } from '../config/conflicts.ts'
import { findConfigFile, loadConfigFile, withEnvFile } from '../config/load-config.ts'
import { readSettings } from '../config/read.ts'
import type { Environment } from '../config/settings.ts'
import { findMisspelt, type Misspelt } from '../config/suggestions.ts'
import { certificateProbes } from '../doctor/upstream-probes.ts'
import { MenshenError } from '../errors.ts'
import { checkWhole } from '../menshen.ts'
import { createLanguages } from '../pages/words/words.ts'
import { type Phrase, phrase, phraseIn, phraseOf, quoted } from '../phrases.ts'
import { planNamedProvider } from '../provider/plan.ts'
import { sanitize } from '../util/json-path.ts'
import { factLines, factsOfStart } from './announce.ts'
import { COMMANDS } from './command-table.ts'
import { settingsInUse } from './kept-records.ts'
import { assertAuthority, assertCertificate, assertStoreAddress } from './named-files.ts'
import { operatorLanguage } from './operator-language.ts'
import { type Paint, terminalLines } from './terminal.ts'
import { readCommandArguments, refuseArgument } from './usage.ts'

export interface CheckRun {
  /** Without the file .env, which is looked at too. */
  readonly environment: Environment
  readonly now: () => number
  readonly paint: Paint
}

interface Outcome {
  /** For stdout. */
  readonly text: string
  /** For stderr: one sentence a line for each thing that is wrong, and nothing else. */
  readonly problems: string
}

export async function runCheckCommand(args: readonly string[], run: CheckRun): Promise<Outcome> {
  const { values, positionals } = readCommandArguments(args, COMMANDS.check)
  if (positionals[0] !== undefined) throw refuseArgument(positionals[0], COMMANDS.check)
  const language = operatorLanguage(values.language, run.environment, COMMANDS.check)
  const { problems, misspelt, warnings, facts } = await inspect(run.environment, run.now)
  const said = (given: Phrase) => phraseIn(language, given)
  const marked = (given: readonly Phrase[]) => given.map(one => `${run.paint('yellow', '!')} ${safe(said(one))}\n`)
  // A name with a slip may be why something is missing; what is merely risky can wait.
  if (problems.length > 0)
    return { text: marked(misspelt).join(''), problems: terminalLines(problems.map(said).join('\n')) }
  const lines = [
    `${run.paint('green', '✔')} ${said(phrase('everything_usable'))}\n`,
    ...(facts ? factLines(facts).map(line => `  ${safe(line)}\n`) : []),
    ...marked([...misspelt, ...warnings]),
  ]
  return { text: lines.join(''), problems: '' }
}

function safe(line: string): string {
  return terminalLines(line.replace(/[\r\n]+/g, ' ')).trimEnd()
}

// Looks at the settings, the configuration and the files that they name as a start would, and collects everything that is
// wrong. Nothing is opened, connected to or written.

export interface Inspection {
  /** One sentence each. */
  readonly problems: readonly Phrase[]
  readonly misspelt: readonly Phrase[]
  /** What is risky, though it can be used. */
  readonly warnings: readonly Phrase[]
  /** What a start would say of itself, if nothing is wrong. */
  readonly facts: ReturnType<typeof factsOfStart> | undefined
}

/** `given` is the environment without the file .env, which may be what is wrong. */
export async function inspect(given: Environment, now: () => number): Promise<Inspection> {
  // A thing that stands in the way of two looks is one thing: by its sentence.
  const problems = new Map<string, Phrase>()
  const warnings: Phrase[] = []
  const add = (problem: Phrase) => void problems.set(phraseIn('en', problem), problem)

  async function attempt<T>(look: () => T | Promise<T>): Promise<T | undefined> {
    try {
      return await look()
    } catch (error) {
      if (!(error instanceof MenshenError)) throw error
      const said = phraseOf(error)
      for (const problem of said ? [said] : error.problems.map(({ message }) => quoted(message))) add(problem)
      return undefined
    }
  }

  const withFile = await attempt(() => withEnvFile(given, '.env'))
  const environment = withFile ?? given
  const read = await attempt(() => readSettings(environment))
  const loaded = await attempt(() => load(environment))
  const isWhole = withFile !== undefined && read !== undefined && loaded !== undefined
  // Where one of them cannot be used, the other is still looked at, beside what counts when nothing is set.
  const config = loaded?.config ?? {}
  const settings = read ?? readSettings({})
  for (const [id, provider] of Object.entries(config.providers ?? {}))
    await attempt(() => planNamedProvider(id, provider))
  const inUse = await attempt(() => settingsInUse(read ? environment : {}, { settings, config }))
  await attempt(() => createLanguages(settings, config))
  await attempt(() => assertStoreAddress(settings))
  await attempt(() => assertAuthority(settings))
  if (await attempt(() => assertCertificate(settings) ?? true)) await lookAtCertificate()
  if (isWhole && inUse) {
    await attempt(() => refuseListenerAsUpstream(settings, config))
    for (const missing of missingIn(inUse)) add(missing)
    await attempt(() => checkWhole(inUse.settings, config))
  }

  async function lookAtCertificate(): Promise<void> {
    for (const probe of certificateProbes({ settings, now }))
      for (const { level, seen, remedy } of await probe.run()) {
        if (level === 'good' || !remedy) continue
        const sentence = phrase('finding_sentence', { name: 'TLS_CERT_FILE', seen, remedy })
        if (level === 'failure') add(sentence)
        else warnings.push(sentence)
      }
  }

  if (inUse)
    for (const { code, remedy } of adviceFor(inUse.settings, inUse.plans, config.roles))
      warnings.push(phrase('with_remedy', { seen: phrase(`advice_${code}`), remedy }))
  const users = inUse?.isDevelopment ? [] : undefined
  return {
    problems: [...problems.values()],
    misspelt: findMisspelt(environment).map(misspeltPhrase),
    warnings,
    facts:
      inUse &&
      factsOfStart({ settings: inUse.settings, inherited: undefined, config, configFile: loaded?.file, users }),
  }
}

async function load({ CONFIG }: Environment) {
  const file = findConfigFile(process.cwd(), CONFIG || undefined)
  return { file, config: await loadConfigFile(file) }
}

function missingIn({ plans }: ReturnType<typeof settingsInUse>): Phrase[] {
  const missing = plans.flatMap(plan => plan.missing)
  return missing.map(name => {
    const other = otherWay(name)
    return phrase('setting_missing', { name: other ? phrase('one_or_other', { one: name, other }) : name })
  })
}

/** By which the same can be said. */
function otherWay(name: string): string | undefined {
  if (name === 'CLIENT_SECRET') return 'CLIENT_SECRET_FILE'
  const [, variable] = /^provider\.vars\.(\w+)$/.exec(name) ?? []
  return variable && `PROVIDER_VARS=${variable}=…`
}

function misspeltPhrase({ name, likely }: Misspelt): Phrase {
  const one = phrase('no_such_setting', { name: sanitize(name, 100) })
  const other = likely ? phrase('did_you_mean_inside', { name: likely }) : phrase('see_settings_page')
  return phrase('two', { one, other })
}
