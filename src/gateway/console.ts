// The developer's console: the list of sessions, and ending one.
import { BlockList } from 'node:net'
import { SETTINGS } from '../config.ts'
import { consolePage } from '../pages/console.ts'
import { hidePassword } from '../secret.ts'
import type { Settings } from '../settings.ts'
import type { Known } from './admission.ts'
import { noticeAnswer, pageAnswer, redirectAnswer } from './answers.ts'
import type { House } from './house.ts'
import { isFromOwnOrigin, type Visit } from './request.ts'

const PAGE_SIZE = 50

export async function showConsole(house: House, visit: Visit, { opened, cookies }: Known): Promise<Response> {
  const query = new URLSearchParams(visit.search)
  const username = query.get('username')?.trim() ?? ''
  const after = query.get('after')
  const { sessions, next } = await house.sessions.list({
    limit: PAGE_SIZE,
    ...(username && { username }),
    ...(after && { after }),
  })
  const view = {
    appName: house.settings.APP_NAME,
    sessions,
    ownKey: opened.key,
    username,
    next,
    warnings: warningsOf(house.settings),
    settings: shownSettings(house.settings),
  }
  return pageAnswer(house, consolePage(view), { cookies })
}

export async function endSession(
  house: House,
  visit: Visit,
  { opened, cookies }: Known,
  form: URLSearchParams,
): Promise<Response> {
  if (!isFromOwnOrigin(visit, house.settings.BASE_URL)) return noticeAnswer(house, 'foreign', { cookies })
  const key = form.get('session') ?? ''
  // Only what looks like a session's key: leases and attempts live in the same store.
  if (/^[\w-]{43}$/.test(key)) {
    const ended = form.has('all') ? await house.sessions.endAllLike(key) : Number(await house.sessions.end(key))
    house.log.info({ session: key, ended, by: opened.session.userInfo.username }, 'ended from the console')
  }
  return redirectAnswer(house, visit.method, '/_menshen/console', cookies)
}

function warningsOf({ STATE_CHECK, PKCE }: Settings): string[] {
  return STATE_CHECK === 'suffix' && PKCE === 'off'
    ? [
        '登录状态参数只检查后缀（STATE_CHECK=suffix）：别的网站可以让访客在不知情时以他人身份登录。设置 STATE_CHECK=bound 可以防止。',
      ]
    : []
}

function shownSettings(settings: Settings): [string, string][] {
  return (Object.keys(SETTINGS) as (keyof Settings)[]).map(name => [name, shown(settings[name])])
}

function shown(value: Settings[keyof Settings]): string {
  if (value instanceof BlockList) return value.rules.join(', ')
  return hidePassword(String(value ?? '—'))
}
