// zod takes the message of an issue as text. `issueText` puts a phrase into it, and `phraseInIssue` takes it out again, so that a
// problem exists in all languages:
//
//   z.string().regex(/\S/, issueText(phrase('config.expected_text')))

import type { Problem } from '../errors.ts'
import { type Phrase, phrase, phrasedProblem, phraseIn, quoted } from '../text/text.ts'

/** No text of a schema begins with it. */
const PHRASE_PREFIX = '\u0000'

/** A phrase as the message of a zod issue. */
export function issueText(given: Phrase): string {
  return PHRASE_PREFIX + JSON.stringify(given)
}

export function phraseInIssue(message: string): Phrase {
  return message.startsWith(PHRASE_PREFIX) ? JSON.parse(message.slice(1)) : quoted(message)
}

export function withFullStop(given: Phrase): Phrase {
  return /[.?]$/.test(phraseIn('en', given)) ? given : phrase('config.sentence', { message: given })
}

/** A problem at a path of the configuration. `source` is its file or function, `name` what the message calls the path. */
export function problemAt(
  source: string | undefined,
  path: string,
  given: Phrase,
  name: string | Phrase = path,
  more: Omit<Problem, 'message'> = {},
): Problem {
  const message = phrase('config.at_path', { path: name, message: withFullStop(given) })
  return phrasedProblem({ path, ...more }, source ? phrase('config.in_source', { source, message }) : message)
}
