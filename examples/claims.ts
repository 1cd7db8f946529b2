// Writes the gateway's list of claims (src/gateway/forward/claim-headers.ts) into the examples, in each proxy's language, so
// that they are as strict as the gateway itself: `npm run docs`. A test fails when they differ.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { CLAIMS, NO_CLAIMS } from '../src/gateway/forward/claim-headers.ts'
import { USUAL_ENDINGS } from './usual-endings.ts'

type Row = (typeof CLAIMS)[number]

const BEGIN = '# The claims that the gateway drops, from its own list: begin'
const END = '# The claims that the gateway drops: end'
const WIDTH = 120
/** Spaces in front of a line, at most. */
const DEEPEST = 10

/** Said by the examples themselves. */
const SAID_BY_EXAMPLES = new Set([
  ...['user', 'email', 'preferred-username', 'groups', 'for', 'host', 'proto'].map(name => `x-forwarded-${name}`),
  'x-menshen-assertion',
])

/** Each example, and how it drops a row of the list. */
export const EXAMPLES: Readonly<Record<string, (row: Row) => string[]>> = {
  'nginx/menshen.conf': row => packed(withoutPatterns(row).map(name => `proxy_set_header ${name} "";`)),
  'traefik/dynamic.yml': row => packed(withoutPatterns(row).map(name => `${name}: "",`)),
  // It has no way to except a name from a pattern.
  'caddy/Caddyfile': ({ names }) => {
    const patterns = names.flatMap(name => (hasException(name) ? usualNames(name).filter(one => !isExempt(one)) : name))
    return patterns.map(name => `request_header -${name}`)
  },
  'haproxy/haproxy.cfg': ({ names }) => {
    const excepted = names.flatMap(exceptionsOf).map(name => `${pattern(name)}$|`)
    const except = excepted.length > 0 ? `(?!${excepted.join('').slice(0, -1)})` : ''
    return [`http-request del-header ^${except}(${names.map(pattern).join('|')})$ -m reg`]
  },
}

/** For a proxy that knows names only. */
function withoutPatterns({ names }: Row): string[] {
  return names.flatMap(usualNames).filter(name => !SAID_BY_EXAMPLES.has(name) && !isExempt(name))
}

/** The names that a pattern stands for, for a proxy that has none. */
export function usualNames(name: string): string[] {
  if (!name.endsWith('*')) return [name]
  const beginning = name.slice(0, -1)
  const endings = USUAL_ENDINGS[name]
  if (!endings) throw new Error(`examples/usual-endings.ts has nothing for ${name}`)
  return endings.map(ending => beginning + ending)
}

export function exampleWithClaims(example: string, text: string): string {
  const drop = EXAMPLES[example]
  const place = new RegExp(`(?<=^([ \\t]*)${BEGIN}\n)[^]*?(?=^[ \\t]*${END}$)`, 'm')
  if (!drop || !place.test(text)) throw new Error(`${example} has no place for the claims`)
  const lines = CLAIMS.flatMap(row => [reasonOf(row), ...drop(row)])
  return text.replace(place, (_, indent: string) => lines.map(line => `${indent}${line}\n`).join(''))
}

export function readExample(example: string): string {
  return readFileSync(new URL(example, import.meta.url), 'utf8')
}

function reasonOf({ reason }: Row): string {
  return `# ${reason.slice(0, 1).toUpperCase()}${reason.slice(1)}.`
}

function exceptionsOf(name: string): string[] {
  if (!name.endsWith('*')) return []
  return NO_CLAIMS.filter(exempt => exempt.startsWith(name.slice(0, -1)))
}

export function hasException(name: string): boolean {
  return exceptionsOf(name).length > 0
}

function isExempt(name: string): boolean {
  return NO_CLAIMS.includes(name)
}

function pattern(name: string): string {
  return name.replace(/\*$/, '.*')
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

if (process.argv[1] === fileURLToPath(import.meta.url))
  for (const example of Object.keys(EXAMPLES))
    writeFileSync(new URL(example, import.meta.url), exampleWithClaims(example, readExample(example)))
