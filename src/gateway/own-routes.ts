// Our own routes as Request in, Response out, whichever way the request came; and what they have begun is finished.
import type { IncomingMessage } from 'node:http'
import { during } from '../observe/observed-request.ts'
import type { GatewayContext } from './context.ts'
import { createCheck, isCheck } from './forward-auth/check.ts'
import type { MaybePromise } from './http/maybe-promise.ts'
import type { OwnAnswer } from './http/page-answers.ts'
import type { Visit } from './http/request.ts'
import { answerOwnRoute } from './route-table.ts'

export interface OwnRoutes {
  /** Of a visit to one of our own paths. A proxy's question is answered at once, where it can be. */
  answer(visit: Visit, request: IncomingMessage | Request): MaybePromise<OwnAnswer>
  /** Resolves when what they have begun is done, even for browsers that have gone: a sign-in, a sign-out. */
  settle(): Promise<void>
}

/** `underway` may be shared with own routes of a former configuration: what they began is waited for, too. */
export function createOwnRoutes(context: GatewayContext, underway = new Set<Promise<OwnAnswer>>()): OwnRoutes {
  const check = createCheck(context)

  async function answerRoute(visit: Visit, request: IncomingMessage | Request): Promise<OwnAnswer> {
    const answer = during(visit.observed, () => answerOwnRoute(context, visit, request))
    underway.add(answer)
    return answer.finally(() => underway.delete(answer))
  }

  return {
    answer: (visit, request) => (isCheck(visit.path) ? check(visit) : answerRoute(visit, request)),
    async settle() {
      await Promise.allSettled(underway)
    },
  }
}
