// Lists and revokes personal keys. The keys themselves are not stored anywhere.

import { z } from 'zod'
import type { KeyPage, ListedKey } from '../keys/personal.ts'
import { phrase } from '../text/text.ts'
import type { Call, Operation } from './context.ts'
import { byMachine, time, timeOf } from './fields.ts'
import { type ApiProblem, apiProblem } from './problem.ts'
import { DEFAULT_LIMIT, invalidParameter } from './query.ts'

const keySchema = z
  .object({
    id: z.string().meta({ description: 'The SHA-256 of the key in hex.' }),
    user: z.string(),
    provider: z.string(),
    name: z.string().meta({ description: 'What its user calls it.' }),
    created: time,
    expires: time,
    lastUsed: time.meta({ description: 'To a few minutes; absent if it was never used.' }).optional(),
  })
  .meta({ id: 'Key' })

type ApiKey = z.infer<typeof keySchema>

export const KEY_OPERATIONS: readonly Operation[] = [
  {
    method: 'GET',
    path: '/keys',
    id: 'listKeys',
    summary: 'Lists personal keys, in the order of their ids.',
    scope: 'keys',
    parameters: ['user', 'limit', 'after'],
    answer: z.object({ keys: z.array(keySchema), next: z.string().optional() }).meta({ id: 'KeyPage' }),
    run: listKeys,
  },
  {
    method: 'DELETE',
    path: '/keys/{id}',
    id: 'revokeKey',
    summary: 'Revokes a personal key.',
    scope: 'keys',
    run: revokeKey,
  },
]

async function listKeys({ context, query }: Call): Promise<object | ApiProblem> {
  const { user, limit = DEFAULT_LIMIT, after } = query
  const { cursors, keys } = context.api
  const pages = ['keys', user]
  const from = after === undefined ? undefined : await cursors.decode(pages, after)
  if (after !== undefined && from === undefined) return invalidParameter('after')
  const found: KeyPage = await keys.list({ username: user, after: from, limit })
  const next = found.next === undefined ? {} : { next: await cursors.encode(pages, found.next) }
  const mainProvider = context.auth.providers.main.plan.id
  return { keys: found.keys.map(key => toApi(key, mainProvider)), ...next }
}

function toApi({ id, user, provider, name, createdAt, expiresAt, usedAt }: ListedKey, mainProvider: string): ApiKey {
  const lastUsed = usedAt === undefined ? {} : { lastUsed: timeOf(usedAt) }
  const times = { created: timeOf(createdAt), expires: timeOf(expiresAt), ...lastUsed }
  return { id, user, provider: provider ?? mainProvider, name, ...times }
}

async function revokeKey(call: Call): Promise<ApiProblem | undefined> {
  const { context, id } = call
  const revoked = await context.api.keys.revoke(id)
  if (!revoked) return apiProblem('not_found', phrase('api.no_such_key'))
  const { user, provider, name } = revoked
  context.observe.report('key_revoked', { ...byMachine(call), user, provider, name })
  return undefined
}
