// Who looks at a page of the console.

import type { SignedInCaller } from '../gateway/admission.ts'
import type { Viewer } from './console-frame.ts'

export function viewerOf({ loaded }: Pick<SignedInCaller, 'loaded'>): Viewer {
  return loaded.session.userInfo
}
