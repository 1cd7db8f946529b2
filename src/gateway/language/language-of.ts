// The language of an answer: what this browser has chosen on one of our pages, else as PAGE_LANGUAGE says.
import type { Words } from '../../pages/words/words.ts'
import type { GatewayContext } from '../context.ts'
import { readCookie } from '../http/cookies.ts'
import type { Visit } from '../http/request.ts'

export function languageOf(
  { languages, cookies }: Pick<GatewayContext, 'languages' | 'cookies'>,
  { headers }: Pick<Visit, 'headers'>,
): Words {
  const chosen = readCookie(headers.cookie, cookies.language)
  return (chosen && languages.get(chosen)) || languages.preferred(headers['accept-language'])
}
