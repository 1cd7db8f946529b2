// Names of headers in the settings: how they are compared, and those that a client may never send on.
import { z } from 'zod'

/** Many applications cannot tell dashes from underscores, and some not from any other sign, so neither must we. */
export function plainName(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '-')
}

/** Of names in their plain form; one that ends in `*` stands for all that begin so. */
export function matchHeaders(names: readonly string[]): (plain: string) => boolean {
  const whole = new Set(names)
  const beginnings = names.filter(name => name.endsWith('*')).map(name => name.slice(0, -1))
  return plain => whole.has(plain) || beginnings.some(beginning => plain.startsWith(beginning))
}

/** Meant for one connection only (RFC 9110, 7.6.1). */
const HOP_BY_HOP = [
  ...['connection', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'proxy-connection', 'te', 'trailer'],
  ...['transfer-encoding', 'upgrade'],
]

/** What we say to an application ourselves, and `Expect`, which we have answered. */
const SAID_BY_US = ['expect', 'host', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-request-id']

/** In their plain form. */
export const NEVER_KEPT: readonly string[] = [...HOP_BY_HOP, ...SAID_BY_US]

const TOKEN = /^[\w!#$%&'+.^`|~-]+\*?$/

export const headerNames = {
  type: 'string' as const,
  isValue: (value: object) => Array.isArray(value),
  check: z
    .string()
    .transform(text => text.split(/[\s,]+/).filter(Boolean))
    .pipe(z.array(z.string().regex(TOKEN)))
    .transform(names => names.map(name => (name.endsWith('*') ? `${plainName(name.slice(0, -1))}*` : plainName(name)))),
  expected: 'names of headers, separated by commas; a * at the end stands for all that begin so',
  example: 'x-company-user,x-internal-*',
}
