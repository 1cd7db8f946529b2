// The built-in home page, where there is no application behind. It is made once for each loaded session and language, and
// then sent as it is, as long as it is among the latest.
import type { ServerResponse } from 'node:http'
import { LRUCache } from 'lru-cache'
import { homePage } from '../../pages/home-page.ts'
import type { Words } from '../../pages/words/words.ts'
import type { LoadedSession } from '../../session/session-cache.ts'
import type { MaybePromise } from '../../util/maybe-promise.ts'
import type { Admission } from '../admission.ts'
import type { GatewayContext } from '../context.ts'
import { languageOf } from '../language.ts'
import { commonHeaders, type GatewayRequest, withRequestId } from '../request.ts'
import { errorAnswer, pageHeaders, send } from '../respond.ts'
import { providerNameOf } from './account.ts'

export type Home = (request: GatewayRequest, admission: Admission, response: ServerResponse) => MaybePromise<void>

interface Made {
  readonly headers: readonly string[]
  /** The bytes of the page, one in each character: Node writes such a text together with the head, in one piece. */
  readonly body: string
  readonly words: Words
  /** Of the session. */
  readonly version: number
}

/** A page is several times as large as its session: not everybody's can stay. */
const MOST_KEPT = 1000

export function createHome(context: GatewayContext): Home {
  // By the session's key: by the session itself, its tokens would stay in memory after a sign-out.
  const made = new LRUCache<string, Made>({ max: MOST_KEPT })

  function make(words: Words, loaded: LoadedSession): Made {
    const html = Buffer.from(homePage(words, loaded, providerNameOf(context, loaded)))
    const headers = commonHeaders({ ...pageHeaders(context), 'content-length': String(html.length) })
    const page = { headers, body: html.toString('latin1'), words, version: loaded.version }
    made.set(loaded.key, page)
    return page
  }

  return (request, { loaded, cookies }, response) => {
    const { method, path, observed } = request
    const { requestId } = observed
    if (path !== '/' || !loaded)
      return send(response, errorAnswer(context, request, 'not_found', { cookies }), requestId)
    if (method !== 'GET' && method !== 'HEAD')
      return send(
        response,
        errorAnswer(context, request, 'method_not_allowed', { cookies, headers: { allow: 'GET, HEAD' } }),
        requestId,
      )
    const words = languageOf(context, request)
    const known = made.get(loaded.key)
    const isLatest = known?.words === words && known.version === loaded.version
    const page = isLatest ? known : make(words, loaded)
    const headers = withRequestId(page.headers, requestId)
    for (const cookie of cookies) headers.push('set-cookie', cookie)
    response.writeHead(200, headers)
    response.end(page.body, 'latin1')
  }
}
