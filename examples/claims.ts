// Writes the gateway's lists of headers (src/proxy/request-headers.ts, src/gateway/shared-caches.ts) into the
// examples, in each proxy's language, so that they are as strict as the gateway itself: `npm run docs`. A test fails when they differ.
import { readFileSync } from 'node:fs'
import { HARMLESS_HEADERS, SPOOFABLE_HEADERS } from '../src/proxy/request-headers.ts'
import { SHARED_CACHE_HEADERS } from '../src/util/header-names.ts'
import { KEY_HEADER } from '../src/util/key-form.ts'
import { USUAL_ENDINGS } from './usual-endings.ts'

/** Menshen has to see the key first; the examples remove it afterwards. */
const LEFT_FOR_NOW = [...HARMLESS_HEADERS, KEY_HEADER]

type Row = (typeof SPOOFABLE_HEADERS)[number]
/** The lines between two comments of an example. `comment` is the comment sign of its language. */
type Section = (comment: string) => string[]

const WIDTH = 120
/** The most spaces in front of a line. */
const DEEPEST = 10

/** Headers that the examples set themselves. */
const SAID_BY_EXAMPLES = new Set([
  ...['user', 'email', 'preferred-username', 'role', 'groups', 'for', 'host', 'proto'].map(
    name => `x-forwarded-${name}`,
  ),
  'x-menshen-assertion',
])

const claimsBy =
  (drop: (row: Row) => string[]): Section =>
  comment =>
    SPOOFABLE_HEADERS.flatMap(row => [`${comment} ${sentence(row.reason)}`, ...drop(row)])

const sharedCachesBy =
  (line: (name: string) => string): Section =>
  () =>
    // X-Accel-Expires is for nginx itself, which does not pass it on.
    packed(SHARED_CACHE_HEADERS.filter(name => name !== 'x-accel-expires').map(line))

const CLAIMS_SECTION = {
  begin: 'The claims that the gateway drops, from its own list',
  end: 'The claims that the gateway drops',
}
const CACHES_SECTION = { begin: 'Headers for shared caches', end: 'Headers for shared caches' }
const NO_CLAIMS_SECTION = { begin: 'Names that are no claims', end: 'Names that are no claims' }

type Sections = readonly (readonly [place: typeof CLAIMS_SECTION, lines: Section])[]

/** The files that contain lists, and how each writes its own. */
export const EXAMPLES: Readonly<Record<string, Sections>> = {
  'nginx/menshen-headers.conf': [
    [CLAIMS_SECTION, claimsBy(row => packed(withoutPatterns(row).map(name => `proxy_set_header ${name} "";`)))],
    [CACHES_SECTION, sharedCachesBy(name => `add_header ${name} $menshen_no_store always;`)],
  ],
  'traefik/menshen-headers.yml': [
    [CLAIMS_SECTION, claimsBy(row => packed(withoutPatterns(row).map(name => `${name}: "",`)))],
    [CACHES_SECTION, sharedCachesBy(name => `${name}: "",`)],
  ],
  'caddy/menshen.caddy': [
    [
      CLAIMS_SECTION,
      // It cannot exclude a name from a pattern.
      claimsBy(({ names }) => {
        const listed = names.flatMap(name =>
          hasException(name) ? usualNames(name).filter(one => !isExempt(one)) : name,
        )
        return listed.map(name => `request_header -${name}`)
      }),
    ],
    [CACHES_SECTION, () => SHARED_CACHE_HEADERS.map(name => `-${name}`)],
  ],
  'haproxy/menshen-headers.lua': [
    [CLAIMS_SECTION, claimsBy(({ names }) => packed(names.map(name => `'${name}',`)))],
    [NO_CLAIMS_SECTION, () => packed(LEFT_FOR_NOW.map(name => `'${name}',`))],
  ],
  'haproxy/menshen.lua': [[CACHES_SECTION, () => packed(SHARED_CACHE_HEADERS.map(name => `'${name}',`))]],
}

/** For a proxy that supports only exact names. */
function withoutPatterns({ names }: Row): string[] {
  return names.flatMap(usualNames).filter(name => !SAID_BY_EXAMPLES.has(name) && !isExempt(name))
}

/** The names that a pattern usually stands for, for a proxy without patterns. */
export function usualNames(name: string): string[] {
  if (!name.endsWith('*')) return [name]
  const beginning = name.slice(0, -1)
  const endings = USUAL_ENDINGS[name]
  if (!endings) throw new Error(`examples/usual-endings.ts has nothing for ${name}`)
  return endings.map(ending => beginning + ending)
}

export function exampleWithLists(example: string, text: string): string {
  const sections = EXAMPLES[example] ?? []
  return sections.reduce((written, [{ begin, end }, lines]) => {
    const place = new RegExp(`(?<=^([ \\t]*)(#|--) ${begin}: begin\n)[^]*?(?=^[ \\t]*(?:#|--) ${end}: end$)`, 'm')
    if (!place.test(written)) throw new Error(`${example} has no place for: ${begin}`)
    return written.replace(place, (_, indent: string, comment: string) =>
      lines(comment)
        .map(line => `${indent}${line}\n`)
        .join(''),
    )
  }, text)
}

export function readExample(example: string): string {
  return readFileSync(new URL(example, import.meta.url), 'utf8')
}

function sentence(reason: string): string {
  return `${reason.slice(0, 1).toUpperCase()}${reason.slice(1)}.`
}

function exceptionsOf(name: string): string[] {
  if (!name.endsWith('*')) return []
  return LEFT_FOR_NOW.filter(exempt => exempt.startsWith(name.slice(0, -1)))
}

export function hasException(name: string): boolean {
  return exceptionsOf(name).length > 0
}

function isExempt(name: string): boolean {
  return LEFT_FOR_NOW.includes(name)
}

/** As many on a line as fit. */
function packed(directives: readonly string[]): string[] {
  const lines: string[] = []
  for (const directive of directives) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + 1 + directive.length <= WIDTH - DEEPEST)
      lines[lines.length - 1] += ` ${directive}`
    else lines.push(directive)
  }
  return lines
}
