// The languages that pages can be shown in: ours, with the operator's own sentences, and those that the configuration adds.
import { parseAccept } from 'hono/utils/accept'
import { MenshenError } from '../../errors.ts'
import type { Config } from '../../settings/config/config-file.ts'
import { AUTO_LANGUAGE } from '../../settings/config/words-config.ts'
import type { Settings } from '../../settings/read.ts'
import { SETTINGS } from '../../settings/rows.ts'
import { type Look, OUR_LOOK } from '../look/look.ts'
import { checkPageLanguage, checkSentences } from './custom-sentences.ts'
import { en } from './en/en.ts'
import type { Sentences } from './sentences.ts'
import { createWords, type Words } from './words.ts'
import { zhCN } from './zh-CN/zh-CN.ts'

export interface Languages {
  /** `undefined` for a language that is not there. */
  get(name: string): Words | undefined
  /** As PAGE_LANGUAGE says; with `auto`, what the browser likes best. */
  preferred(acceptLanguage: string | undefined): Words
}

type Table = Sentences<typeof zhCN>

/** The language of the specification. */
const USUAL = 'zh-CN'
const OURS: Readonly<Record<string, Table>> = { [USUAL]: zhCN, en }

/** Throws with one sentence for each thing that is wrong in `words` and `languages`. */
export function createLanguages(
  settings: Pick<Settings, 'PAGE_LANGUAGE' | 'APP_NAME'>,
  config: Config,
  look: Look = OUR_LOOK,
): Languages {
  const { PAGE_LANGUAGE, APP_NAME } = settings
  const { words = {}, languages = {} } = config
  const names = [...new Set([...Object.keys(OURS), ...Object.keys(languages)])]
  const inUse = PAGE_LANGUAGE === AUTO_LANGUAGE ? USUAL : PAGE_LANGUAGE
  const problems = [
    ...checkPageLanguage(PAGE_LANGUAGE, [...names, AUTO_LANGUAGE]),
    ...checkSentences('words', words, zhCN),
    ...Object.entries(languages).flatMap(([name, table]) =>
      // One that we have needs only the sentences that are to differ; what the doctor says is English elsewhere.
      checkSentences(`languages.${name}`, table, zhCN, { whole: !Object.hasOwn(OURS, name), mayLack: isPhrase }),
    ),
  ]
  if (problems.length > 0) throw new MenshenError('bad_settings', problems.join('\n'))

  const tables = names.map(name => {
    const own = name === inUse ? words : {}
    return [name, { ...(OURS[name] ?? en), ...languages[name], ...own }] as const
  })
  const labels = tables.map(([lang, sentences]) => ({ lang, label: sentences['language.name'] }))
  const appName = APP_NAME === SETTINGS.APP_NAME.default ? undefined : APP_NAME
  const all = new Map(
    tables.map(([lang, sentences]) => [lang, createWords({ lang, sentences, appName, look, languages: labels })]),
  )
  const usual = all.get(inUse)
  if (!usual) throw new Error(`there is no language ${inUse}`)
  return {
    get: name => all.get(name),
    preferred(acceptLanguage) {
      if (PAGE_LANGUAGE !== AUTO_LANGUAGE || !acceptLanguage) return usual
      return all.get(choose(acceptLanguage, names) ?? '') ?? usual
    },
  }
}

/** The best that is there; `en-GB` will do for `en`, and any Chinese for the one that we have. */
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

function isPhrase(key: string): boolean {
  return key.startsWith('phrase.')
}

function primary(tag: string): string {
  return tag.toLowerCase().split('-', 1).join()
}
