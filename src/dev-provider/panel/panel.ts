// The control panel: GET / shows how the provider behaves and who is signed in, POST /panel changes its behaviour.

import type { Context } from 'hono'
import { readForm } from '../fields.ts'
import type { Grants } from '../grants.ts'
import { senderOf } from '../origin.ts'
import { messagePage } from '../pages/message-page.ts'
import { panelPage } from '../pages/panel-page.ts'
import { type Misbehaviour, readChange } from './misbehaviour.ts'

export function panelRoute(grants: Grants, misbehaviour: Misbehaviour, now: () => number) {
  return (c: Context) => c.html(panelPage(misbehaviour.current(), grants.sessions(now())))
}

export function panelChangeRoute(misbehaviour: Misbehaviour) {
  return async (c: Context): Promise<Response> => {
    if (senderOf(c.req.raw) !== 'own page') return c.html(messagePage('已拒绝', '只能从控制面板修改。'), 403)
    const form = await readForm(c.req.raw)
    if (form?.has('reset')) {
      misbehaviour.reset()
      return c.redirect('/', 303)
    }
    const change = form && readChange(form)
    if (!change) return c.html(messagePage('没有修改', '填写的值不在允许的范围内。'), 400)
    misbehaviour.change(change)
    return c.redirect('/', 303)
  }
}
