// Lists sessions, and ends one of them, or all sessions and keys of a user.

import { z } from 'zod'
import { endUser } from '../keys/end-user.ts'
import { shortKey } from '../session/fields.ts'
import type { ListedSession } from '../session/listing.ts'
import { isRecordKey } from '../session/ticket.ts'
import { phrase } from '../text/text.ts'
import type { ApiContext, Call, Operation } from './context.ts'
import { byMachine, time, timeOf } from './fields.ts'
import { type ApiProblem, apiProblem } from './problem.ts'
import { DEFAULT_LIMIT, invalidParameter } from './query.ts'

const sessionSchema = z
  .object({
    id: z.string().meta({ description: 'The same as in the console and in `menshen sessions --json`.' }),
    user: z.string().optional(),
    name: z.string().meta({ description: 'The display name.' }).optional(),
    role: z.string().optional(),
    provider: z.string().optional(),
    since: time.meta({ description: 'The time of the sign-in.' }).optional(),
    seen: time.meta({ description: 'The time of the last request, to a few minutes.' }).optional(),
    expires: time,
    address: z.string().meta({ description: 'The client address at the sign-in.' }).optional(),
    browser: z.string().meta({ description: 'The User-Agent at the sign-in.' }).optional(),
  })
  .meta({ id: 'Session', description: 'Only `id` and `expires` if it was sealed with a secret that is gone.' })

type ApiSession = z.infer<typeof sessionSchema>

export const SESSION_OPERATIONS: readonly Operation[] = [
  {
    method: 'GET',
    path: '/sessions',
    id: 'listSessions',
    summary: 'Lists sessions, newest first.',
    scope: 'sessions',
    parameters: ['user', 'limit', 'after'],
    answer: z.object({ sessions: z.array(sessionSchema), next: z.string().optional() }).meta({ id: 'SessionPage' }),
    run: listSessions,
  },
  {
    method: 'DELETE',
    path: '/sessions',
    id: 'endUser',
    summary: 'Ends all sessions of a user and revokes all personal keys of the user, on all instances.',
    scope: 'sessions',
    required: ['user'],
    answer: z.object({ ended: z.int().min(0), keys: z.int().min(0) }).meta({ id: 'UserEnd' }),
    run: endSessionsOfUser,
  },
  {
    method: 'DELETE',
    path: '/sessions/{id}',
    id: 'endSession',
    summary: 'Ends a session. Personal keys of its user stay valid.',
    scope: 'sessions',
    run: endSession,
  },
]

async function listSessions({ context, query }: Call): Promise<object | ApiProblem> {
  const { user, limit = DEFAULT_LIMIT, after } = query
  const { sessions } = context.auth
  const { cursors } = context.api
  const pages = ['sessions', user]
  const before = after === undefined ? undefined : await cursors.decode(pages, after)
  if (after !== undefined && before === undefined) return invalidParameter('after')
  const found = await (user === undefined
    ? sessions.newest({ before, limit })
    : sessions.newestNamed(user, { before, limit }))
  const next = found.next === undefined ? {} : { next: await cursors.encode(pages, found.next) }
  return { sessions: found.sessions.map(session => toApi(context, session)), ...next }
}

function toApi({ auth }: ApiContext, { key, expiresAt, summary }: ListedSession): ApiSession {
  const known = { id: key, expires: timeOf(expiresAt) }
  if (!summary) return known
  const { username, nickname, userRole, provider = auth.providers.main.plan.id, signedInAt, seenAt } = summary
  const { address, userAgent } = summary
  return {
    id: key,
    user: username,
    name: nickname,
    role: userRole,
    provider,
    since: timeOf(signedInAt),
    seen: timeOf(seenAt),
    expires: known.expires,
    ...(address === undefined ? {} : { address }),
    ...(userAgent === undefined ? {} : { browser: userAgent }),
  }
}

async function endSession(call: Call): Promise<ApiProblem | undefined> {
  const { context, id } = call
  const { auth, observe } = context
  const listed = isRecordKey(id) ? await auth.sessions.getListed(id) : undefined
  if (!listed || !(await auth.sessions.end(id))) return apiProblem('not_found', phrase('api.no_such_session'))
  const { username: user, provider } = listed.summary ?? {}
  observe.report('session_ended', { ...byMachine(call), session: shortKey(id), user, provider, ended: 1 })
  return undefined
}

async function endSessionsOfUser(call: Call): Promise<object> {
  const { auth, observe, api } = call.context
  const { user = '' } = call.query
  return endUser({ sessions: [auth.sessions], keys: api.keys, report: observe.report }, user, byMachine(call))
}
