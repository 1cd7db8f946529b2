// One language as the pages use it: its sentences, its dates, and what the application is called in it.

import { html } from 'hono/html'
import { parseAccept } from 'hono/utils/accept'
import { AUTO_LANGUAGE, type Config } from '../config/file.ts'
import { SETTINGS, type Settings } from '../config/settings.ts'
import { closestName, nearest } from '../config/suggestions.ts'
import { type Problem, refuseIf } from '../errors.ts'
import { type SignInPathSettings, type SignInPaths, signInPathsOf } from '../paths.ts'
import { COUNTS, fill, placeholdersIn, type Sentence } from '../text/placeholders.ts'
import {
  checkLabel,
  type Key,
  type KeyValues,
  type Language,
  type Phrase,
  phrase,
  phrasedProblem,
  renderPhrase,
  TABLES,
  type Table,
} from '../text/text.ts'
import { startOfList } from '../util/header-list.ts'
import { type Branding, DEFAULT_BRANDING } from './branding.ts'

type Html = ReturnType<typeof html>

export interface LanguageName {
  /** As in `<html lang>` and PAGE_LANGUAGE. */
  readonly lang: string
  /** The name of the language in the language itself. */
  readonly label: string
}

export interface Words extends LanguageName {
  readonly appName: string
  /** The operator has chosen that name. */
  readonly hasOwnName: boolean
  /** Where users find help. */
  readonly support: SupportContact | undefined
  readonly branding: Branding
  /** Where the forms of the pages lead. */
  readonly paths: SignInPaths
  /** All available languages, including this one. */
  readonly languages: readonly LanguageName[]
  /** A sentence as text; a template escapes it. */
  t<K extends Key>(key: K, ...values: KeyValues<K, string | number>): string
  /** A sentence with marked-up values; the sentence itself is escaped. */
  rich<K extends Key>(key: K, ...values: KeyValues<K, Html>): Html
  /** A phrase in this language, such as a result of the doctor. */
  render(phrase: Phrase): string
  /** What a check of the doctor examines. */
  checkLabel(name: string): string
  /** In the server's time zone. */
  date(at: number): string
  /** The date to the second. */
  exactDate(at: number): string
  /** How long before or after `now`: "3 minutes ago", "in 2 hours". */
  relative(at: number, now: number): string
}

export interface SupportContact {
  readonly text: string
  readonly href: string
}

export interface WordsOptions extends Language {
  /** The operator's own name for the application, if there is one. */
  readonly appName: string | undefined
  readonly support: SupportContact | undefined
  readonly branding: Branding
  readonly paths: SignInPaths
  readonly languages: readonly LanguageName[]
}

/** Intl writes no space between a number and its Chinese unit. */
export const DIGIT_BEFORE_HAN = /(\d)(?=\p{Script=Han})/u

const UNITS = [
  [86_400_000, 'day'],
  [3_600_000, 'hour'],
  [60_000, 'minute'],
] as const

export function createWords({ lang, messages, appName, support, branding, paths, languages }: WordsOptions): Words {
  // Created when they are first used, because a start would wait 20 ms for them.
  let format: Intl.DateTimeFormat | undefined
  let exactFormat: Intl.DateTimeFormat | undefined
  let distance: Intl.RelativeTimeFormat | undefined
  const language = { lang, messages }
  return {
    lang,
    label: messages['language.name'],
    appName: appName ?? messages['app.name'],
    hasOwnName: appName !== undefined || messages['app.name'] !== BUILT_IN_TABLES[lang]?.['app.name'],
    support,
    branding,
    paths,
    languages,
    t: (key, ...[values]) => fill(messages[key], lang, values).join(''),
    rich: (key, ...[values]) => html`${fill(messages[key], lang, values)}`,
    render: phrase => renderPhrase(phrase, language),
    checkLabel: name => checkLabel(name, language),
    date(at) {
      format ??= new Intl.DateTimeFormat(lang, { dateStyle: 'medium', timeStyle: 'short' })
      return format.format(at)
    },
    exactDate(at) {
      exactFormat ??= new Intl.DateTimeFormat(lang, { dateStyle: 'medium', timeStyle: 'medium' })
      return exactFormat.format(at)
    },
    relative(at, now) {
      const [length, unit] = UNITS.find(([length]) => Math.abs(at - now) >= length) ?? []
      if (length === undefined || unit === undefined) return messages['time.now']
      distance ??= new Intl.RelativeTimeFormat(lang, { numeric: 'always' })
      return distance.format(Math.trunc((at - now) / length), unit).replace(DIGIT_BEFORE_HAN, '$1 ')
    },
  }
}

// The languages that pages can be shown in: ours, with the operator's own sentences, and those that the configuration adds.

export interface Languages {
  /** `undefined` for a language that is not available. */
  get(name: string): Words | undefined
  /** The language of PAGE_LANGUAGE; with `auto`, the one that the browser prefers. */
  preferred(acceptLanguage: string | undefined): Words
}

/** Specification 2.6 asks for Chinese. */
const DEFAULT_LANGUAGE = 'zh-CN'
const BUILT_IN_TABLES: Readonly<Record<string, Table>> = TABLES

function supportContact(text: string): SupportContact {
  return { text, href: /^https?:/i.test(text) ? text : `mailto:${text}` }
}

/** Throws with one sentence for each mistake in `words` and `languages`. */
export function createLanguages(
  settings: Pick<Settings, 'PAGE_LANGUAGE' | 'APP_NAME'> &
    Partial<Pick<Settings, 'SUPPORT_CONTACT'>> &
    SignInPathSettings,
  config: Config,
  branding: Branding = DEFAULT_BRANDING,
): Languages {
  const { PAGE_LANGUAGE, APP_NAME, SUPPORT_CONTACT } = settings
  const { words = {}, languages = {} } = config
  const names = [...new Set([...Object.keys(BUILT_IN_TABLES), ...Object.keys(languages)])]
  const inUse = PAGE_LANGUAGE === AUTO_LANGUAGE ? DEFAULT_LANGUAGE : PAGE_LANGUAGE
  const problems = [
    ...checkPageLanguage(PAGE_LANGUAGE, [...names, AUTO_LANGUAGE]),
    ...checkMessages('words', words, TABLES[DEFAULT_LANGUAGE]),
    ...Object.entries(languages).flatMap(([name, table]) => {
      const path = `languages.${name}`
      // A language that we have needs only the sentences that differ; in any other, those for operators may stay English.
      const whole = !Object.hasOwn(BUILT_IN_TABLES, name)
      return checkMessages(path, table, TABLES[DEFAULT_LANGUAGE], { whole, mayLack: isForOperators })
    }),
  ]
  refuseIf(problems)

  const tables = names.map(name => {
    const ours = BUILT_IN_TABLES[name] ?? TABLES.en
    const own = { ...languages[name], ...(name === inUse ? words : {}) }
    // Copying all the sentences takes one fiftieth of a start.
    return [name, Object.keys(own).length === 0 ? ours : { ...ours, ...own }] as const
  })
  const labels = tables.map(([lang, messages]) => ({ lang, label: messages['language.name'] }))
  const paths = signInPathsOf(settings)
  const appName = APP_NAME === SETTINGS.APP_NAME.default ? undefined : APP_NAME
  const support = SUPPORT_CONTACT === undefined ? undefined : supportContact(SUPPORT_CONTACT)
  const all = new Map(
    tables.map(([lang, messages]) => [
      lang,
      createWords({ lang, messages, appName, support, branding, paths, languages: labels }),
    ]),
  )
  const defaultWords = all.get(inUse)
  if (!defaultWords) throw new Error(`there is no language ${inUse}`)
  return {
    get: name => all.get(name),
    preferred(acceptLanguage) {
      if (PAGE_LANGUAGE !== AUTO_LANGUAGE || !acceptLanguage) return defaultWords
      return all.get(choose(startOfList(acceptLanguage, MAX_ACCEPT_LANGUAGE_LENGTH), names) ?? '') ?? defaultWords
    },
  }
}

/** Browsers send less; the rest of a longer list was not written by a user. */
const MAX_ACCEPT_LANGUAGE_LENGTH = 512

/** The best available language: `en-GB` will do for `en`, and any Chinese for the one that we have. */
function choose(acceptLanguage: string, names: readonly string[]): string | undefined {
  for (const { type, q } of parseAccept(acceptLanguage)) {
    if (q === 0) continue
    const wanted = type.toLowerCase()
    const found =
      names.find(name => name.toLowerCase() === wanted) ?? names.find(name => primary(name) === primary(wanted))
    if (found) return found
  }
  return undefined
}

/** A row for operators, which no page shows. */
function isForOperators(key: string): boolean {
  return /^(?:phrase|cli|config)\./.test(key)
}

function primary(tag: string): string {
  return tag.toLowerCase().split('-', 1).join()
}

// The operator's own sentences: each must have an existing name, be text, and have the values of the sentence it replaces.

interface Demands {
  /** Nothing may be left out, except what `mayLack` names. */
  readonly whole?: boolean
  readonly mayLack?: (key: string) => boolean
}

/** One problem for each thing that is wrong. */
export function checkMessages(
  path: string,
  given: Readonly<Record<string, Sentence>>,
  known: Readonly<Record<string, string>>,
  demands: Demands = {},
): Problem[] {
  const { whole = false, mayLack = () => false } = demands
  const missing = whole ? Object.keys(known).filter(key => !Object.hasOwn(given, key) && !mayLack(key)) : []
  const wrong = Object.entries(given).flatMap(([key, row]) => {
    const model = Object.hasOwn(known, key) ? known[key] : undefined
    const name = `${path}['${key}']`
    return model === undefined ? [unknownKey(name, key, known)] : checkPlaceholders(name, row, model)
  })
  const lacking = phrase('config.words_lack', { path, names: missing.map(key => `'${key}'`) })
  return [...wrong, ...(missing.length > 0 ? [lacking] : [])].map(problem => phrasedProblem({ path }, problem))
}

export function checkPageLanguage(given: string, names: readonly string[]): Problem[] {
  if (names.includes(given)) return []
  const [primary] = given.toLowerCase().split('-')
  // A code of two letters is a language, not a typo of another code.
  const typo = given.length > 2 ? closestName(given, names) : undefined
  const likely = names.find(name => name.toLowerCase().split('-')[0] === primary) ?? typo
  const values = { given, names }
  return [
    phrasedProblem(
      { setting: 'PAGE_LANGUAGE', example: likely ?? 'en' },
      likely === undefined
        ? phrase('config.page_language', values)
        : phrase('config.page_language_likely', { ...values, likely }),
    ),
  ]
}

function unknownKey(name: string, key: string, known: Readonly<Record<string, string>>): Phrase {
  const likely = nearest(key, Object.keys(known), letters => letters <= Math.max(2, key.length / 4))
  return likely ? phrase('config.no_such_words_likely', { name, likely }) : phrase('config.no_such_words', { name })
}

function checkPlaceholders(name: string, row: Sentence, model: string): Phrase[] {
  const needed = placeholdersIn(model)
  const forms = typeof row === 'string' ? { other: row } : row
  const inBraces = (names: Iterable<string>) => Array.from(names, name => `{${name}}`)
  if (forms === row && !COUNTS.some(name => needed.has(name)))
    return [phrase('config.words_plural', { name, counts: inBraces(COUNTS), model })]
  const lacking = inBraces(needed.difference(placeholdersIn(forms.other)))
  const surplus = inBraces(placeholdersIn(Object.values(forms).join()).difference(needed))
  return [
    ...(lacking.length > 0 ? [phrase('config.words_lack_values', { name, names: lacking, model })] : []),
    ...(surplus.length > 0 ? [phrase('config.words_unknown_values', { name, names: surplus, model })] : []),
  ]
}
