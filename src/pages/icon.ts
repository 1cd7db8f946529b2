// Small drawings in the colour of the text beside them, which says the same in words.
import { html, raw } from 'hono/html'

const DRAWINGS = {
  desktop: '<rect x="3" y="4" width="18" height="12" rx="2"/><path d="M8 20h8M12 16v4"/>',
  phone: '<rect x="7" y="2.5" width="10" height="19" rx="2"/><path d="M11 18.5h2"/>',
  tablet: '<rect x="4.5" y="2.5" width="15" height="19" rx="2"/><path d="M11 18.5h2"/>',
  program: '<rect x="3" y="4" width="18" height="16" rx="2"/><path d="m7 9 3 3-3 3M13 15h4"/>',
  person: '<circle cx="12" cy="8" r="4"/><path d="M4 20.5c1.5-4 4.5-5.5 8-5.5s6.5 1.5 8 5.5"/>',
  more: '<circle cx="5" cy="12" r="1"/><circle cx="12" cy="12" r="1"/><circle cx="19" cy="12" r="1"/>',
  search: '<circle cx="11" cy="11" r="6.5"/><path d="m16 16 4.5 4.5"/>',
  success: '<circle cx="12" cy="12" r="9"/><path d="m8 12.5 2.75 2.75L16 9.5"/>',
  failure: '<circle cx="12" cy="12" r="9"/><path d="m9 9 6 6M15 9l-6 6"/>',
  warning: '<path d="M12 3.5 2.5 20h19z"/><path d="M12 10v4.5M12 17.25v.25"/>',
  info: '<circle cx="12" cy="12" r="9"/><path d="M12 11v5M12 7.75V8"/>',
  copy: '<rect x="9" y="9" width="11" height="11" rx="2"/><path d="M5 15V6a2 2 0 0 1 2-2h8"/>',
} as const

export type IconName = keyof typeof DRAWINGS

export function icon(name: IconName) {
  return html`<svg class="icon" viewBox="0 0 24 24" width="18" height="18" aria-hidden="true" focusable="false">${raw(DRAWINGS[name])}</svg>`
}

/** The kind of device, judged by the User-Agent of its browser. */
export function deviceIcon(userAgent = '') {
  if (/iPad|Tablet|PlayBook|Silk|Android(?!.*Mobile)/i.test(userAgent)) return icon('tablet')
  if (/Mobi|iPhone|iPod|Android|HarmonyOS|Windows Phone/i.test(userAgent)) return icon('phone')
  return icon(/Mozilla\/|Opera\//.test(userAgent) ? 'desktop' : 'program')
}
