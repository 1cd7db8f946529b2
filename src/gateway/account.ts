// GET /_menshen/account: who is signed in, for users of applications that do not say it themselves.
import { accountPage } from '../pages/account.ts'
import type { Known } from './admission.ts'
import { pageAnswer } from './answers.ts'
import type { House } from './house.ts'
import type { Visit } from './request.ts'

export async function showAccount(house: House, _visit: Visit, { opened, cookies }: Known): Promise<Response> {
  return pageAnswer(house, accountPage(house.settings.APP_NAME, opened), { cookies })
}
