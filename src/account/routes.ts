// The routes of the account page.

import type { RouteTable } from '../http/route-table.ts'
import { OWN_PATHS } from '../paths.ts'
import { guarded } from '../sign-in/guarded.ts'
import { endDevices, showAccount } from './account.ts'
import type { AccountContext } from './context.ts'
import { createPersonalKey, revokePersonalKey } from './keys.ts'
import { stepUpOrKey } from './sign-in-for-key.ts'

export const ACCOUNT_ROUTES: RouteTable<AccountContext> = {
  [OWN_PATHS.account]: { GET: guarded(showAccount), HEAD: guarded(showAccount) },
  [OWN_PATHS.accountEnd]: { POST: guarded(endDevices) },
  [OWN_PATHS.accountKeys]: { POST: guarded(createPersonalKey) },
  [OWN_PATHS.accountKeysRevoke]: { POST: guarded(revokePersonalKey) },
  [OWN_PATHS.stepUp]: { GET: stepUpOrKey },
}
