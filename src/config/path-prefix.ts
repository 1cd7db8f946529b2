// The path of a rule or of an upstream: a plain prefix. People who come from other products write patterns there. A pattern
// would be compared letter by letter, and so protect nothing; it is refused with the prefix that was probably meant.
import { z } from 'zod'
import { OWN_PREFIX } from '../paths.ts'

/** As other products write the type of a parameter: `/admin/int:id`, `/admin/id:int`. */
const TYPE =
  '(?:int|integer|long|float|double|decimal|num|number|digits?|str|string|text|alpha|alnum|slug|path|uuid|guid|bool|boolean|date|datetime|any|regexp?)'
/** What OData has at the beginning of a segment; anything else there is a parameter. */
const ODATA = '(?:metadata|batch|count|value|ref|links|entity|all|query|search|root|filter|each|it|crossjoin)'

/**
 * Signs of globs, of route parameters (`:id`, `{id}`, `[id]`, `<id>`, `$id`) and of regular expressions. Colons, parentheses,
 * plus and dollar signs count only where no name has them: `/wiki/Special:Log`, `/Foo_(bar)`, `/c++`, `/google+` and
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

/** `covering` is what covers everything below its path: `a rule`, `a prefix`. */
export function pathPrefix(covering: string): z.ZodType<string, string> {
  return z.custom<string>().transform((given: unknown, context) => {
    const problem = problemOf(given, covering)
    if (problem === undefined) return given as string
    context.addIssue(problem)
    return z.NEVER
  })
}

function problemOf(given: unknown, covering: string): string | undefined {
  if (given instanceof RegExp) return patternSentence(given.source.replaceAll('\\/', '/'), covering)
  if (Array.isArray(given)) return `expected one path as text; write ${covering} for each path`
  if (typeof given !== 'string') return 'expected a plain path that starts with /, for example "/reports"'
  if (PATTERN.test(given)) return patternSentence(given, covering)
  if (!/^\/[^#;%\p{Cc}]*$/u.test(given)) return plainPathSentence(given)
  if (/\/\/|\/\s*\.(?![\p{L}\p{N}_-])/u.test(given)) return 'expected a path without empty or dot segments'
  if (/\s(?:\/|$)|\/\s/.test(given)) return 'expected a path without spaces around its segments'
  if (given !== '/' && given.endsWith('/')) return `expected no trailing slash: ${covering} covers everything below it`
  if (given === OWN_PREFIX || given.startsWith(`${OWN_PREFIX}/`)) return 'this path belongs to Menshen; leave it out'
  return undefined
}

function patternSentence(text: string, covering: string): string {
  const shown = JSON.stringify(text.slice(0, LONGEST_SHOWN))
  const [, before = '', names = '', after = ''] = ALTERNATIVES.exec(text) ?? []
  const paths = names.split('|').map(name => `\`${before}${name}${after}\``)
  if (names && !PATTERN.test(before + after))
    return `${shown} looks like a pattern; write ${covering} for each path: ${paths.join(', ')}`
  const plain = plainPart(text)
  // `/` would be everything: as a public rule, all of the application.
  const remedy = plain === '/' ? `write ${covering} for each path` : `write \`${plain}\``
  return `${shown} looks like a pattern; ${covering} covers its path and everything below; ${remedy}`
}

const LONGEST_SHOWN = 60

/** The text before the first sign of a pattern. */
function plainPart(text: string): string {
  const start = text.replace(/^(?:[\s^~=*]+|\/?(?:re|regexp?|glob):)(?=\/)/i, '')
  const end = start.search(PATTERN)
  const plain = (end < 0 ? start : start.slice(0, end)).replace(/[/.\s]+$/, '')
  return plain.startsWith('/') ? plain : '/'
}

function plainPathSentence(text: string): string {
  const likely = /^[\w-][\w/-]*$/.test(text) ? `; did you mean "/${text}"?` : ', for example "/reports"'
  return `expected a plain path that starts with /${likely}`
}
