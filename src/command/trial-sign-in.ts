// `menshen doctor --sign-in`: prints an address, waits until somebody has signed in there, and gives what came. The answer of
// the provider has to come back to BASE_URL: to the Menshen that runs there, or to one that is started here for as long as
// it takes, and that serves nothing else.
import { mkdtempSync, rmSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { pino } from 'pino'
import { createCore, type Menshen } from '../create.ts'
import { startDevelopment } from '../library/development.ts'
import { refuseToListen } from '../library/listen-failure.ts'
import { type Examined, wayInOptions } from '../observe/doctor/doctor.ts'
import type { Mapping } from '../observe/doctor/mapping.ts'
import { createTrials, TRIAL_SECONDS, type Trials } from '../observe/doctor/trials.ts'
import { isRunning } from '../observe/doctor/way-in.ts'
import { OWN_PATHS } from '../own-paths.ts'
import { type OperatorLanguage, type Phrase, phrase, phrasedError, phraseIn, quoted } from '../phrases.ts'
import { openStore } from '../stores/open-store.ts'
import { listenAddress, serve } from './serve.ts'

export interface TrialOptions {
  readonly show: boolean
  readonly language: OperatorLanguage
  /** Says something to whoever waits at the terminal. */
  readonly tell: (text: string) => void
  /** Nobody wants to wait any longer. */
  readonly signal: AbortSignal
}

const LOOK_EVERY_MS = 300

export interface TrialResult {
  /** Absent if nobody has signed in within ten minutes. */
  readonly mapping?: Mapping
  /** Whether a browser went to the provider. */
  readonly isBegun: boolean
}

export async function trySignIn(
  examined: Examined,
  { show, language, tell, signal }: TrialOptions,
): Promise<TrialResult> {
  const { settings, plans, now } = examined
  const missing = plans.flatMap(plan => plan.missing)
  if (missing.length > 0)
    throw phrasedError('bad_settings', phrase('sign_in_settings_missing', { names: missing.join(', ') }))
  await using opened = new AsyncDisposableStack()
  const address = (await isRunning(wayInOptions(examined)))
    ? sharedStore(settings.STORE)
    : await startHere(examined, opened)
  const store = opened.adopt(await openStore(address, now, () => {}), store => store.close())
  const trials = createTrials({ store, now })
  const tickets: string[] = []
  opened.defer(async () => void (await Promise.allSettled(tickets.map(ticket => trials.withdraw(ticket)))))
  for (const { id } of plans) {
    const ticket = await trials.announce({ provider: id, show })
    tickets.push(ticket)
    const open = plans.length > 1 ? phrase('open_and_sign_in_at', { provider: id }) : phrase('open_and_sign_in')
    tell(`${phraseIn(language, open)}\n`)
    tell(`  ${settings.BASE_URL}${OWN_PATHS.doctorSignIn}?ticket=${ticket}\n`)
  }
  const redirectUri = redirectUris(examined)
  const tellBegun = () => {
    tell(`${phraseIn(language, phrase('browser_at_provider'))}\n`)
    tell(`${phraseIn(language, phrase('if_provider_shows_error', { url: redirectUri }))}\n`)
  }
  // Awaited, because what was opened is closed at the end of this function.
  return await firstResult(trials, tickets, { now, signal, tellBegun })
}

/** What has to be registered, for people. */
export function redirectUris({ settings, plans }: Pick<Examined, 'settings' | 'plans'>): Phrase {
  return plans
    .map(({ callbackPath }) => quoted(settings.BASE_URL + callbackPath))
    .reduce((one, other) => phrase('one_and_other', { one, other }))
}

interface Waiting extends Pick<TrialOptions, 'signal'> {
  readonly now: () => number
  readonly tellBegun: () => void
}

async function firstResult(
  trials: Trials,
  tickets: readonly string[],
  { now, signal, tellBegun }: Waiting,
): Promise<TrialResult> {
  const end = now() + TRIAL_SECONDS * 1000
  let isBegun = false
  while (now() < end && !signal.aborted) {
    for (const ticket of tickets) {
      const mapping = await trials.result(ticket)
      if (mapping) return { mapping, isBegun: true }
      if (isBegun || !(await trials.isBegun(ticket))) continue
      isBegun = true
      tellBegun()
    }
    await pause(LOOK_EVERY_MS, undefined, { signal }).catch(() => {})
  }
  return { isBegun }
}

/** What runs there and we meet in the store. */
function sharedStore(address: string): string {
  if (address !== 'memory:') return address
  throw phrasedError('cannot_start', phrase('store_not_shared'))
}

/** Nothing of what is kept is touched: its sessions, if there were any, would be in a folder that is removed. */
async function startHere(examined: Examined, opened: AsyncDisposableStack): Promise<string> {
  const { settings: given, config, now, isDevelopment } = examined
  const folder = mkdtempSync(join(tmpdir(), 'menshen-doctor-'))
  opened.defer(() => rmSync(folder, { recursive: true, force: true }))
  if (isDevelopment) {
    const development = await startDevelopment(given, config, given.DEV_PROVIDER_PORT, now)
    opened.defer(() => development.close())
  }
  // Whoever asks may be another account than the one that serves, whose files these would be.
  const settings = { ...given, STORE: `lmdb:${folder}`, WORKERS: 1, AUDIT_FILE: undefined }
  const log = pino({ level: 'silent' })
  const menshen = opened.adopt(await createCore({ settings, config, log, now }), menshen => menshen.close())
  const limited = {
    ...menshen,
    listener: onlyTrials(menshen),
    upgradeListener: (_request: unknown, socket: { destroy(): void }) => void socket.destroy(),
  }
  const { PORT: port, HOST: host } = settings
  const serving = await serve(limited, listenAddress(settings), () => {}).catch(error =>
    refuseToListen(error, { setting: 'PORT', port, host }),
  )
  opened.defer(() => serving.close(1000))
  return settings.STORE
}

function onlyTrials({ listener, callbackPaths }: Pick<Menshen, 'listener' | 'callbackPaths'>): RequestListener {
  const served: readonly string[] = [OWN_PATHS.doctorSignIn, ...callbackPaths]
  return (request, response) => {
    const path = (request.url ?? '').split('?')[0] ?? ''
    if (served.includes(path) || path.startsWith(OWN_PATHS.assets)) return listener(request, response)
    response.writeHead(503, { 'content-type': 'text/plain; charset=utf-8', 'retry-after': '60', connection: 'close' })
    response.end('Menshen is being checked, and not running yet.\n')
  }
}
