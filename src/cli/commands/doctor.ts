// `menshen doctor`: reports what a sign-in needs and lacks, one line per problem with its remedy.

import { mkdtempSync, rmSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { pino } from 'pino'
import {
  type ConfigurationSources,
  type LoadedConfiguration,
  loadConfiguration,
  misspeltSettings,
  settingsInUse,
  tryConfiguration,
} from '../../config/load.ts'
import type { Environment, Settings } from '../../config/settings.ts'
import { type ExamineOptions, examine, proxyProbeOptions } from '../../doctor/examine.ts'
import { type Finding, failure, good, runProbes, warning } from '../../doctor/finding.ts'
import { isRunning } from '../../doctor/proxy-probe.ts'
import { misspeltFinding } from '../../doctor/settings-probes.ts'
import { storeProbes } from '../../doctor/store-probes.ts'
import {
  createTestSignIns,
  type MappingReport,
  TEST_SIGN_IN_SECONDS,
  type TestSignIns,
} from '../../doctor/test-sign-ins.ts'
import { MenshenError } from '../../errors.ts'
import { createCore, type Menshen } from '../../menshen.ts'
import { refuseToListen, startDevelopment } from '../../options.ts'
import { OWN_PATHS } from '../../paths.ts'
import { planProviders } from '../../provider/providers.ts'
import { listenAddress, serve } from '../../server/serve.ts'
import { openStore } from '../../stores/open.ts'
import {
  checkLabel,
  type OperatorLanguage,
  type Phrase,
  phrase,
  phrasedError,
  phraseIn,
  phrasesOf,
  quoted,
  TABLES,
} from '../../text/text.ts'
import { safeText } from '../../util/safe-text.ts'
import { type Paint, terminalLines } from '../terminal.ts'
import { operatorLanguage, readCommandArguments, refuseArgument, usageError } from '../usage.ts'
import { inspect } from './check.ts'
import { COMMANDS } from './table.ts'

export interface DoctorRun {
  readonly environment: Environment
  readonly now: () => number
  readonly paint: Paint
}

const STORE_DEADLINE_MS = 15_000

/** Returns the text for stdout, and whether all checks passed. */
export async function runDoctorCommand(
  args: readonly string[],
  run: DoctorRun,
): Promise<{ text: string; ok: boolean }> {
  const { values, positionals } = readCommandArguments(args, COMMANDS.doctor)
  const { json, show, 'sign-in': signIn } = values
  const language = operatorLanguage(values.language, run.environment, COMMANDS.doctor)
  if (positionals[0] !== undefined) throw refuseArgument(positionals[0], COMMANDS.doctor)
  if (show && !signIn) throw usageError(phrase('cli.show_without_sign_in'), COMMANDS.doctor, '--sign-in --show')
  if (signIn) return runTestSignIn(run, { json, show, language })
  const findings = await diagnose(run)
  const text = json ? toJson(findings, language) : findingLines(findings, run.paint, language)
  return { text, ok: findings.every(({ level }) => level !== 'failure') }
}

interface TestSignInChoices {
  readonly json: boolean
  readonly show: boolean
  readonly language: OperatorLanguage
}

/** With `--json` the address goes to stderr, because stdout is for the document. */
async function runTestSignIn(
  run: DoctorRun,
  { json, show, language }: TestSignInChoices,
): Promise<{ text: string; ok: boolean }> {
  const out = json ? process.stderr : process.stdout
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())
  const { value: result, problems } = await attempt('sign-in', async () => {
    const loaded = await loadConfiguration(sourcesOf(run))
    const examined = prepare(loaded.environment, run.now, loaded)
    const result = await trySignIn(examined, { show, language, print: text => out.write(text), signal: stop.signal })
    return { ...result, redirectUri: redirectUris(examined) }
  })
  const findings = result ? signInFindings(result, result.redirectUri) : problems
  const ok = findings.every(({ level }) => level !== 'failure')
  const mapping = result?.mapping
  if (json) return { text: toJson(findings, language, { signIn: mapping ? mappingIn(mapping, language) : null }), ok }
  return { text: mapping ? mappingLines(mapping, language) : findingLines(findings, run.paint, language), ok }
}

function signInFindings({ mapping, isBegun }: TestSignInResult, redirectUri: Phrase): Finding[] {
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

/** If the settings cannot be used: all their problems, and the probes that can run without them. */
async function diagnose(run: DoctorRun): Promise<Finding[]> {
  const { environment, now } = run
  const { settings, config, configFile, errors, variables } = await tryConfiguration(sourcesOf(run))
  if (settings && config) {
    const examined = await attempt('configuration', async () =>
      prepare(environment, now, { settings, config, variables }),
    )
    if (examined.value)
      return withRefusals([...(await examine(examined.value)), configFinding(configFile)], environment, now)
    return withRefusals([...examined.problems, ...(await storeAlone(settings, now))], environment, now)
  }
  const problems = [
    ...(errors.settings ? failuresOf('settings', errors.settings) : []),
    ...(errors.config ? failuresOf('configuration', errors.config) : []),
  ]
  const misspelt = misspeltSettings(environment, variables).map(misspeltFinding)
  const store = settings ? await storeAlone(settings, now) : []
  return withRefusals([...problems, ...misspelt, ...store], environment, now)
}

/** The environment already includes `.env`. */
function sourcesOf({ environment }: DoctorRun): ConfigurationSources {
  return { environment, folder: process.cwd() }
}

/** Adds what `menshen check` and a start refuse, unless a probe has already reported it. */
async function withRefusals(
  findings: readonly Finding[],
  environment: Environment,
  now: () => number,
): Promise<Finding[]> {
  const { problems } = await inspect(environment, now)
  const said = findings.filter(({ level }) => level === 'failure').map(({ seen }) => seen)
  const isReported = (problem: Phrase) =>
    said.some(
      seen =>
        isDeepStrictEqual(seen, problem) ||
        // The problem quotes a finding of a probe that both use.
        isDeepStrictEqual(seen, problem.values.seen) ||
        (seen.code === 'provider_settings_missing' && problem.code === 'setting_missing'),
    )
  const unreported = problems.filter(problem => !isReported(problem))
  return [...unreported.map(problem => failure('settings', problem, phrase('correct_it'))), ...findings]
}

interface Attempt<T> {
  readonly value?: T
  readonly problems: readonly Finding[]
}

async function attempt<T>(name: string, work: () => Promise<T>): Promise<Attempt<T>> {
  try {
    return { value: await work(), problems: [] }
  } catch (error) {
    if (!(error instanceof MenshenError)) throw error
    return { problems: failuresOf(name, error) }
  }
}

function failuresOf(name: string, error: MenshenError): Finding[] {
  return phrasesOf(error).map(problem => failure(name, problem, phrase('correct_it')))
}

function configFinding(file: string | undefined): Finding {
  return good('configuration', file ? phrase('config_usable', { file }) : phrase('config_none'))
}

function prepare(
  environment: Environment,
  now: () => number,
  loaded: Pick<LoadedConfiguration, 'settings' | 'config' | 'variables'>,
): ExamineOptions {
  const { config, variables } = loaded
  const { settings, isDevelopment } = settingsInUse(environment, loaded.settings, config)
  const plans = planProviders(config, settings)
  return { settings, config, plans, isDevelopment, now, misspelt: misspeltSettings(environment, variables) }
}

async function storeAlone(settings: Settings, now: () => number): Promise<Finding[]> {
  return runProbes(storeProbes({ settings, now }), STORE_DEADLINE_MS)
}

// The findings as text: one line per finding for people, or one JSON document for programs.

const MARKS = { good: '✔', warning: '!', failure: '✖' } as const
const COLOURS = { good: 'green', warning: 'yellow', failure: 'red' } as const

export function findingLines(findings: readonly Finding[], paint: Paint, language: OperatorLanguage): string {
  const lines = findings.map(finding => `${findingLine(finding, paint, language)}\n`)
  return `${lines.join('')}${phraseIn(language, summary(findings))}\n`
}

function findingLine({ name, level, seen, remedy }: Finding, paint: Paint, language: OperatorLanguage): string {
  const said = (given: Phrase) => phraseIn(language, given)
  const label = checkLabel(name, { lang: language, messages: TABLES[language] })
  // In English a check is called by the name that `--json` uses.
  const what = language === 'en' ? name : label
  // One line per finding, whatever a server answered.
  const line = said(phrase('finding_line', { what, seen })).concat(remedy ? ` → ${said(remedy)}` : '')
  return `${paint(COLOURS[level], MARKS[level])} ${safeText(line.replace(/[\r\n]+/g, ' '))}`
}

function summary(findings: readonly Finding[]): Phrase {
  const count = (level: Finding['level']) => findings.filter(finding => finding.level === level).length
  return phrase('findings_count', {
    good: count('good'),
    warnings: phrase('warnings_count', { count: count('warning') }),
    failures: phrase('failures_count', { count: count('failure') }),
  })
}

/** `ok` is false only for failures: warnings are `ok`. Names are the same in every language. */
export function toJson(findings: readonly Finding[], language: OperatorLanguage, more: object = {}): string {
  const checks = findings.map(({ name, level, seen, remedy }) => ({
    name,
    ok: level !== 'failure',
    level,
    seen: phraseIn(language, seen),
    remedy: remedy ? phraseIn(language, remedy) : '',
  }))
  return `${JSON.stringify({ checks, ...more }, null, 2)}\n`
}

// `menshen doctor --sign-in`: prints an address, waits until a user has signed in there, and shows the result. The provider
// sends the browser back to BASE_URL: to the Menshen that runs there, or to one that is started here only for the test sign-in.

export interface TestSignInOptions {
  readonly show: boolean
  readonly language: OperatorLanguage
  /** Writes to the terminal. */
  readonly print: (text: string) => void
  /** Aborted when the operator stops waiting. */
  readonly signal: AbortSignal
}

const POLL_INTERVAL_MS = 300

export interface TestSignInResult {
  /** Absent if no user signed in within ten minutes. */
  readonly mapping?: MappingReport
  /** Whether a browser went to the provider. */
  readonly isBegun: boolean
}

export async function trySignIn(
  examined: ExamineOptions,
  { show, language, print, signal }: TestSignInOptions,
): Promise<TestSignInResult> {
  const { settings, plans, now } = examined
  const missing = plans.flatMap(plan => plan.missing)
  if (missing.length > 0) throw phrasedError('bad_settings', phrase('sign_in_settings_missing', { names: missing }))
  await using opened = new AsyncDisposableStack()
  const address = (await isRunning(proxyProbeOptions(examined)))
    ? sharedStore(settings.STORE)
    : await startHere(examined, opened)
  const store = opened.adopt(await openStore(address, now, () => {}), store => store.close())
  const testSignIns = createTestSignIns({ store, now })
  const tickets: string[] = []
  opened.defer(async () => void (await Promise.allSettled(tickets.map(ticket => testSignIns.withdraw(ticket)))))
  for (const { id } of plans) {
    const ticket = await testSignIns.announce({ provider: id, show })
    tickets.push(ticket)
    const open = plans.length > 1 ? phrase('open_and_sign_in_at', { provider: id }) : phrase('open_and_sign_in')
    print(`${phraseIn(language, open)}\n`)
    print(`  ${settings.BASE_URL}${OWN_PATHS.doctorSignIn}?ticket=${ticket}\n`)
  }
  const redirectUri = redirectUris(examined)
  const printBegun = () => {
    print(`${phraseIn(language, phrase('browser_at_provider'))}\n`)
    print(`${phraseIn(language, phrase('if_provider_shows_error', { url: redirectUri }))}\n`)
  }
  // Awaited, because what was opened is closed at the end of this function.
  return await firstResult(testSignIns, tickets, { now, signal, printBegun })
}

/** The redirect URIs that have to be registered, for people. */
export function redirectUris({ settings, plans }: Pick<ExamineOptions, 'settings' | 'plans'>): Phrase {
  return plans
    .map(({ callbackPath }) => quoted(settings.BASE_URL + callbackPath))
    .reduce((one, other) => phrase('one_and_other', { one, other }))
}

interface WaitOptions extends Pick<TestSignInOptions, 'signal'> {
  readonly now: () => number
  readonly printBegun: () => void
}

async function firstResult(
  testSignIns: TestSignIns,
  tickets: readonly string[],
  { now, signal, printBegun }: WaitOptions,
): Promise<TestSignInResult> {
  const end = now() + TEST_SIGN_IN_SECONDS * 1000
  let isBegun = false
  while (now() < end && !signal.aborted) {
    for (const ticket of tickets) {
      const mapping = await testSignIns.result(ticket)
      if (mapping) return { mapping, isBegun: true }
      if (isBegun || !(await testSignIns.isBegun(ticket))) continue
      isBegun = true
      printBegun()
    }
    await pause(POLL_INTERVAL_MS, undefined, { signal }).catch(() => {})
  }
  return { isBegun }
}

/** The store in which the running Menshen leaves the result. */
function sharedStore(address: string): string {
  if (address !== 'memory:') return address
  throw phrasedError('cannot_start', phrase('store_not_shared'))
}

/** Uses a temporary store, so that the operator's store is not touched. */
async function startHere(examined: ExamineOptions, opened: AsyncDisposableStack): Promise<string> {
  const { settings: given, config, now, isDevelopment } = examined
  const folder = mkdtempSync(join(tmpdir(), 'menshen-doctor-'))
  opened.defer(() => rmSync(folder, { recursive: true, force: true }))
  if (isDevelopment) {
    const development = await startDevelopment(given, config, given.DEV_PROVIDER_PORT, now)
    opened.defer(() => development.close())
  }
  // The audit file belongs to the account that serves, which may be another one.
  const settings = { ...given, STORE: `sqlite:${join(folder, 'menshen.db')}`, WORKERS: 1, AUDIT_FILE: undefined }
  const log = pino({ level: 'silent' })
  const menshen = opened.adopt(await createCore({ settings, config, log, now }), menshen => menshen.close())
  const limited = {
    ...menshen,
    listener: onlyTestSignIns(menshen),
    upgradeListener: (_request: unknown, socket: { destroy(): void }) => void socket.destroy(),
  }
  const { PORT: port, HOST: host } = settings
  const serving = await serve(limited, listenAddress(settings), () => {}).catch(error =>
    refuseToListen(error, { setting: 'PORT', port, host }),
  )
  opened.defer(() => serving.close(1000))
  return settings.STORE
}

function onlyTestSignIns({ listener, callbackPaths }: Pick<Menshen, 'listener' | 'callbackPaths'>): RequestListener {
  const served: readonly string[] = [OWN_PATHS.doctorSignIn, ...callbackPaths]
  return (request, response) => {
    const path = (request.url ?? '').split('?')[0] ?? ''
    if (served.includes(path) || path.startsWith(OWN_PATHS.assets)) return listener(request, response)
    response.writeHead(503, { 'content-type': 'text/plain; charset=utf-8', 'retry-after': '60', connection: 'close' })
    response.end('Menshen is being checked, and not running yet.\n')
  }
}

// The result of a test sign-in on a terminal.

export function mappingLines(mapping: MappingReport, language: OperatorLanguage): string {
  const { provider, came, fields, role, groups, problem, remedy, notes = [] } = mapping
  const said = (given: Phrase) => phraseIn(language, given)
  const lines = [
    ...(came.length > 0 ? [said(phrase('mapping_came', { provider }))] : []),
    ...came.map(({ source, name, type, value }) => `  ${source.padEnd(12)} ${name}: ${value ?? type}`),
    ...(fields.length > 0 ? [said(phrase('mapping_filled'))] : []),
    ...fields.map(field => `  ${field.field.padEnd(12)} ${said(filling(field))}`),
    ...(role === undefined
      ? []
      : [said(phrase('mapping_role', { role, groups: groups?.length ? groups : phrase('mapping_none') }))]),
    said(problem === undefined ? phrase('mapping_admitted') : phrase('mapping_refused', { problem })),
    ...(remedy === undefined ? [] : [`→ ${said(remedy)}`]),
    ...notes.map(note => `! ${said(note.seen)} → ${said(note.remedy)}`),
  ]
  // The provider wrote much of it.
  return terminalLines(lines.map(line => line.replace(/[\r\n]+/g, ' ')).join('\n'))
}

/** The mapping, for programs. */
export function mappingIn(mapping: MappingReport, language: OperatorLanguage): object {
  const { problem, remedy, notes } = mapping
  const said = (given: Phrase) => phraseIn(language, given)
  return {
    ...mapping,
    ...(problem && { problem: said(problem) }),
    ...(remedy && { remedy: said(remedy) }),
    ...(notes && { notes: notes.map(note => ({ seen: said(note.seen), remedy: said(note.remedy) })) }),
  }
}

function filling({ source, place = '', value }: MappingReport['fields'][number]): Phrase {
  if (source === undefined) return phrase('mapping_empty')
  const from = phrase('mapping_from', { place, source })
  return value === undefined ? from : phrase('mapping_value', { from, value })
}
