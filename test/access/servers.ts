// By which path well-known servers and frameworks route a request, written from their documentation: a small function for
// each, from the path as it came to its segments. `undefined` if the server refuses the path.

export type Server = (path: string) => readonly string[] | undefined

const decode = (text: string): string => decodeURIComponent(text)
const split = (path: string): string[] => path.slice(1).split('/')
const merge = (path: string): string => path.replace(/\/{2,}/g, '/')
const withoutParameters = (path: string): string => path.replace(/;[^/]*/g, '')
const lower = (segments: readonly string[]): string[] => segments.map(segment => segment.toLowerCase())

/** RFC 3986, 5.2.4; `undefined` above the root. */
function resolveDots(path: string): string | undefined {
  const resolved: string[] = []
  for (const segment of split(path)) {
    if (segment === '.') continue
    if (segment !== '..') resolved.push(segment)
    else if (resolved.pop() === undefined) return undefined
  }
  return `/${resolved.join('/')}`
}

function resolved(path: string): string[] | undefined {
  const clean = resolveDots(path)
  return clean === undefined ? undefined : split(clean)
}

/** Matching is done on the decoded URI, with `.` and `..` resolved and adjacent slashes merged. */
const nginx: Server = path => resolved(merge(decode(path)))

/** Routes are compared with the path as it came, without regard to capitals; only parameters are decoded. */
const express: Server = path => lower(split(path.replace(/(?:%[89a-f][\da-f])+/gi, decode)))

/** `express.static`: the whole path is decoded and normalised, a folder is served by its index page. */
const expressStatic: Server = path => resolved(merge(decode(path)).replace(/\/index\.html$/, '/'))

/** Path parameters go before the path is decoded; then it is normalised. `decode` is what it does with an encoded slash. */
function tomcat(slash: 'reject' | 'decode' | 'passthrough', allowBackslash = false): Server {
  return path => {
    const plain = withoutParameters(path)
    if (slash === 'reject' && /%2f/i.test(plain)) return undefined
    const decoded = slash === 'passthrough' ? plain.split(/%2f/i).map(decode).join('%2F') : decode(plain)
    if (decoded.includes('\\') && !allowBackslash) return undefined
    return resolved(merge(decoded.replaceAll('\\', '/')))
  }
}

/** Decoded as many times, backslashes are slashes, capitals do not count, Windows drops dots and spaces at the end of a name. */
function iis(times: number): Server {
  return path => {
    let text = path
    for (let n = 0; n < times; n++) text = n === 0 ? decode(text) : decodeWhatCan(text)
    return trimmed(resolved(merge(text.replaceAll('\\', '/'))))
  }
}

/** ASP.NET takes cookieless session identifiers out of the path. */
const aspNet: Server = path =>
  trimmed(
    resolved(
      merge(
        decode(path)
          .replaceAll('\\', '/')
          .replace(/\/\((?:[A-Z]\([^()/]*\))+\)(?=\/|$)/gi, '') || '/',
      ),
    ),
  )

function trimmed(segments: readonly string[] | undefined): string[] | undefined {
  return segments && lower(segments).map(segment => segment.replace(/(?<=[^. ])[. ]+$/, ''))
}

function decodeWhatCan(text: string): string {
  return text.replace(/(?:%[\da-f]{2})+/gi, escaped => {
    try {
      return decode(escaped)
    } catch {
      return escaped
    }
  })
}

/** nginx with `fastcgi_split_path_info ^(.+?\.php)(/.*)$`: the script, without what is its argument. */
const phpScript: Server = path => {
  const uri = nginx(path)?.join('/')
  return uri?.replace(/(\.php)\/.*$/s, '$1').split('/')
}

/** A front controller routes by PATH_INFO. */
const phpFrontController: Server = path => nginx(path.replace(/^\/index\.php(?=\/)/, ''))

/** PEP 3333: PATH_INFO is decoded whole; patterns are matched from its beginning. */
const django: Server = path => split(decode(path))

/** The same, with `merge_slashes`. */
const flask: Server = path => split(merge(decode(path)))

/** `UrlPathHelper`: parameters are removed, the rest is decoded and double slashes are merged; a suffix is a format. */
const springAnt: Server = path => {
  const segments = split(merge(decode(withoutParameters(path))))
  return [...segments.slice(0, -1), (segments.at(-1) ?? '').replace(/(?<=.)\.[^.]*$/, '')]
}

/** It decodes first where a filter asks for the decoded path. */
const springDecodedFirst: Server = path => split(merge(withoutParameters(decode(path))))

/** `PathPattern`: split as it came, then each segment without its parameters is decoded. */
const springPathPattern: Server = path => split(path).map(segment => decode(segment.replace(/;.*$/s, '')))

/** Until 1.21 ServeMux matches the decoded path, cleaned. */
const go121: Server = path => resolved(merge(decode(path)))

/** Since 1.22 it splits the escaped path, cleaned, and decodes each segment. */
const go122: Server = path => resolved(merge(path))?.map(decode)

/** cowboy (RabbitMQ) and hapi: split as it came, empty segments count, each segment decoded. */
const segmentsDecoded: Server = path => split(path).map(decode)

/** Journey: trailing format, double slashes are merged, each segment decoded. */
const rails: Server = path => {
  const segments = split(merge(path)).map(decode)
  return [...segments.slice(0, -1), (segments.at(-1) ?? '').replace(/(?<=.)\.[^.]*$/, '')]
}

/** A decoding proxy in front of an application that decodes again. */
const decodedTwice: Server = path => resolved(merge(decodeWhatCan(decode(path))))
const splitThenDecodedTwice: Server = path => split(path).map(segment => decodeWhatCan(decode(segment)))
const decodedThenSplit: Server = path => split(decode(path)).map(decodeWhatCan)

export const SERVERS: Readonly<Record<string, Server>> = {
  nginx,
  express,
  expressStatic,
  'tomcat that refuses encoded slashes': tomcat('reject'),
  'tomcat that decodes slashes': tomcat('decode'),
  'tomcat that decodes slashes and backslashes': tomcat('decode', true),
  'tomcat that keeps encoded slashes': tomcat('passthrough', true),
  iis: iis(1),
  'iis with double escaping': iis(2),
  aspNet,
  phpScript,
  phpFrontController,
  django,
  flask,
  springAnt,
  springDecodedFirst,
  springPathPattern,
  go121,
  go122,
  segmentsDecoded,
  rails,
  decodedTwice,
  splitThenDecodedTwice,
  decodedThenSplit,
}

/** What a server routes by; `undefined` also for what it cannot decode. */
export function routedBy(server: Server, path: string): readonly string[] | undefined {
  try {
    return server(path)
  } catch {
    return undefined
  }
}
