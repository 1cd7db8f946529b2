// Which of a browser's headers reach the application behind.
import { matchHeaders, NEVER_KEPT, plainName } from '../../settings/header-names.ts'
import type { Settings } from '../../settings/read.ts'
import { isClaim } from './claim-headers.ts'

export interface KnownHeader {
  /** As it was sent. One text for all requests that bring it: whoever looks it up again need not read it again. */
  readonly name: string
  /** See plainName. */
  readonly plain: string
  readonly policy: 'dropped' | 'kept' | 'filtered'
}

/** Browsers use a few dozen names; somebody who makes up new ones must not fill our memory. */
const MOST_HEADERS = 1000
/** No browser sends as many. */
const MOST_PLACES = 64

/** By the name as it was sent. `place` is how many were before it. */
export type HeaderOf = (name: string, place: number) => KnownHeader

/** `identityNames` are the headers that tell the application who is there. */
export function createHeaderPolicies(
  settings: Pick<Settings, 'DROP_HEADERS' | 'KEEP_HEADERS' | 'FORWARD_ACCESS_TOKEN'>,
  identityNames: ReadonlySet<string>,
): HeaderOf {
  const isNeverKept = matchHeaders([
    ...NEVER_KEPT,
    ...identityNames,
    ...(settings.FORWARD_ACCESS_TOKEN ? ['authorization'] : []),
    ...(settings.DROP_HEADERS ?? []),
  ])
  const isKept = matchHeaders(settings.KEEP_HEADERS ?? [])
  const headers = new Map<string, KnownHeader>()

  function decide(plain: string): KnownHeader['policy'] {
    if (isNeverKept(plain) || (isClaim(plain) && !isKept(plain))) return 'dropped'
    return plain === 'cookie' ? 'filtered' : 'kept'
  }

  function find(name: string): KnownHeader {
    const known = headers.get(name)
    if (known) return known
    const plain = plainName(name)
    const header = { name, plain, policy: decide(plain) }
    if (headers.size >= MOST_HEADERS) headers.clear()
    headers.set(name, header)
    return header
  }

  // Most requests bring the names of the one before, in the same order. To compare two texts takes a fraction of a lookup,
  // for which V8 first enters every new text into a table of its own.
  const latest: KnownHeader[] = []
  return (name, place) => {
    const guess = latest[place]
    if (guess !== undefined && guess.name === name) return guess
    const header = find(name)
    if (place < MOST_PLACES) latest[place] = header
    return header
  }
}
