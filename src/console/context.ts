// What the console needs besides the account page.

import type { AccountContext } from '../account/context.ts'
import type { KnownHosts } from '../hosts/context.ts'

export interface ConsoleContext extends AccountContext {
  /** `undefined` if there are none. */
  readonly hosts: KnownHosts | undefined
}
