// One language as the pages use it: its sentences, its dates, and what the application is called in it.
import { html } from 'hono/html'
import { checkLabel, type Phrase, type PhraseCode, renderPhrase } from '../../phrases.ts'
import type { Look } from '../look/look.ts'
import { fill, type Key, type Sentences, type ValuesOf } from './sentences.ts'
import type { zhCN } from './zh-CN/zh-CN.ts'

type Html = ReturnType<typeof html>

export interface LanguageName {
  /** As in `<html lang>` and PAGE_LANGUAGE. */
  readonly lang: string
  /** What its own speakers call it. */
  readonly label: string
}

export interface Words extends LanguageName {
  readonly appName: string
  readonly look: Look
  /** All that there are, this one included. */
  readonly languages: readonly LanguageName[]
  /** A sentence as text; a template escapes it. */
  t<K extends Key>(key: K, ...values: ValuesOf<K, string | number>): string
  /** The same with marked-up values; the sentence itself is escaped. */
  rich<K extends Key>(key: K, ...values: ValuesOf<K, Html>): Html
  /** What the doctor says. */
  say(phrase: Phrase): string
  /** What a check of the doctor looked at. */
  checkLabel(name: string): string
  /** In the server's time zone. */
  date(at: number): string
  /** How long before or after `now`: "3 minutes ago", "in 2 hours". */
  relative(at: number, now: number): string
}

export interface WordsOptions {
  readonly lang: string
  readonly sentences: Sentences<typeof zhCN>
  /** The operator's own name for the application, if there is one. */
  readonly appName: string | undefined
  readonly look: Look
  readonly languages: readonly LanguageName[]
}

const UNITS = [
  [86_400_000, 'day'],
  [3_600_000, 'hour'],
  [60_000, 'minute'],
] as const

export function createWords({ lang, sentences, appName, look, languages }: WordsOptions): Words {
  const format = new Intl.DateTimeFormat(lang, { dateStyle: 'medium', timeStyle: 'short' })
  const distance = new Intl.RelativeTimeFormat(lang, { numeric: 'always' })
  const sentenceFor = (code: PhraseCode) => sentences[`phrase.${code}`]
  return {
    lang,
    label: sentences['language.name'],
    appName: appName ?? sentences['app.name'],
    look,
    languages,
    t: (key, ...[values]) => fill(sentences[key], values ?? {}).join(''),
    rich: (key, ...[values]) => html`${fill(sentences[key], values ?? {})}`,
    say: phrase => renderPhrase(phrase, sentenceFor),
    checkLabel: name => checkLabel(name, sentenceFor),
    date: at => format.format(at),
    relative(at, now) {
      const [length, unit] = UNITS.find(([length]) => Math.abs(at - now) >= length) ?? []
      if (length === undefined || unit === undefined) return sentences['time.now']
      return distance.format(Math.trunc((at - now) / length), unit)
    },
  }
}
