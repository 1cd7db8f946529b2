// GET /_menshen/account: who is signed in, for users of applications that do not say it themselves.
import { accountPage } from '../../pages/account-page.ts'
import type { LoadedSession } from '../../session/session-cache.ts'
import type { SignedInCaller } from '../admission/admit.ts'
import type { GatewayContext } from '../context.ts'
import { pageAnswer } from '../http/page-answers.ts'
import type { Visit } from '../http/request.ts'
import { languageOf } from '../language/language-of.ts'

export async function showAccount(
  context: GatewayContext,
  visit: Visit,
  { loaded, cookies }: SignedInCaller,
): Promise<Response> {
  return pageAnswer(context, accountPage(languageOf(context, visit), loaded, providerNameOf(context, loaded)), {
    cookies,
  })
}

/** Where there are several. */
export function providerNameOf(
  { providers }: Pick<GatewayContext, 'providers'>,
  { session }: LoadedSession,
): string | undefined {
  return providers.names?.get(session.provider ?? '')
}
