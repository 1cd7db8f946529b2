// What a program has to know when Menshen has started inside it: that nobody can sign in, or that anybody can. It goes to the
// log, and where the program has given none, to the console.

import { createEventLog, type Log } from '../log.ts'
import { planProviders } from '../provider/providers.ts'
import type { Config } from '../settings/config/config-file.ts'
import { isLoopback, isProduction } from '../settings/deployment.ts'
import type { Settings } from '../settings/read.ts'
import { tellOfDevelopment } from './development.ts'
import { inOptionNames } from './option-names.ts'

interface Start {
  readonly settings: Settings
  readonly config: Config
  /** Of the development provider, if that is in use. */
  readonly users: readonly string[] | undefined
  /** `undefined` if the program has given none. */
  readonly log: Log | undefined
  readonly now: () => number
  /** The program knows settings as options, not by the names of the environment. */
  readonly byOptions: boolean
}

const REMEDY = 'set them, or devProvider: true while you develop on your own machine'

export function tellOfStart({ settings, config, users, log, now, byOptions }: Start): void {
  const named = (text: string) => (byOptions ? inOptionNames(text) : text)
  if (isProduction(settings) && isLoopback(settings.BASE_URL))
    tellOfLocalAddress(log, now, named(`NODE_ENV is "${settings.NODE_ENV}" and BASE_URL is "${settings.BASE_URL}"`))
  const missing = planProviders(config, settings).flatMap(plan => plan.missing.map(named))
  if (log) {
    if (users) tellOfDevelopment(createEventLog(log, now), settings, users)
    if (missing.length > 0) tellOfMissing(log, now, missing)
    return
  }
  if (users)
    warn(
      `the development provider is in use (${settings.AUTH_URL}): ${LETS_IN} ${users.join(', ')}. Not for production.`,
    )
  if (missing.length > 0) warn(`nobody can sign in: without a value are ${missing.join(', ')}; ${REMEDY}.`)
}

/** Nearly always a BASE_URL that was forgotten: the provider would send every browser to its own machine. */
function tellOfLocalAddress(log: Log | undefined, now: () => number, found: string): void {
  if (!log) {
    warn(`${found}, an address of this machine; expected the address that browsers use.`)
    return
  }
  const events = createEventLog(log, now)
  events.report('local_base_url', { remedy: `${found}; expected the address that browsers use` })
  events.close()
}

const LETS_IN = 'it lets anybody in, as'

function warn(sentence: string): void {
  // biome-ignore lint/suspicious/noConsole: the program has given no log, and has to know
  console.warn(`Menshen: ${sentence}`)
}

function tellOfMissing(log: Log, now: () => number, missing: readonly string[]): void {
  const events = createEventLog(log, now)
  events.report('settings_missing', { missing, remedy: REMEDY })
  events.close()
}
