// The answers of the console's routes, for all tabs: loaded with the first request of an admitted user.

import type { GuardedHandler } from '../sign-in/guarded.ts'
import { createAuditStream, sendAuditCsv, sendAuditJson, showAudit } from './audit-tab.ts'
import type { ConsoleContext } from './context.ts'
import { confirmEnd, endListedSession } from './end-sessions.ts'
import { showHealth } from './health-tab.ts'
import type { LiveStreams } from './live-streams.ts'
import { createOverview } from './overview.ts'
import { showRules } from './rules-tab.ts'
import { showSession, showSessions } from './sessions-tab.ts'
import { showSettings } from './settings-tab.ts'

export type ConsolePages = ReturnType<typeof createConsolePages>

export function createConsolePages(context: ConsoleContext, liveStreams: LiveStreams) {
  const overview = createOverview(context, liveStreams)
  return {
    showOverview: overview.show,
    streamOverview: overview.stream,
    showSessions,
    showSession,
    confirmEnd,
    endListedSession,
    showAudit,
    sendAuditCsv,
    sendAuditJson,
    streamAudit: createAuditStream(liveStreams),
    showRules,
    showHealth,
    showSettings,
  } satisfies Record<string, GuardedHandler<ConsoleContext>>
}
