// The path of a rule or of an upstream: a plain prefix. People who come from other products write patterns there. A pattern
// would be compared letter by letter, and so protect nothing; it is refused with the prefix that was probably meant.
import { z } from 'zod'
import { OWN_PREFIX } from '../paths.ts'
import { type Phrase, phrase } from '../text/text.ts'
import { issueText } from './issue-text.ts'

/** As other products write the type of a parameter: `/admin/int:id`, `/admin/id:int`. */
const TYPE =
  '(?:int|integer|long|float|double|decimal|num|number|digits?|str|string|text|alpha|alnum|slug|path|uuid|guid|bool|boolean|date|datetime|any|regexp?)'
/** Words that OData uses after `$` at the beginning of a segment; any other word there is a parameter. */
const ODATA = '(?:metadata|batch|count|value|ref|links|entity|all|query|search|root|filter|each|it|crossjoin)'

/**
 * Signs of globs, of route parameters (`:id`, `{id}`, `[id]`, `<id>`, `$id`) and of regular expressions. Colons, parentheses,
 * plus and dollar signs are refused only where names do not contain them: `/wiki/Special:Log`, `/Foo_(bar)`, `/c++`, `/google+` and
 * `/$metadata` are paths of real applications.
 */
const PATTERN = new RegExp(
  [
    // Asterisks of other scripts too.
    String.raw`[*?^|{}[\]<>\\＊∗⁎﹡✱]`,
    String.raw`(?<=^|\/)\(|\([/.]|\.\+|(?<![\p{L}+])\+(?=\/|$)`,
    String.raw`(?<![\p{L}\p{N}]):|(?<=^|\/)(?:re|regexp?|glob):`,
    String.raw`(?<=\/)${TYPE}:\w+(?=\/|$)|(?<=\/)\w+:${TYPE}(?=\/|$)`,
    String.raw`\$(?=\/|$)|(?<=^|\/)\$(?!${ODATA}(?:\/|\(|$))`,
    '^[~=] ',
  ].join('|'),
  'iu',
)
/** `/admin(x|y)`. */
const ALTERNATIVES = /^(\/[^()|]*)\(([\w-]+(?:\|[\w-]+)+)\)([^()|]*)$/

/** `covering` is what covers everything below its path: a rule or a prefix. */
export function pathPrefix(covering: Phrase): z.ZodType<string, string> {
  return z
    .custom<string>()
    .transform((given: unknown, context) => {
      const problem = problemOf(given, covering)
      if (problem === undefined) return given as string
      context.addIssue(issueText(problem))
      return z.NEVER
    })
    .meta({ type: 'string', pattern: '^/[^#;%*?^|{}<>\\\\]*$' })
}

function problemOf(given: unknown, covering: Phrase): Phrase | undefined {
  if (given instanceof RegExp) return patternPhrase(given.source.replaceAll('\\/', '/'), covering)
  if (Array.isArray(given)) return phrase('config.one_path', { covering })
  if (typeof given !== 'string') return phrase('config.plain_path')
  if (PATTERN.test(given)) return patternPhrase(given, covering)
  if (!/^\/[^#;%\p{Cc}]*$/u.test(given)) return plainPathPhrase(given)
  if (/\/\/|\/\s*\.(?![\p{L}\p{N}_-])/u.test(given)) return phrase('config.path_segments')
  if (/\s(?:\/|$)|\/\s/.test(given)) return phrase('config.path_spaces')
  if (given !== '/' && given.endsWith('/')) return phrase('config.path_trailing_slash', { covering })
  if (given === OWN_PREFIX || given.startsWith(`${OWN_PREFIX}/`)) return phrase('config.own_path')
  return undefined
}

function patternPhrase(given: string, covering: Phrase): Phrase {
  const text = JSON.stringify(given.slice(0, MAX_SHOWN_LENGTH))
  const [, before = '', names = '', after = ''] = ALTERNATIVES.exec(given) ?? []
  const paths = names.split('|').map(name => `\`${before}${name}${after}\``)
  if (names && !PATTERN.test(before + after)) return phrase('config.pattern_each', { text, covering, paths })
  const plain = plainPart(given)
  // `/` would cover everything: as a public rule, the whole application.
  return plain === '/'
    ? phrase('config.pattern', { text, covering })
    : phrase('config.pattern_plain', { text, covering, plain })
}

const MAX_SHOWN_LENGTH = 60

/** The text before the first sign of a pattern. */
function plainPart(text: string): string {
  const start = text.replace(/^(?:[\s^~=*]+|\/?(?:re|regexp?|glob):)(?=\/)/i, '')
  const end = start.search(PATTERN)
  const plain = (end < 0 ? start : start.slice(0, end)).replace(/[/.\s]+$/, '')
  return plain.startsWith('/') ? plain : '/'
}

function plainPathPhrase(text: string): Phrase {
  return /^[\w-][\w/-]*$/.test(text)
    ? phrase('config.plain_path_likely', { likely: `"/${text}"` })
    : phrase('config.plain_path')
}
