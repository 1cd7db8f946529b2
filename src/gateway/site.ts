// All transports of one site: BASE_URL, or a host of `hosts`.

import type { RequestListener } from 'node:http'
import type { OwnAnswer } from '../http/answers.ts'
import type { RouteTable } from '../http/route-table.ts'
import type { GatewayContext } from './context.ts'
import { createEmbedded, type Embedded } from './embedded.ts'
import { createListener, type Home } from './listener.ts'
import { createOwnRoutes, type OwnRoutes } from './routes.ts'
import { createUpgradeListener, type UpgradeListener } from './upgrade.ts'

export interface SiteHandlers {
  readonly ownRoutes: OwnRoutes
  readonly listener: RequestListener
  readonly upgradeListener: UpgradeListener
  readonly embedded: Embedded
}

interface SiteOptions<Context> {
  readonly routes: RouteTable<Context>
  /** Answers requests for paths that no application serves. */
  readonly home: Home
  /** Responses of our own routes that have begun, those of a former configuration included. */
  readonly pending: Set<Promise<OwnAnswer>>
}

export function createSiteHandlers<Context extends GatewayContext>(
  context: Context,
  { routes, home, pending }: SiteOptions<Context>,
): SiteHandlers {
  const ownRoutes = createOwnRoutes(context, { routes, pending })
  const listener = createListener(context, ownRoutes, home)
  return {
    ownRoutes,
    listener,
    upgradeListener: createUpgradeListener(context, listener),
    embedded: createEmbedded(context, ownRoutes),
  }
}
