// The audit trail, newest first.

import { z } from 'zod'
import { auditLine } from '../observe/audit-event.ts'
import type { Call, Operation } from './context.ts'
import { time } from './fields.ts'
import type { ApiProblem } from './problem.ts'
import { DEFAULT_LIMIT, invalidParameter } from './query.ts'

const eventSchema = z
  .looseObject({ time, level: z.enum(['info', 'warn', 'error']).optional(), event: z.string() })
  .meta({ id: 'Event', description: 'An event with its fields, as a line of the log. docs/logging.md explains them.' })

export const AUDIT_OPERATIONS: readonly Operation[] = [
  {
    method: 'GET',
    path: '/audit',
    id: 'listEvents',
    summary: 'Lists events of the audit trail, newest first.',
    scope: 'audit',
    parameters: ['user', 'event', 'since', 'limit', 'after'],
    answer: z.object({ events: z.array(eventSchema), next: z.string().optional() }).meta({ id: 'EventPage' }),
    run: listEvents,
  },
]

async function listEvents({ context, query }: Call): Promise<object | ApiProblem> {
  const { user, event, since, limit = DEFAULT_LIMIT, after } = query
  const { cursors } = context.api
  const pages = ['audit', user, event, since]
  const before = after === undefined ? undefined : await cursors.decode(pages, after)
  if (after !== undefined && before === undefined) return invalidParameter('after')
  const found = await context.observe.auditTrail.find({
    ...(user === undefined ? {} : { user }),
    ...(event === undefined ? {} : { event }),
    ...(since === undefined ? {} : { since }),
    ...(before === undefined ? {} : { before }),
    limit,
  })
  const next = found.next === undefined ? {} : { next: await cursors.encode(pages, found.next) }
  return { events: found.events.map(auditLine), ...next }
}
