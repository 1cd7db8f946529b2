// The built-in home page, where there is no application behind. It is made once for each opened session and then sent as
// it is.
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { accountPage } from '../pages/account.ts'
import type { Opened } from '../session/opened.ts'
import type { Admission } from './admission.ts'
import { noticeAnswer, pageHeaders } from './answers.ts'
import type { House } from './house.ts'
import type { Visit } from './request.ts'
import { send } from './send.ts'
import type { Soon } from './soon.ts'

export type Home = (visit: Visit, admission: Admission, response: ServerResponse) => Soon<void>

interface Made {
  readonly headers: OutgoingHttpHeaders
  readonly body: Buffer
}

export function createHome(house: House): Home {
  const made = new WeakMap<Opened, Made>()

  function make(opened: Opened): Made {
    const body = Buffer.from(accountPage(house.settings.APP_NAME, opened))
    const page = { headers: { ...pageHeaders(house), 'content-length': body.length }, body }
    made.set(opened, page)
    return page
  }

  return ({ method, path }, { opened, cookies }, response) => {
    if (path !== '/' || !opened) return send(response, noticeAnswer(house, 'not_found', { cookies }))
    if (method !== 'GET' && method !== 'HEAD')
      return send(response, noticeAnswer(house, 'method_not_allowed', { cookies, headers: { allow: 'GET, HEAD' } }))
    const { headers, body } = made.get(opened) ?? make(opened)
    response.writeHead(200, cookies.length > 0 ? { ...headers, 'set-cookie': [...cookies] } : headers)
    response.end(body)
  }
}
