// A person without a browser: goes where redirects lead, on every site with the cookies of that site, and fills in the
// forms that a provider shows.
import { type Client, createClient, type Response } from '../client.ts'

export interface Account {
  readonly username: string
  readonly password: string
}

export type Person = ReturnType<typeof createPerson>

const MAX_REDIRECTS = 20
const MAX_FORMS = 8

/** As a browser sends them with what somebody clicks. */
const NAVIGATION = {
  accept: 'text/html,application/xhtml+xml,*/*;q=0.8',
  'accept-language': 'en',
  'sec-fetch-mode': 'navigate',
  'sec-fetch-dest': 'document',
}

/** `now` is the clock by which the gateway's cookies expire. */
export function createPerson(gateway: string, account: Account, now: () => number = Date.now) {
  const home = new URL(gateway).origin
  const sites = new Map<string, Client>([[home, createClient(home, now)]])
  /** Every address that was opened, in order. */
  const opened: string[] = []

  function site(origin: string): Client {
    const client = sites.get(origin) ?? createClient(origin)
    sites.set(origin, client)
    return client
  }

  async function ask(url: URL, form?: URLSearchParams, from = url): Promise<Response> {
    opened.push(url.href)
    const path = url.pathname + url.search
    if (!form) return site(url.origin).request({ path, headers: NAVIGATION })
    const headers = {
      ...NAVIGATION,
      'content-type': 'application/x-www-form-urlencoded',
      origin: from.origin,
      referer: from.href,
    }
    return site(url.origin).request({ method: 'POST', path, headers, body: form.toString() })
  }

  /** The page at the end of the redirects. */
  async function arrive(response: Response): Promise<Response> {
    let page = response
    for (let n = 0; n < MAX_REDIRECTS; n++) {
      const { location } = page.headers
      if (page.status < 300 || page.status > 399 || location === undefined) return page
      page = await ask(new URL(location, page.url))
    }
    throw new Error(`too many redirects: ${opened.slice(-4).join(' ')}`)
  }

  /** Says yes to everything that the provider asks, until it sends us home. */
  async function comeHome(response: Response): Promise<Response> {
    let page = await arrive(response)
    for (let n = 0; n < MAX_FORMS; n++) {
      const at = new URL(page.url)
      if (at.origin === home) return page
      const { action, fields } = firstForm(page)
      page = await arrive(await ask(action, filledIn(fields, account), at))
    }
    throw new Error(`the provider keeps asking at ${page.url}`)
  }

  return {
    opened,
    /** Of the gateway. */
    get cookies(): Map<string, string> {
      return site(home).cookies
    },
    open: async (path: string) => arrive(await ask(new URL(path, home))),
    /** Without following a redirect. */
    get: (path: string) => ask(new URL(path, home)),
    /** Presses the button of the login page; where the browser is sent is not opened. */
    pressSignIn: () => ask(new URL('/login', home), new URLSearchParams(), new URL('/login', home)),
    /** Presses the button, and comes back from the provider to where the gateway leads. */
    signIn: async () => comeHome(await ask(new URL('/login', home), new URLSearchParams(), new URL('/login', home))),
    /** From a redirect to the provider back to where the gateway leads. */
    finish: (redirect: Response) => comeHome(redirect),
    /** Where the browser is sent is not opened. */
    pressSignOut: () => ask(new URL('/logout', home), new URLSearchParams(), new URL('/', home)),
    /** The way through the provider included. */
    signOut: async () => comeHome(await ask(new URL('/logout', home), new URLSearchParams(), new URL('/', home))),
    /** At the provider itself. */
    leaveProvider: async (url: string) => {
      const { action, fields } = firstForm(await arrive(await ask(new URL(url))))
      return arrive(await ask(action, filledIn(fields, account), action))
    },
  }
}

interface Form {
  readonly action: URL
  readonly fields: URLSearchParams
}

/** The one that asks for a password, else the first that is sent. */
function firstForm({ text, url, status }: Response): Form {
  const forms = [...text.matchAll(/<form\b([^>]*)>(.*?)<\/form>/gis)].map(([, head = '', inner = '']) => ({
    head,
    inner,
  }))
  const posted = forms.filter(({ head }) => /^post$/i.test(attribute(head, 'method') ?? ''))
  const form = posted.find(({ inner }) => /type="?password/i.test(inner)) ?? posted[0]
  if (!form) throw new Error(`nothing to fill in at ${url} (${status}): ${text.slice(0, 300)}`)
  const fields = new URLSearchParams()
  const id = attribute(form.head, 'id')
  const inputs = form.inner.match(/<input\b[^>]*>/gi) ?? []
  // A button can stand outside of its form.
  const buttons = (text.match(/<button\b[^>]*>/gi) ?? []).filter(
    tag => id !== undefined && attribute(tag, 'form') === id,
  )
  for (const tag of [...inputs, ...buttons.slice(0, 1)]) {
    const name = attribute(tag, 'name')
    const isChoice = /^(submit|button|checkbox|radio)$/i.test(attribute(tag, 'type') ?? '') && tag.startsWith('<input')
    if (name && !isChoice) fields.set(name, attribute(tag, 'value') ?? '')
  }
  return { action: new URL(attribute(form.head, 'action') ?? url, url), fields }
}

function filledIn(fields: URLSearchParams, { username, password }: Account): URLSearchParams {
  const filled = new URLSearchParams(fields)
  for (const name of fields.keys()) {
    if (/^(user|login|username|email)$/i.test(name)) filled.set(name, username)
    if (/^password$/i.test(name)) filled.set(name, password)
  }
  return filled
}

function attribute(tag: string, name: string): string | undefined {
  const [, quoted, single, bare] =
    new RegExp(`\\s${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)'|([^\\s>]+))`, 'i').exec(tag) ?? []
  return (quoted ?? single ?? bare)?.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&amp;', '&')
}
