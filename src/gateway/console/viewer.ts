// Who looks at a page of the console.
import type { Viewer } from '../../pages/console/console-frame.ts'
import type { SignedInCaller } from '../admission/admit.ts'

export function viewerOf({ loaded }: Pick<SignedInCaller, 'loaded'>): Viewer {
  return loaded.session.userInfo
}
