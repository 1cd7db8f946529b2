// The routes of the console, for the gateway's table. Rules decide who can open them.

import { admitWithoutStore } from '../gateway/admit-without-store.ts'
import type { RouteTable } from '../http/route-table.ts'
import { OWN_PATHS } from '../paths.ts'
import { type GuardedHandler, guarded } from '../sign-in/guarded.ts'
import { createCachedValue } from '../util/cached-value.ts'
import type { ConsoleContext } from './context.ts'
import type { LiveStreams } from './live-streams.ts'
import type { ConsolePages } from './pages.ts'

/** The pages are loaded when an admitted user opens one, so an application whose console is not used does not load them. */
export function createConsole(context: ConsoleContext, liveStreams: LiveStreams): RouteTable<ConsoleContext> {
  const pages = createCachedValue({
    load: async () => (await import('./pages.ts')).createConsolePages(context, liveStreams),
    freshMs: Number.POSITIVE_INFINITY,
    now: context.now,
  })
  const page = (name: keyof ConsolePages): GuardedHandler<ConsoleContext> => {
    return async (...args) => (await pages.get())[name](...args)
  }
  const handle = (name: keyof ConsolePages, admitCaller?: typeof admitWithoutStore) => guarded(page(name), admitCaller)
  const show = (name: keyof ConsolePages, admitCaller?: typeof admitWithoutStore) => {
    const handler = handle(name, admitCaller)
    return { GET: handler, HEAD: handler }
  }
  return {
    [OWN_PATHS.console]: show('showOverview', admitWithoutStore),
    [OWN_PATHS.consoleLive]: { GET: handle('streamOverview') },
    [OWN_PATHS.consoleSessions]: show('showSessions'),
    [OWN_PATHS.consoleSession]: show('showSession'),
    [OWN_PATHS.consoleConfirmEnd]: show('confirmEnd'),
    [OWN_PATHS.endSession]: { POST: handle('endListedSession') },
    [OWN_PATHS.consoleAudit]: show('showAudit'),
    [OWN_PATHS.consoleAuditCsv]: { GET: handle('sendAuditCsv') },
    [OWN_PATHS.consoleAuditJson]: { GET: handle('sendAuditJson') },
    [OWN_PATHS.consoleAuditLive]: { GET: handle('streamAudit') },
    [OWN_PATHS.consoleRules]: show('showRules'),
    [OWN_PATHS.consoleHealth]: show('showHealth', admitWithoutStore),
    [OWN_PATHS.consoleSettings]: show('showSettings'),
  }
}
