// The routes for signing in and out.

import type { RouteTable } from '../http/route-table.ts'
import { OWN_PATHS, type OwnPaths } from '../paths.ts'
import { backchannelLogout } from './backchannel-logout.ts'
import { finishSignIn } from './callback.ts'
import type { SignInContext } from './context.ts'
import { guarded } from './guarded.ts'
import { showLogin, startSignIn } from './login.ts'
import { signOut, signOutEverywhere } from './logout.ts'
import { stepUp } from './step-up.ts'
import { startTestSignIn } from './test-sign-in.ts'

/** Routes at every site. */
export function signOutRoutes({ logout }: OwnPaths): RouteTable<SignInContext> {
  return {
    [logout]: { GET: signOut, POST: signOut },
    [OWN_PATHS.signOutEverywhere]: { POST: guarded(signOutEverywhere) },
    [OWN_PATHS.backchannelLogout]: { POST: backchannelLogout },
    [OWN_PATHS.stepUp]: { GET: stepUp },
  }
}

/** Routes at BASE_URL. */
export function signInRoutes({ login, callback }: OwnPaths): RouteTable<SignInContext> {
  return {
    [login]: { GET: showLogin, HEAD: showLogin, POST: startSignIn },
    [callback]: { GET: finishSignIn },
    [OWN_PATHS.doctorSignIn]: { GET: startTestSignIn },
  }
}
