// How a request to one of our own paths reaches its handler.

import type { IncomingMessage } from 'node:http'
import { errorAnswer, type OwnAnswer } from '../http/answers.ts'
import { type FormProblem, readForm } from '../http/form.ts'
import type { GatewayRequest } from '../http/request.ts'
import { ANY_METHOD, type RouteTable } from '../http/route-table.ts'
import { requestFields, runInRequest } from '../observe/observed-request.ts'
import { isApiPath, isResourceMetadataPath, OWN_PATHS, type OwnPaths } from '../paths.ts'
import { reportFormPost } from '../sign-in/callback.ts'
import type { MaybePromise } from '../util/maybe-promise.ts'
import type { GatewayContext } from './context.ts'
import { createForwardAuth, isForwardAuth } from './forward-auth.ts'

export interface OwnRoutes {
  /** Answers a request to one of our own paths. A forward-auth check is answered without a promise where that is possible. */
  answer(request: GatewayRequest, incoming: IncomingMessage | Request): MaybePromise<OwnAnswer>
  /** Resolves when all sign-ins and sign-outs that have begun are done, even those of browsers that have left. */
  settle(): Promise<void>
}

interface OwnRoutesOptions<Context> {
  readonly routes: RouteTable<Context>
  /** Answers that have begun. Shared with the routes of a former configuration, whose answers are waited for, too. */
  readonly pending: Set<Promise<OwnAnswer>>
}

export function createOwnRoutes<Context extends GatewayContext>(
  context: Context,
  { routes, pending }: OwnRoutesOptions<Context>,
): OwnRoutes {
  const check = createForwardAuth(context)
  const { resources } = context

  async function answerRoute(request: GatewayRequest, incoming: IncomingMessage | Request): Promise<OwnAnswer> {
    const answer = runInRequest(request.observed, () => answerFrom(routes, context, request, incoming))
    pending.add(answer)
    return answer.finally(() => pending.delete(answer))
  }

  return {
    answer(request, incoming) {
      if (isForwardAuth(request.path)) return check(request)
      return resources && isResourceMetadataPath(request.path)
        ? resources.answer(context.pages, request)
        : answerRoute(request, incoming)
    },
    async settle() {
      await Promise.allSettled(pending)
    },
  }
}

async function answerFrom<Context extends GatewayContext>(
  routes: RouteTable<Context>,
  context: Context,
  request: GatewayRequest,
  incoming: IncomingMessage | Request,
): Promise<OwnAnswer> {
  const { settings, paths, pages, observe } = context
  const name = routeName(paths, request.path)
  const route = Object.hasOwn(routes, name) && routes[name]
  if (!route) return errorAnswer(pages, request, 'not_found')
  const anyMethod = route[ANY_METHOD]
  if (anyMethod) return anyMethod(context, request, new URLSearchParams())
  const handler = Object.hasOwn(route, request.method) && route[request.method]
  if (!handler) {
    const allow = Object.keys(route).join(', ')
    if (name === paths.callback) await reportFormPost(context, request)
    return errorAnswer(pages, request, 'method_not_allowed', { headers: { allow } })
  }
  if (request.method !== 'POST') return handler(context, request, new URLSearchParams())
  const onCutOff = () => observe.report('client_cut_off', { ...requestFields(request), reason: 'form_takes_too_long' })
  const form = await readForm(incoming, settings.CLIENT_TIMEOUT_MS, onCutOff)
  return form instanceof URLSearchParams ? handler(context, request, form) : answerWithoutForm(context, request, form)
}

function routeName({ callback, callbacks }: OwnPaths, path: string): string {
  if (path.startsWith(OWN_PATHS.assets)) return OWN_PATHS.assets
  if (isApiPath(path)) return OWN_PATHS.api
  return callbacks.has(path) ? callback : path
}

function answerWithoutForm(
  { pages, observe }: GatewayContext,
  request: GatewayRequest,
  reason: FormProblem,
): OwnAnswer {
  if (reason === 'already_read')
    observe.report('form_already_read', {
      ...requestFields(request),
      path: request.path,
      remedy: 'put Menshen in front of what reads the bodies of requests',
    })
  // The rest of the body is not waited for: the connection ends with the answer.
  const headers = { connection: 'close' }
  return errorAnswer(pages, request, reason === 'too_large' ? 'too_large' : 'bad_request', { headers })
}
