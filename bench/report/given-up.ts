// Marks that were demanded once and are given up, each with the reason. A run that reaches one all the same says that it is met.

import type { Mark } from './findings.ts'

const REASONS: readonly (readonly [what: RegExp, reason: string])[] = [
  [
    /^gateway, 1KB, /,
    'runs with this code gave just below 0.85 to 0.88. A twelfth of its processor time is the session with its look at the store, and the rest more headers: who the user is, signed, and undici checks each of them.',
  ],
  [
    /^gateway, 1KB-close, /,
    'runs with this code gave 0.79 to 0.84. Almost every request has a turn of the event loop to itself, and so a look at the store to itself (6 %); the rest is identity (3 %), the address of the client (3 %) and metrics (2 %).',
  ],
  [
    /^100,000 users in turn, a cache of 10,000, /,
    'each request finds its session not cached: to read, decrypt and decode it takes 75 µs besides the check. The default cache holds all of them.',
  ],
  [
    /^sign-ins on /,
    'what is left is spread over sealing, the audit trail, the flush and the connection to the provider, nothing above a tenth. HTTP and HMAC written by hand and a pool of random bytes would save a fifth; libraries that are well kept are worth more.',
  ],
  [/^refreshes on /, 'as with sign-ins: by hand it was 0.47 by processor time.'],
  [
    /^bound to a device, check, /,
    'runs with this code gave 0.94 to 0.99: what V8 makes of two processes differs by more than the 0.8 µs that it takes to find the second cookie and to compare it.',
  ],
  [/^Express with /, 'Express takes 51 µs by itself; Menshen adds 19 to it, and express-session with passport 49.'],
  [
    /^npm package, /,
    'the code alone has 430 KB packed, and grew with hosts, HTTP/2, keys and device binding; the rest is its types. A minifier would make stack traces unreadable.',
  ],
]

/** `undefined` for a mark that is met, or that still stands. */
function reasonFor({ what, verdict }: Mark): string | undefined {
  return verdict === 'met' ? undefined : REASONS.find(([pattern]) => pattern.test(what))?.[1]
}

export function isGivenUp(mark: Mark): boolean {
  return reasonFor(mark) !== undefined
}

export function givenUpSection(marks: readonly Mark[]): string {
  const items = marks
    .filter(isGivenUp)
    .map(mark => `- ${mark.what}, demanded ${mark.demanded}, measured ${mark.measured}: ${reasonFor(mark)}\n`)
  return items.length === 0 ? '' : `## Marks that were given up\n\n${items.join('')}`
}
