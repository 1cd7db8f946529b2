// Our cookies among those of an application: every order, doubled, with odd spacing.

/** In every case: browsers compare prefixes without it, and applications may compare names so. */
export const OUR_COOKIES = ['session', 'return', 'attempt', 'signed_out', 'fragment'].flatMap(name => [
  `menshen_${name}`,
  `__Host-menshen_${name}`,
  `__host-MENSHEN_${name}`,
  `Menshen_${name}`,
])

/** They look like ours, and are not. */
const THEIRS = ['app=1', 'x_menshen_session=2', 'b="a menshen_session"', '__Host-app=menshen_session=3']

/** Two of ours side by side, whatever else stands there. */
export const MIXED = [
  'menshen_session=secret',
  '__Host-menshen_session=secret',
  'app=1',
  'menshen_return=secret',
  'b=2',
]

const SEPARATORS = ['; ', ';', ' ; ', ';\t', ';;', '; ; ']

export function arrangements(): string[] {
  const orders = permutations(MIXED).map(pairs => pairs.join('; '))
  const places = OUR_COOKIES.flatMap(name => [
    [`${name}=secret`, ...THEIRS],
    [...THEIRS.slice(0, 2), `${name}=secret`, ...THEIRS.slice(2)],
    [...THEIRS, `${name}=secret`],
    [`${name}=secret`, `${name}=secret`, THEIRS[0], `${name}=secret`, `${name}=`, name],
  ])
  const everywhere = THEIRS.flatMap(pair => ['menshen_session=secret', pair, '__Host-menshen_session="secret"'])
  const spaced = SEPARATORS.flatMap(separator => [
    MIXED.join(separator),
    everywhere.join(separator),
    `${separator}${MIXED.join(separator)}${separator}`,
    ['menshen_session=secret', 'menshen_session=secret'].join(separator),
  ])
  const crowd = Array.from({ length: 200 }, (_, n) => `c${n}=${n}`).join('; ')
  const large = [crowd, `large=${'x'.repeat(5000)}`].map(theirs => `${MIXED[0]}; ${theirs}; ${MIXED[1]}`)
  return [...orders, ...large, ...places.map(pairs => pairs.join('; ')), ...spaced, '', 'menshen_session=secret']
}

/** What has to arrive. */
export function theirsOf(cookie: string): string[] {
  const pairs = cookie.split(';').map(pair => pair.trim())
  return pairs.filter(pair => pair && !/^(__Host-)?menshen_/i.test(pair))
}

function permutations<T>(items: readonly T[]): T[][] {
  if (items.length < 2) return [[...items]]
  return items.flatMap((item, n) => permutations(items.toSpliced(n, 1)).map(rest => [item, ...rest]))
}
