// The language of an answer: as PAGE_LANGUAGE says, or on their own pages as somebody has chosen.
import { OWN_PATHS } from '../../own-paths.ts'
import type { Words } from '../../pages/words/words.ts'
import type { GatewayContext } from '../context.ts'
import { readCookie } from '../http/cookies.ts'
import type { Visit } from '../http/request.ts'

/** Where a choice counts: everywhere else users read what the operator has decided. */
const CHOSEN_BELOW = [OWN_PATHS.console, OWN_PATHS.account]

export function languageOf(
  { languages, cookies }: Pick<GatewayContext, 'languages' | 'cookies'>,
  { path, headers }: Pick<Visit, 'path' | 'headers'>,
): Words {
  const chosen = isChosenAt(path) ? readCookie(headers.cookie, cookies.language) : undefined
  return (chosen && languages.get(chosen)) || languages.preferred(headers['accept-language'])
}

export function isChosenAt(path: string): boolean {
  return CHOSEN_BELOW.some(own => path === own || path.startsWith(`${own}/`))
}
