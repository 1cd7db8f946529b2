// What the portal needs besides the gateway.

import type { Rules } from '../access/rules.ts'
import type { GatewayContext } from '../gateway/context.ts'
import type { Icon } from './icon.ts'

export interface PortalContext extends GatewayContext {
  /** The rules of `hosts`, by their names. */
  readonly hostRules: ReadonlyMap<string, Rules>
  /** All of the configuration, in its order, except those that it hides. */
  readonly applications: readonly Application[]
}

export interface Application {
  readonly title: string
  /** Empty without one. */
  readonly description: string
  /** Of its start. */
  readonly url: string
  readonly icon: Icon
  /** The path that the rules judge. */
  readonly path: string
  /** Whose rules decide; `undefined` for BASE_URL. */
  readonly host: string | undefined
  /** What the filter compares, see applications.ts. */
  readonly text: string
}
