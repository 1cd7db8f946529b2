// The tile of an application. Most tiles are the same for all users and in all languages, and are rendered once.

import { html, raw } from 'hono/html'
import type { Html } from '../pages/layout.ts'
import type { Icon } from './icon.ts'

export interface TileSource {
  readonly title: string
  /** Empty without one. */
  readonly description: string
  /** The address of its start. */
  readonly url: string
  readonly icon: Icon
  /** What the filter compares, see applications.ts. */
  readonly text: string
}

interface TileState {
  /** Why it cannot be opened now. */
  readonly reason?: string | undefined
  /** The filter excludes it. */
  readonly isHidden?: boolean
}

/** The reason takes the place of the description. */
export function tile({ title, description, url, icon, text }: TileSource, { reason, isHidden }: TileState = {}): Html {
  const below = reason === undefined ? description : reason
  return html`<li data-text="${text}"${isHidden ? html` hidden` : ''}><a href="${url}"${reason === undefined ? '' : html` class="unavailable"`}>${icon.tile === undefined ? html`<img src="${icon.path}" alt="" width="48" height="48" loading="lazy">` : raw(icon.tile)}
<span class="about"><strong>${title}</strong>
${below ? html`<span class="${reason === undefined ? 'description' : 'reason'}">${below}</span>` : ''}</span></a></li>
`
}
