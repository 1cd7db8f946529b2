// The built-in home page, if there is no application behind. It is rendered once per loaded session and language, and then sent
// unchanged as long as it is among the latest pages.
import { LRUCache } from 'lru-cache'
import { DEVELOPMENT_CLIENT } from '../config/dev-provider.ts'
import type { GatewayContext } from '../gateway/context.ts'
import type { Home } from '../gateway/listener.ts'
import { CommonHeaders, errorAnswer, languageOf, pageHeaders } from '../http/answers.ts'
import { send, takesBody } from '../http/send.ts'
import type { Words } from '../pages/words.ts'
import type { LoadedSession } from '../session/cache.ts'
import { atMost } from '../util/recent.ts'
import { providerNameOf } from './account.ts'
import { homePage } from './home-page.ts'
import { sessionEnds } from './page.ts'

interface RenderedPage {
  readonly headers: CommonHeaders
  /** The bytes of the page, one per character: Node writes such a text together with the head, in one piece. */
  readonly body: string
  readonly words: Words
  /** The session's version. */
  readonly version: number
}

/** A page is several times as large as its session. */
const MAX_CACHED_PAGES = 1000

export function createHome({ auth, pages }: GatewayContext): Home {
  // Keyed by the session's key: with the session itself as the key, its tokens would stay in memory after a sign-out.
  const rendered = new LRUCache<string, RenderedPage>(atMost(MAX_CACHED_PAGES))

  function render(words: Words, loaded: LoadedSession): RenderedPage {
    const view = {
      providerName: providerNameOf(words, auth.providers, loaded),
      ends: sessionEnds(loaded, pages.settings.SESSION_MAX_HOURS, undefined),
      isFirstRun: pages.settings.CLIENT_ID === DEVELOPMENT_CLIENT.CLIENT_ID,
      baseUrl: pages.settings.BASE_URL,
      callbackPath: pages.paths.callback,
    }
    const html = Buffer.from(homePage(words, loaded, view))
    const headers = new CommonHeaders({ ...pageHeaders(pages), 'content-length': String(html.length) })
    const page = { headers, body: html.toString('latin1'), words, version: loaded.version }
    rendered.set(loaded.key, page)
    return page
  }

  return (request, { loaded, cookies }, response) => {
    const { method, path, observed } = request
    const { requestId } = observed
    if (path !== '/' || !loaded)
      return send(response, errorAnswer(pages, request, 'not_found', { cookies }).response, requestId)
    if (method !== 'GET' && method !== 'HEAD')
      return send(
        response,
        errorAnswer(pages, request, 'method_not_allowed', { cookies, headers: { allow: 'GET, HEAD' } }).response,
        requestId,
      )
    const words = languageOf(pages, request)
    const known = rendered.get(loaded.key)
    const isLatest = known?.words === words && known.version === loaded.version
    const page = isLatest ? known : render(words, loaded)
    if (!takesBody(response, page.body.length)) return
    const setCookies = cookies.flatMap(cookie => ['set-cookie', cookie])
    response.writeHead(200, page.headers.listFor({ requestId, more: setCookies }))
    response.end(page.body, 'latin1')
  }
}
