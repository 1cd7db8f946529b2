// Our cookies in the headers of others: applications neither get nor set them.

/** The names of our cookies, in lower case. */
export interface OwnCookies {
  /** The length of the shortest. */
  readonly shortest: number
  has(name: string): boolean
}

/** For a Set-Cookie header. Browsers keep `=name` as a cookie without a name, and send it back as `name`. */
export function createOwnCookieTest(ownCookies: OwnCookies): (setCookie: string) => boolean {
  return setCookie => {
    const [name = ''] = setCookie.replace(/^[\s=]+/, '').split(/[=;]/, 1)
    return ownCookies.has(name.trim().toLowerCase())
  }
}

/** Removes our cookies from a Cookie header. The others stay in one piece, as they were sent. */
export function createCookieFilter(ours: OwnCookies): (header: string) => string {
  const { shortest } = ours

  return header => {
    let kept: string | undefined
    let keptFrom = 0
    let equals = -1
    for (let start = 0, end = 0; start <= header.length; start = end + 1) {
      end = indexOrEnd(header, ';', start)
      // Not searched again for each cookie: in a header without any `=`, that would scan all of it each time.
      if (equals < start) equals = indexOrEnd(header, '=', start)
      const nameEnd = Math.min(equals, end)
      // Most names are too short to be ours, and need no lookup.
      if (nameEnd - start < shortest || !ours.has(header.slice(start, nameEnd).trim().toLowerCase())) continue
      if (start > keptFrom) kept = joined(kept, header.slice(keptFrom, start - 1))
      keptFrom = end + 1
    }
    if (keptFrom <= header.length) kept = joined(kept, header.slice(keptFrom))
    return kept?.trim() ?? ''
  }
}

function joined(before: string | undefined, piece: string): string {
  return before === undefined ? piece : `${before};${piece}`
}

function indexOrEnd(text: string, sign: string, from: number): number {
  const index = text.indexOf(sign, from)
  return index < 0 ? text.length : index
}
