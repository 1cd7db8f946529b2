// A page of the console whose facts are in a store that is away.
import { html } from 'hono/html'
import type { Words } from '../words/words.ts'
import { consoleFrame, type Viewer } from './console-frame.ts'

export function storeAwayPage(words: Words, viewer: Viewer, section: 'sessions'): string {
  return consoleFrame(words, {
    section,
    viewer,
    body: html`<div class="notice bad" role="alert"><p>${words.t('console.store_away')}</p></div>`,
  })
}
