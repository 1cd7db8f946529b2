// Puts an answer of ours in the place of the application's.
import type { ServerResponse } from 'node:http'
import { newRequestId, REQUEST_ID } from '../http/request-id.ts'
import { send } from '../http/send.ts'
import { addCookies } from './add-cookies.ts'

/** Writes it to a response of node:http, as a stream where it is one. Cookies that the application has set stay there. */
export function sendAnswer(response: ServerResponse, answer: Response): Promise<void> {
  const cookies = answer.headers.getSetCookie()
  addCookies(response, cookies)
  if (cookies.length > 0) answer.headers.delete('set-cookie')
  return send(response, answer, answer.headers.get(REQUEST_ID) ?? newRequestId())
}
