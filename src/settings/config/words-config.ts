// The shape of the operator's own sentences. Which sentences there are is known to the pages, who check the rest.
import { z } from 'zod'

const LONGEST_SENTENCE = 500
/** The value of PAGE_LANGUAGE that leaves the choice to the browser. */
export const AUTO_LANGUAGE = 'auto'

export const wordsShape = z.record(
  z.string(),
  z
    .string('expected text')
    .regex(/\S/, 'expected text')
    .max(LONGEST_SENTENCE, `expected at most ${LONGEST_SENTENCE} characters`),
)

const languageTag = z
  .string()
  .refine(tag => tag !== AUTO_LANGUAGE && isLanguageTag(tag), 'expected the tag of a language, for example ja or pt-BR')

export const languagesShape = z.record(languageTag, wordsShape, {
  // Otherwise it would only say that the key is invalid.
  error: issue => (issue.code === 'invalid_key' ? issue.issues[0]?.message : undefined),
})

function isLanguageTag(tag: string): boolean {
  try {
    return Intl.getCanonicalLocales(tag)[0] === tag
  } catch {
    return false
  }
}
