// What the portal needs besides the gateway.

import type { Rules } from '../access/rules.ts'
import type { GatewayContext } from '../gateway/context.ts'
import type { TileSource } from './tile.ts'

export interface PortalContext extends GatewayContext {
  /** The rules of `hosts`, by their names. */
  readonly hostRules: ReadonlyMap<string, Rules>
  /** All applications of the configuration, in its order, except hidden ones. */
  readonly applications: readonly Application[]
}

export interface Application extends TileSource {
  /** The path that the rules judge. */
  readonly path: string
  /** The host whose rules decide; `undefined` for BASE_URL. */
  readonly host: string | undefined
  /** Its tile when it can be opened. */
  readonly tile: string
}
