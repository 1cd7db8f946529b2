// Requests as no browser makes them: pieces that are right or nearly right, put together and then damaged.
import type { Random } from './random.ts'

/** What is sent on one connection; Latin-1. */
export interface Blob {
  bytes: string
  /** One for each request in it, in its header `x-fuzz`. */
  ids: string[]
}

interface Surroundings {
  /** Valid ones, which may change. */
  readonly tickets: readonly string[]
  readonly url: string
  /** The beginning of every id. */
  readonly name: string
}

const METHODS = [
  ...Array<string>(12).fill('GET'),
  ...['HEAD', 'POST', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT', 'PROPFIND', 'QUERY', 'SEARCH'],
  ...['get', 'GEt', 'POST ', 'GET\t', 'FOO', 'GET\0', '', 'M-SEARCH', 'PRI'],
]
const PAGES = [
  '/',
  '/x',
  '/internal',
  '/internal/secret',
  '/internal/a/b',
  '/public',
  '/public/x',
  '/publicx',
  '/internalx',
]
const PATHS = [
  ...PAGES,
  ...PAGES,
  ...PAGES,
  ...['/', '/x', '/internal', '/internal/secret', '/internal/a/b', '/public', '/public/x', '/publicx', '/internalx'],
  ...['/login', '/callback', '/logout', '/favicon.ico', '/_menshen', '/_menshen/'],
  ...['me', 'account', 'console', 'console/end', 'check', 'forward', 'ready', 'health', 'jwks.json'].map(
    name => `/_menshen/${name}`,
  ),
  ...['sign-out-everywhere', 'backchannel-logout', 'assets/menshen.css', 'assets/../me', 'nothing'].map(
    name => `/_menshen/${name}`,
  ),
]
const CROOKED = [
  ...['/public/../internal/secret', '/public/%2e%2e/internal', '/public/..%2finternal', '/public/..%5cinternal'],
  ...['/public/..;/internal', '/public/./../internal', '//internal', '/%69nternal', '/INTERNAL/secret', '/Public/x'],
  ...['/internal%00', '/public%2f..%2finternal', '/public/%252e%252e/internal', '/public\\..\\internal', '/internal/.'],
  ...['/public;/../internal', '/public?/../internal', '/public#/internal', '/%2finternal', '/\\evil.example'],
  ...['//evil.example/%2e%2e', '///evil.example', '/%5cevil.example', '/public/%c0%ae%c0%ae/internal', '/%', '/%zz'],
  ...['/public/\x01', '/\xff\xfe', '*', '', 'internal', 'http://evil.example/internal', 'http://evil.example:80'],
  ...['https://evil.example/public/x', 'HTTP://localhost/internal', '/_menshen/assets/%2e%2e/console', '/_MENSHEN/me'],
]
const QUERIES = [
  ...['', '', '', '?', '?a=1', '?error=<script>', '?error=%0d%0aLocation:%20http://evil.example', '?error=a&error=b'],
  ...[
    '?code=c&state=x_idp',
    '?code=&state=_idp',
    '?code=c&code=d&state=x_idp',
    '?state=x_idp',
    '?code=c%00&state=_idp',
  ],
  ...['?redirect=//evil.example', '?next=http://evil.example', '?username=admin&after=x', '?userRole=developer', '?%'],
]
const TEXTS = [
  'admin',
  'developer',
  'evil.example',
  'http://evil.example',
  '',
  '\x00',
  '\xff',
  'a'.repeat(3000),
  '1',
  ',',
]
const TAME_TEXTS = TEXTS.filter(text => /^[\x21-\x7e]{0,99}$/.test(text))
const TAME_METHODS = METHODS.filter(method => /^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|PROPFIND|TRACE)$/.test(method))
const NAMES = [
  'User',
  'Email',
  'Preferred-Username',
  'Groups',
  'For',
  'Host',
  'Proto',
  'Uri',
  'Method',
  'Prefix',
  'Port',
]
const IDENTITY = [...NAMES.map(name => `X-Forwarded-${name}`), 'X-Menshen-Assertion', 'X-Remote-User', 'Forwarded']
const ORDINARY = [
  ...['Accept: text/html', 'Accept: application/json', 'Sec-Fetch-Dest: document', 'Sec-Fetch-Dest: empty'],
  ...['Sec-Fetch-Site: same-origin', 'Sec-Fetch-Site: cross-site', 'Origin: http://evil.example', 'Origin: null'],
  ...['Referer: http://evil.example/', 'X-HTTP-Method-Override: DELETE', 'X-Original-URI: /public', 'X-Rewrite-URL: /'],
  ...[
    'X-Original-Method: OPTIONS',
    'Expect: 100-continue',
    'Expect: nonsense',
    'TE: trailers',
    'Trailer: x-forwarded-user',
  ],
  ...[
    'Range: bytes=0-1',
    'If-None-Match: *',
    'Keep-Alive: timeout=9',
    'Proxy-Connection: keep-alive',
    'Purpose: prefetch',
  ],
  ...[
    'Authorization: Bearer x',
    'Host: evil.example',
    'Content-Type: application/x-www-form-urlencoded',
    'Max-Forwards: 0',
  ],
]
const CONNECTIONS = [
  'x-forwarded-user',
  'cookie',
  'X-Menshen-Assertion, close',
  'host',
  'upgrade',
  'keep-alive, x-fuzz',
]
const UPGRADES = [
  [
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
  ],
  ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA'],
  ['Upgrade: websocket'],
]
const FORMS = ['', 'session=x&all=yes', 'logout_token=a.b.c', '{"a":1}', 'x'.repeat(20_000), '\x00\xff']

export function createGenerator(random: Random, { tickets, url, name }: Surroundings): () => Blob {
  const { below, chance, pick } = random
  let count = 0

  function cookie(wild: boolean): string[] {
    const ticket = () => pick(tickets)
    const made = () => Array.from({ length: 43 }, () => pick([...'abcXYZ019-_'])).join('')
    const session = (value: string) => `menshen_session=${value}`
    return pick([
      () => [],
      () => [`Cookie: ${session(ticket())}`],
      () => [`Cookie: ${session(ticket())}`],
      () => [`Cookie: a=1; ${session(ticket())}; b=2`],
      () => [`Cookie: ${session(made())}`],
      () => [`Cookie: ${session(ticket())}; ${session(ticket())}`],
      () => [`Cookie: ${session(ticket())}`, `cookie: ${session(made())}`],
      () => [`Cookie: MENSHEN_SESSION=${ticket()}`],
      () => [`Cookie: =${session(ticket())}`],
      () => [`Cookie: __Host-${session(ticket())}`],
      () => [`Cookie: "${session(ticket())}"`],
      () => [`Cookie: menshen_return=${made()}.${made()}; menshen_attempt=${made()}; menshen_fragment=%2f%2fevil`],
      () => [`Cookie: ${session(ticket().slice(0, -1))}`],
      () => [`Cookie: ${session(ticket() + (wild ? '\x00' : '='))}`],
    ])()
  }

  function path(wild: boolean): string {
    const plain = pick(PATHS)
    if (chance(wild ? 0.5 : 0.85)) return plain + pick(QUERIES)
    if (chance(0.7)) return pick(CROOKED) + pick(QUERIES)
    const at = below(plain.length + 1)
    return (
      plain.slice(0, at) +
      pick(['%2e', '%2f', '%5c', ';', '//', '%00', '..', '%25', '\\', '%', ' ', '%E4%B8%AD']) +
      plain.slice(at)
    )
  }

  function claims(wild: boolean): string[] {
    return Array.from({ length: below(4) }, () => {
      const header = pick(IDENTITY)
      const written = pick([
        header,
        header.toLowerCase(),
        header.toUpperCase(),
        header.replaceAll('-', '_'),
        header.replace(/-(?=\w+$)/, '.'),
      ])
      return `${written}: ${pick(wild ? TEXTS : TAME_TEXTS)}`
    })
  }

  function framed(body: string, wild: boolean): { headers: string[]; body: string } {
    const chunked = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
    const length = (value: unknown) => `Content-Length: ${value}`
    if (!wild && chance(0.7)) return { headers: [length(body.length)], body }
    if (!wild) return { headers: ['Transfer-Encoding: chunked'], body: chunked }
    return pick([
      () => ({ headers: [length(body.length)], body }),
      () => ({ headers: [length(body.length)], body }),
      () => ({ headers: ['Transfer-Encoding: chunked'], body: chunked }),
      () => ({
        headers: ['Transfer-Encoding: chunked'],
        body: chunked.replace('0\r\n\r\n', '0\r\nX-Forwarded-User: admin\r\n\r\n'),
      }),
      () => ({ headers: [length(body.length + below(9))], body }),
      () => ({ headers: [length(body.length), length(below(9))], body }),
      () => ({ headers: [length(pick(['-1', '+1', '0x5', '1e1', '99999999999999999999', '', ' 1 ', '1,1']))], body }),
      () => ({ headers: [length(4), 'Transfer-Encoding: chunked'], body: chunked }),
      () => ({
        headers: [
          `Transfer-Encoding: ${pick(['Chunked', 'chunked, identity', 'identity', 'xchunked', 'gzip, chunked', '\x0bchunked'])}`,
        ],
        body: chunked,
      }),
      () => ({ headers: ['Transfer-Encoding : chunked'], body: chunked }),
      () => ({ headers: ['Transfer-Encoding:\r\n chunked'], body: chunked }),
      () => ({
        headers: ['Transfer-Encoding: chunked'],
        body: chunked.replace('\r\n', pick(['\n', ';x\r\n', '\r\r\n', ' \r\n'])),
      }),
    ])()
  }

  function request(id: string, last: boolean, wild: boolean): string {
    const method = pick(wild ? METHODS : TAME_METHODS)
    const headers = [`X-Fuzz: ${id}`, ...cookie(wild), ...claims(wild)]
    if (!wild || !chance(0.03)) headers.unshift(`Host: ${!wild || chance(0.9) ? new URL(url).host : pick(TEXTS)}`)
    for (let n = below(4); n > 0; n--) headers.push(pick(ORDINARY))
    if (chance(0.08)) headers.push(`Connection: ${pick(CONNECTIONS)}`)
    if (chance(0.06)) headers.push(...pick(UPGRADES))
    if (chance(0.02)) headers.push(...Array.from({ length: below(2500) }, () => 'a:'))
    const wantsBody = !['GET', 'HEAD'].includes(method) || chance(0.05)
    // What a careless parser would take for the next request.
    const smuggled = `GET /internal/secret HTTP/1.1\r\nHost: x\r\nX-Forwarded-User: admin\r\nX-Fuzz: ${id}\r\n\r\n`
    const { headers: more, body } = wantsBody
      ? framed(chance(0.3) ? smuggled : pick(FORMS), wild)
      : { headers: [], body: '' }
    if (last) headers.push('Connection: close')
    const version =
      !wild || chance(0.95)
        ? 'HTTP/1.1'
        : pick(['HTTP/1.0', 'HTTP/2.0', 'HTTP/0.9', 'HTTP/1.1 ', 'http/1.1', '', 'HTTP/1.10'])
    const end = !wild || chance(0.98) ? '\r\n' : pick(['\n', '\r', '\r\n\r\n'])
    return `${[`${method} ${path(wild)} ${version}`, ...headers, ...more].join(end)}${end}${end}${body}`
  }

  function damage(bytes: string): string {
    const at = below(bytes.length)
    const length = below(20) + 1
    const noise = Array.from({ length: below(8) + 1 }, () => String.fromCharCode(below(256))).join('')
    return pick([
      () => bytes.slice(0, at) + noise + bytes.slice(at),
      () => bytes.slice(0, at) + bytes.slice(at + length),
      () => bytes.slice(0, at) + bytes.slice(at, at + length).repeat(2) + bytes.slice(at + length),
      () => bytes.slice(0, at) + String.fromCharCode(bytes.charCodeAt(at) ^ (1 << below(8))) + bytes.slice(at + 1),
      () => bytes.slice(0, at),
    ])()
  }

  return () => {
    const ids = Array.from({ length: chance(0.25) ? 2 + below(4) : 1 }, () => `${name}-${count++}`)
    // What is HTTP at least gets further.
    const wild = chance(0.5)
    let bytes = ids.map((id, i) => request(id, i === ids.length - 1, wild)).join('')
    if (wild && chance(0.4)) for (let n = 1 + below(3); n > 0; n--) bytes = damage(bytes)
    return { bytes, ids }
  }
}
