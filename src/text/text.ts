// Text for users and operators. Code passes a phrase, which is a sentence as data, to the place where it is shown; only there does it
// become text, in the language of its reader:
//
//   const reason = phrase('connection_broke', { code: 'ECONNRESET' })
//   const seen = phrase('sign_in_page_unseen', { reason })
//   phraseIn('en', seen)      the sign-in page could not be loaded: the connection broke (ECONNRESET)
//   phraseIn('zh-CN', seen)   the same in Chinese, inner phrase included
//
// Each language has one table. Pages use its rows by their keys; as a phrase, a row has its key as the code, without `phrase.`.
import { type ErrorCode, MenshenError, type Problem } from '../errors.ts'
import { en } from './en.ts'
import { fill, type Sentences, type ValuesOf } from './placeholders.ts'
import { zhCN } from './zh-CN.ts'

export type Table = Sentences<typeof zhCN>

/** The name of a sentence. */
export type Key = keyof Table

/** The values that a sentence needs. */
export type KeyValues<K extends Key, Value> = ValuesOf<(typeof zhCN)[K], Value>

/** The languages that we have, which are those of the command. */
export const TABLES = { 'zh-CN': zhCN, en } as const satisfies Readonly<Record<string, Table>>

export type OperatorLanguage = keyof typeof TABLES

export interface Language {
  readonly lang: string
  readonly messages: Table
}

type CodeIn<K> = K extends `phrase.${infer Code}` ? Code : K

export type PhraseCode = CodeIn<Key>

type KeyOf<C extends PhraseCode> = `phrase.${C}` extends Key ? `phrase.${C}` : Extract<C, Key>

/** A list is joined as is usual in the language of its reader. */
export type PhraseValue = string | number | Phrase | readonly string[]

export interface Phrase {
  readonly code: PhraseCode
  readonly values: Readonly<Record<string, PhraseValue>>
}

export function isPhraseCode(code: string): code is PhraseCode {
  return Object.hasOwn(zhCN, `phrase.${code}`) || Object.hasOwn(zhCN, code)
}

export function phrase<C extends PhraseCode>(code: C, ...[values]: KeyValues<KeyOf<C>, PhraseValue>): Phrase {
  return { code, values: values ?? {} }
}

/**
 * Text that has no language, or whose language is not ours to choose: a version, an address, an answer of another program. A row
 * that contains both languages, such as that of a setting, passes its Chinese text too.
 */
export function quoted(text: string, chinese = text): Phrase {
  return { code: 'quoted', values: { text, chinese } }
}

export function renderPhrase({ code, values }: Phrase, language: Language): string {
  const { lang, messages } = language
  if (code === 'quoted' && lang === 'zh-CN') return String(values.chinese ?? values.text)
  const key = `phrase.${code}`
  const texts = Object.entries(values).map(([name, value]) => [name, renderValue(value, language)])
  return fill(messages[(key in messages ? key : code) as Key], lang, Object.fromEntries(texts)).join('')
}

function renderValue(value: PhraseValue, language: Language): string | number {
  if (typeof value !== 'object') return value
  // Array.isArray does not distinguish a read-only array from the other types.
  if (!('code' in value)) return value.join(language.lang === 'zh-CN' ? '、' : ', ')
  return renderPhrase(value, language)
}

export function phraseIn(lang: OperatorLanguage, given: Phrase): string {
  return renderPhrase(given, { lang, messages: TABLES[lang] })
}

/** An error of ours whose sentence exists in all languages. Its message is the English one, as in the log. */
export function phrasedError(code: ErrorCode, given: Phrase, cause?: unknown): MenshenError {
  return new MenshenError(code, phraseIn('en', given), cause, given)
}

/** The phrase that `phrasedError` was given. An error does not name the type, so that the types of all sentences stay out of the package. */
export function phraseOf(error: MenshenError): Phrase | undefined {
  return error.phrase as Phrase | undefined
}

const PHRASE = Symbol('phrase')

/** A problem whose sentence exists in all languages. Its message is the English one. */
export function phrasedProblem(problem: Omit<Problem, 'message'>, given: Phrase): Problem {
  return Object.defineProperty({ ...problem, message: phraseIn('en', given) }, PHRASE, { value: given })
}

/** What is wrong, one by one; in English where a problem has no other language. */
export function phrasesOf(error: MenshenError): readonly Phrase[] {
  const whole = phraseOf(error)
  if (whole) return [whole]
  return error.problems.map(
    (problem: Problem & { readonly [PHRASE]?: Phrase }) => problem[PHRASE] ?? quoted(problem.message),
  )
}

/**
 * A label for what a check of the doctor looked at: `provider staff redirect address` becomes "provider staff · redirect address".
 * The last words that have a row are what was checked, those before them which one; a word without a row stays as it is.
 */
export function checkLabel(name: string, language: Language): string {
  const known = (word: string) => {
    const code = `name_${word.replaceAll(/[ -]/g, '_')}`
    return isPhraseCode(code) ? renderPhrase({ code, values: {} }, language) : undefined
  }
  const whole = known(name)
  if (whole !== undefined) return whole
  const [area = '', ...rest] = name.split(' ')
  for (let which = 0; which < rest.length; which++) {
    const what = known(rest.slice(which).join(' '))
    if (what !== undefined) return [[known(area) ?? area, ...rest.slice(0, which)].join(' '), what].join(' · ')
  }
  return [known(area) ?? area, ...rest].join(' ')
}
