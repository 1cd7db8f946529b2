// What happens to a request, in order:
//
//   observe        it gets an id, and is counted when it ends           handleRequest
//   own route?     /login, /callback, … are answered by us              route
//   precheck       what is refused whatever the rules say               authorize
//   identify       the session of its ticket, refreshed if due          admit
//                  or, without one, its key or bearer token
//   rule           what the rules say about the caller                  admit
//   deny           to the login page, or a refusal                      decide
//   or forward     to the application, or to the home page              decide
//
// The HTTP server, WebSocket upgrades, forward-auth and embedding applications differ in what some of these steps do: each
// has a Transport. Every step works without a promise where it can: nearly all signed-in requests find their session in the
// cache, and need no turn of the event loop.

import { isTooLong, pathProblem } from '../access/request-path.ts'
import { readCookie } from '../http/cookies.ts'
import { type GatewayRequest, type RequestHead, rawPath, readGatewayRequest, wasReset } from '../http/request.ts'
import type { Admission } from '../identify/admission.ts'
import { admit } from '../identify/admit.ts'
import type { CredentialRequest, IdentifyContext } from '../identify/context.ts'
import { ticketOf } from '../identify/session.ts'
import { type ObservedRequest, type RequestOutcome, requestFields } from '../observe/observed-request.ts'
import { isOwnPath, isResourceMetadataPath } from '../paths.ts'
import type { LoadedSession } from '../session/cache.ts'
import { andThen, type MaybePromise, orElse } from '../util/maybe-promise.ts'

/** Every answer has the outcome under which the metrics count the request. */
interface WithOutcome {
  readonly outcome: RequestOutcome
}

/** `Target` is where an answer goes. */
interface Sender<Target, Answer extends WithOutcome, Result> {
  send(observed: ObservedRequest, answer: Answer, target: Target): MaybePromise<Result>
}

/** The steps after our own routes. */
export interface Handlers<Target, Answer extends WithOutcome, Result> extends Sender<Target, Answer, Result> {
  /** The answer to a request that is refused whatever the rules say. */
  precheck(request: GatewayRequest, target: Target): MaybePromise<Answer> | undefined
  /** The answer to a request that the rules do not admit. */
  deny(request: GatewayRequest, admission: Admission, target: Target): MaybePromise<Answer>
  forward(request: GatewayRequest, admission: Admission, target: Target): MaybePromise<Result>
}

/** One way in which requests arrive. */
export interface Transport<Target, Answer extends WithOutcome, Result> extends Handlers<Target, Answer, Result> {
  /** Traces begin with the request. In an embedding application they begin with its own. */
  readonly isTraced: boolean
  /** The connection was reset before its request was read. */
  onReset(observed: ObservedRequest, target: Target): Result
  /** Before the request is read. */
  begin?(observed: ObservedRequest, target: Target): void
  /** The answer to a request whose path cannot be read. */
  unreadable(head: RequestHead, observed: ObservedRequest, target: Target): MaybePromise<Answer>
  /** The answer to a request for one of our own routes. */
  ownRoute(request: GatewayRequest, target: Target): MaybePromise<Answer>
  /** The answer after an internal error. */
  fail(request: GatewayRequest, error: unknown, target: Target): MaybePromise<Answer>
  /** After the answer, or when the request is on its way. */
  end?(observed: ObservedRequest, target: Target): void
}

export function handleRequest<Target, Answer extends WithOutcome, Result>(
  context: IdentifyContext,
  transport: Transport<Target, Answer, Result>,
  head: RequestHead,
  target: Target,
): MaybePromise<Result> {
  const { observe, readTarget } = context
  const observed = observe.beginRequest(head)
  // Nothing is asked of the provider, the store or the application.
  if (wasReset(head.socket)) {
    count(observed, 'refused')
    return transport.onReset(observed, target)
  }
  transport.begin?.(observed, target)
  const request = readGatewayRequest(readTarget, head, observed)
  if (transport.isTraced) observe.begun?.(observed, head.headers)
  if (!request) reportUnreadable(context, head, observed)
  const result = request
    ? answer(context, transport, request, target)
    : reply(transport, observed, transport.unreadable(head, observed, target), target)
  transport.end?.(observed, target)
  return result
}

/** The answer does not wait for the name of the user. */
function reportUnreadable(context: IdentifyContext, head: RequestHead, observed: ObservedRequest): void {
  const { method = 'GET', url = '', headers } = head
  const [path = ''] = url.split('?', 1)
  const reason = isTooLong(path) ? 'too_long' : (context.readTarget.problemOf ?? pathProblem)(path)
  const report = (loaded?: LoadedSession) => {
    if (loaded) observed.user = loaded.session.userInfo.username
    context.observe.report('path_refused', {
      ...requestFields({ observed }, loaded),
      reason,
      method,
      path: rawPath(path),
    })
  }
  const find = async () => {
    const ticket = await ticketOf(context, { headers })
    return ticket === undefined ? undefined : context.auth.sessions.get(ticket)
  }
  if (readCookie(headers.cookie, context.auth.cookies.session)) find().then(report, () => report())
  else report()
}

function answer<Target, Answer extends WithOutcome, Result>(
  context: IdentifyContext,
  transport: Transport<Target, Answer, Result>,
  request: GatewayRequest,
  target: Target,
): MaybePromise<Result> {
  try {
    return orElse(route(context, transport, request, target), error =>
      reply(transport, request.observed, transport.fail(request, error, target), target),
    )
  } catch (error) {
    return reply(transport, request.observed, transport.fail(request, error, target), target)
  }
}

function route<Target, Answer extends WithOutcome, Result>(
  context: IdentifyContext,
  transport: Transport<Target, Answer, Result>,
  request: GatewayRequest,
  target: Target,
): MaybePromise<Result> {
  if (!isOwn(context, request.path)) return authorize(context, transport, request, request, target)
  return reply(transport, request.observed, transport.ownRoute(request, target), target)
}

/** Whether we answer a path ourselves. */
export function isOwn({ paths, resources }: IdentifyContext, path: string): boolean {
  return isOwnPath(path, paths.signIn) || (resources !== undefined && isResourceMetadataPath(path))
}

/** The rules judge `asked`. Where a proxy asks about it, `outer` is the proxy's own request, which carries the credentials. */
export function authorize<Target, Answer extends WithOutcome, Result>(
  context: IdentifyContext,
  handlers: Handlers<Target, Answer, Result>,
  asked: GatewayRequest,
  outer: CredentialRequest,
  target: Target,
): MaybePromise<Result> {
  const refusal = handlers.precheck(asked, target)
  if (refusal) return reply(handlers, outer.observed, refusal, target)
  return andThen(admit(context, asked, outer), admission => decide(handlers, asked, admission, target))
}

function decide<Target, Answer extends WithOutcome, Result>(
  handlers: Handlers<Target, Answer, Result>,
  request: GatewayRequest,
  admission: Admission,
  target: Target,
): MaybePromise<Result> {
  const { observed } = request
  if (admission.outcome === 'admitted') {
    count(observed, 'admitted')
    return handlers.forward(request, admission, target)
  }
  return reply(handlers, observed, handlers.deny(request, admission, target), target)
}

/** Also for a request that was forwarded, if the application fails. */
export function reply<Target, Answer extends WithOutcome, Result>(
  sender: Sender<Target, Answer, Result>,
  observed: ObservedRequest,
  answer: MaybePromise<Answer>,
  target: Target,
): MaybePromise<Result> {
  return andThen(answer, answer => {
    count(observed, answer.outcome)
    return sender.send(observed, answer, target)
  })
}

/** How the metrics count the request. The last value wins. */
function count(observed: ObservedRequest, outcome: RequestOutcome): void {
  observed.outcome = outcome
}
