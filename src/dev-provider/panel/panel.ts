// The control panel: GET / shows how the provider behaves and who is signed in, POST /panel changes its behaviour.

import type { Context } from 'hono'
import type { WordsOf } from '../dev-words.ts'
import { readForm } from '../fields.ts'
import type { Grants } from '../grants.ts'
import { senderOf } from '../origin.ts'
import { messagePage } from '../pages/message-page.ts'
import { panelPage } from '../pages/panel-page.ts'
import { type Misbehaviour, readChange } from './misbehaviour.ts'

export function panelRoute(grants: Grants, misbehaviour: Misbehaviour, wordsOf: WordsOf, now: () => number) {
  return (c: Context) => c.html(panelPage(wordsOf(c), misbehaviour.current(), grants.sessions(now())))
}

export function panelChangeRoute(misbehaviour: Misbehaviour, wordsOf: WordsOf) {
  return async (c: Context): Promise<Response> => {
    const words = wordsOf(c)
    if (senderOf(c.req.raw) !== 'own page') return c.html(messagePage(words, words.panelOnly), 403)
    const form = await readForm(c.req.raw)
    if (form?.has('reset')) {
      misbehaviour.reset()
      return c.redirect('/', 303)
    }
    const change = form && readChange(form)
    if (!change) return c.html(messagePage(words, words.badValue), 400)
    misbehaviour.change(change)
    return c.redirect('/', 303)
  }
}
