// The routes of the console, for the gateway's table. Rules decide who can open them.

import { admitWithoutStore } from '../gateway/admit-without-store.ts'
import type { RouteTable } from '../http/route-table.ts'
import { OWN_PATHS } from '../paths.ts'
import { guarded } from '../sign-in/guarded.ts'
import { createAuditStream, sendAuditCsv, sendAuditJson, showAudit } from './audit-tab.ts'
import type { ConsoleContext } from './context.ts'
import { confirmEnd, endListedSession } from './end-sessions.ts'
import { showHealth } from './health-tab.ts'
import type { LiveStreams } from './live-streams.ts'
import { createOverview } from './overview.ts'
import { showRules } from './rules-tab.ts'
import { showSession, showSessions } from './sessions-tab.ts'
import { showSettings } from './settings-tab.ts'

export function createConsole(context: ConsoleContext, liveStreams: LiveStreams): RouteTable<ConsoleContext> {
  const overview = createOverview(context, liveStreams)
  const showOverview = guarded(overview.show, admitWithoutStore)
  const showHealthTab = guarded(showHealth, admitWithoutStore)
  return {
    [OWN_PATHS.console]: { GET: showOverview, HEAD: showOverview },
    [OWN_PATHS.consoleLive]: { GET: guarded(overview.stream) },
    [OWN_PATHS.consoleSessions]: { GET: guarded(showSessions), HEAD: guarded(showSessions) },
    [OWN_PATHS.consoleSession]: { GET: guarded(showSession), HEAD: guarded(showSession) },
    [OWN_PATHS.consoleConfirmEnd]: { GET: guarded(confirmEnd), HEAD: guarded(confirmEnd) },
    [OWN_PATHS.endSession]: { POST: guarded(endListedSession) },
    [OWN_PATHS.consoleAudit]: { GET: guarded(showAudit), HEAD: guarded(showAudit) },
    [OWN_PATHS.consoleAuditCsv]: { GET: guarded(sendAuditCsv) },
    [OWN_PATHS.consoleAuditJson]: { GET: guarded(sendAuditJson) },
    [OWN_PATHS.consoleAuditLive]: { GET: guarded(createAuditStream(liveStreams)) },
    [OWN_PATHS.consoleRules]: { GET: guarded(showRules), HEAD: guarded(showRules) },
    [OWN_PATHS.consoleHealth]: { GET: showHealthTab, HEAD: showHealthTab },
    [OWN_PATHS.consoleSettings]: { GET: guarded(showSettings), HEAD: guarded(showSettings) },
  }
}
