// Sends heads whose common headers were written and checked once. Node writes and checks every header of every answer, which was an
// eighth of a signed-in check (5 of 42 µs).

import { type IncomingMessage, ServerResponse } from 'node:http'
import type { StatusAnswer } from '../http/answers.ts'

/** A response of our own HTTP server: no application has set headers of it. */
export class PreparedResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  /** Node keeps the head there until it sends it. */
  declare _header: string | null
}

/** Sends an answer with status 200. */
export type SendPrepared = (response: PreparedResponse, answer: StatusAnswer) => void

const DATE = 'Date: '

/**
 * Once a second Node writes a whole head. The others of that second end like that one, with what Node adds: the date, and how
 * long the connection is kept.
 */
export function createSendPrepared(now: () => number): SendPrepared {
  let end = ''
  let second = -1

  function writeAndLearn(response: PreparedResponse, answer: StatusAnswer, at: number): void {
    response.writeHead(200, answer.common.listFor(answer))
    const start = answer.common.headOfOk(answer)
    const head = response._header
    if (!response.shouldKeepAlive || !head?.startsWith(start + DATE)) return
    end = head.slice(start.length)
    second = at
  }

  return (response, answer) => {
    const at = Math.floor(now() / 1000)
    if (at === second && response.shouldKeepAlive) response._header = answer.common.headOfOk(answer) + end
    else writeAndLearn(response, answer, at)
    response.end()
  }
}
