// What obliging applications make of a path before they look for its page. Each step is what some framework, server, file
// system or database does; an application may do several, in any order.

type Step = (path: string) => string

const eachSegment = (change: (segment: string) => string): Step => {
  return path => path.split('/').map(change).join('/')
}

const STEPS: Readonly<Record<string, Step>> = {
  'decodes once more': path => path.replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(parseInt(hex, 16))),
  'takes the rest for a query (decoded before parsed)': path => path.replace(/\?.*$/s, ''),
  'takes the rest for a fragment': path => path.replace(/#.*$/s, ''),
  'needs no slash at the end (Express, Django, Spring)': path => path.replace(/(?<=.)\/+$/, ''),
  'cannot tell capitals (Express, IIS)': path => path.toLowerCase(),
  'compares by capitals': path => path.toUpperCase().toLowerCase(),
  'normalises compatibility forms': path => path.normalize('NFKC'),
  'drops accents (collations)': path => path.normalize('NFKD').replace(/\p{Mn}/gu, ''),
  'drops invisible characters': path => path.replace(/\p{Cf}|\p{Variation_Selector}/gu, ''),
  'takes a suffix for a format (Rails, Spring)': path => path.replace(/(?<=[^/])\.[^./]*$/, ''),
  'takes suffixes for formats in the middle too': eachSegment(segment => segment.replace(/(?<=.)\.[^.]*$/, '')),
  'trims dots and spaces (Windows)': eachSegment(segment => segment.replace(/[. ]+$/, '')),
  'trims white space (PHP)': eachSegment(segment => segment.trim()),
  'reads a plus as a space (forms)': path => path.replaceAll('+', ' '),
  'drops matrix parameters (Tomcat)': eachSegment(segment => segment.replace(/;.*$/s, '')),
  'drops the mark of a backup': eachSegment(segment => segment.replace(/(?<=.)(?:~|\.bak|\.old|\.orig|,v)$/, '')),
  'opens a stream of the file (NTFS)': eachSegment(segment => segment.replace(/:.*$/s, '')),
  'gives up at a broken escape': eachSegment(segment => segment.replace(/%.*$/s, '')),
  'serves the index of a folder': path => path.replace(/\/(?:index|default)(?:\.\w+)?$/i, '') || '/',
  'runs a script with the rest as its argument (PHP)': path =>
    path.replace(/(\.(?:php|cgi|jsp|aspx?|html))\/.*$/is, '$1'),
  'has a front controller': path => path.replace(/\/index\.php(?=\/)/i, ''),
  'takes backslashes for slashes': path => path.replaceAll('\\', '/'),
  'takes yen and won for backslashes': path => path.replace(/[¥₩]/g, '\\'),
  'takes session identifiers out (ASP.NET)': path => path.replace(/\/\((?:\w\([^()]*\))+\)/g, '').replace(/^\/?/, '/'),
  'reads numbers': eachSegment(segment => (/^\d+$/.test(segment) ? String(Number(segment)) : segment)),
  'folds slashes': path => path.replace(/\/{2,}/g, '/'),
  'resolves dots': path =>
    new URL(`http://a${path.replace(/[?#%]/g, encodeURIComponent)}`).pathname.replace(/%\w\w/g, decodeURIComponent),
}

const CHANGES = Object.values(STEPS)

/** As many steps as an application plausibly takes. */
const MAX_STEPS = 4

/** Every page that some application could serve for a target as it came over the wire. */
export function pagesFor(target: string): ReadonlySet<string> {
  const pages = new Set([decodeURIComponent(target.replace(/\?.*$/s, ''))])
  let found = new Set(pages)
  for (let step = 0; step < MAX_STEPS; step++) {
    // What was found earlier has been through every change.
    const changed = [...found].flatMap(page => CHANGES.map(change => safely(change, page)))
    found = new Set(changed).difference(pages)
    for (const page of found) pages.add(page)
  }
  return pages
}

function safely(change: Step, page: string): string {
  try {
    return change(page)
  } catch {
    return page
  }
}
