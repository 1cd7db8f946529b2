// POST /_menshen/language: the console and the account page in another language, in this browser.
import { readTarget } from '../../access/target.ts'
import { OWN_PATHS } from '../../own-paths.ts'
import { LANGUAGE_FIELDS } from '../../pages/language-switch.ts'
import { ownPath } from '../../session/return-path.ts'
import type { SignedInCaller } from '../admission/admit.ts'
import type { GatewayContext } from '../context.ts'
import { setCookie } from '../http/cookies.ts'
import { errorAnswer, foreignAnswer, redirectAnswer } from '../http/page-answers.ts'
import { isFromOwnOrigin } from '../http/provenance.ts'
import type { Visit } from '../http/request.ts'
import { isChosenAt } from './language-of.ts'

const YEAR_SECONDS = 365 * 86_400

export async function chooseLanguage(
  context: GatewayContext,
  visit: Visit,
  { cookies }: SignedInCaller,
  form: URLSearchParams,
): Promise<Response> {
  const { settings, languages } = context
  if (!isFromOwnOrigin(visit, settings.BASE_URL)) return foreignAnswer(context, visit, cookies)
  const chosen = languages.get(form.get(LANGUAGE_FIELDS.language) ?? '')
  if (!chosen) return errorAnswer(context, visit, 'bad_request', { cookies })
  const kept = setCookie(context.cookies.language, chosen.lang, YEAR_SECONDS)
  return redirectAnswer(context, visit.method, pageToShow(settings.BASE_URL, form), [...cookies, kept])
}

/** Only a page on which the choice counts. */
function pageToShow(ownOrigin: string, form: URLSearchParams): string {
  const wanted = ownPath(form.get(LANGUAGE_FIELDS.returnTo) ?? '', ownOrigin)
  const path = wanted && readTarget(wanted)?.path
  return path && isChosenAt(path) ? wanted : OWN_PATHS.account
}
