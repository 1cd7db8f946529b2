// Display names for the users of audit events, which contain only usernames. They come from the users' sessions: a user who is
// signed out everywhere is shown by username.

import { MenshenError } from '../errors.ts'
import type { AuditEvent } from '../observe/audit-event.ts'
import { displayName, nameBefore } from '../pages/shown-text.ts'
import type { ConsoleContext } from './context.ts'

export type DisplayNames = (fields: AuditEvent['fields']) => string

/** The most users that are looked up for one page. */
const MAX_USERS = 50
/** The most sessions per username: the same name may exist at several providers. */
const MAX_SESSIONS_PER_NAME = 10

/** The name to show before the username; empty if there is none, or the store is unavailable. */
export async function findDisplayNames(
  { auth }: ConsoleContext,
  events: readonly Pick<AuditEvent, 'fields'>[],
): Promise<DisplayNames> {
  const { sessions, providers } = auth
  const main = providers.main.plan.id
  const usernames = new Set(events.map(({ fields }) => String(fields.user ?? '')).filter(name => name !== ''))
  const names = new Map<string, string>()
  const read = async (username: string) => {
    const { sessions: found } = await sessions.list({ username, limit: MAX_SESSIONS_PER_NAME })
    // The newest session comes last, because its name is the current one.
    for (const { summary } of found.toReversed())
      if (summary)
        names.set(keyOf(summary.provider ?? main, username), nameBefore(displayName(summary), username).trim())
  }
  try {
    await Promise.all([...usernames].slice(0, MAX_USERS).map(read))
  } catch (error) {
    if (!(error instanceof MenshenError)) throw error
  }
  return ({ user, provider = main }) => names.get(keyOf(String(provider), String(user ?? ''))) ?? ''
}

function keyOf(provider: string, username: string): string {
  return JSON.stringify([provider, username])
}
