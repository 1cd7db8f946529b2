// The marks of the presets on the buttons of the login page: drawn by us, a shape or a letter on a square in a colour by which
// users know the service. They are not the services' own logos, and add nothing to the text of the button.
import { html, raw } from 'hono/html'
import type { Html } from './layout.ts'

const BRANCH =
  '<path d="M8 8v8M8 13c5 0 8-1 8-4"/><circle cx="8" cy="6.5" r="1.5"/><circle cx="8" cy="17.5" r="1.5"/><circle cx="16" cy="7.5" r="1.5"/>'
const CLOUD = '<path d="M8 16.5a3 3 0 0 1-.3-6 4.5 4.5 0 0 1 8.7 1 2.5 2.5 0 0 1-.4 5z"/>'
const PLANE = '<path d="m6 11 12-5-5 12-2-5zM11 13l7-7"/>'
const SHIELD = '<path d="M12 5.5 17.5 8v4c0 3.5-2.5 5.5-5.5 6.5-3-1-5.5-3-5.5-6.5V8z"/>'

interface ProviderMark {
  readonly color: string
  /** White lines on the square, of 24 by 24. */
  readonly drawing: string
}

/** Keyed by the name of the preset. */
export const PROVIDER_MARKS: Readonly<Record<string, ProviderMark>> = {
  keycloak: { color: '#2e6f9e', drawing: '<path d="m12 5.5 5.6 3.2v6.5L12 18.5l-5.6-3.3V8.7z"/>' },
  casdoor: { color: '#4a3fb5', drawing: '<path d="M16 9a5 5 0 1 0 0 6"/>' },
  maxkey: { color: '#1c6fb8', drawing: '<circle cx="9" cy="14.5" r="3"/><path d="m11.2 12.3 6-6M14.5 9l2 2"/>' },
  authing: { color: '#2f5bea', drawing: '<path d="m7 17.5 5-11 5 11M9 13.5h6"/>' },
  logto: { color: '#5d34d2', drawing: '<path d="M9 6.5v11h7"/>' },
  zitadel: { color: '#2b2e6b', drawing: '<path d="M8 7h8l-8 10h8"/>' },
  authentik: { color: '#b83a10', drawing: '<path d="M6 10h12v6H6zM9.5 10v3h5v-3"/>' },
  authelia: { color: '#113a5c', drawing: `${SHIELD}<path d="m9.5 12 2 2 3.5-4"/>` },
  auth0: { color: '#22252b', drawing: SHIELD },
  okta: { color: '#0b3a8f', drawing: '<circle cx="12" cy="12" r="5"/>' },
  google: { color: '#1a66d1', drawing: '<path d="M16.2 8.7a5.3 5.3 0 1 0 1.1 3.3H12.5"/>' },
  entra: {
    color: '#0f6cbd',
    drawing: '<path d="M6.5 6.5h4.5v4.5H6.5zM13 6.5h4.5v4.5H13zM6.5 13h4.5v4.5H6.5zM13 13h4.5v4.5H13z"/>',
  },
  github: { color: '#24292f', drawing: BRANCH },
  gitlab: { color: '#b5400f', drawing: BRANCH },
  gitea: {
    color: '#4a7520',
    drawing: '<path d="M6.5 9h9v4a4 4 0 0 1-4 4h-1a4 4 0 0 1-4-4zM15.5 10h1a1.5 1.5 0 0 1 0 3.5h-1"/>',
  },
  gitee: { color: '#b3201f', drawing: '<path d="M16.5 7.5h-6a3 3 0 0 0-3 3v6h6a3 3 0 0 0 3-3v-1h-5"/>' },
  feishu: { color: '#2457d6', drawing: PLANE },
  lark: { color: '#0b7d76', drawing: PLANE },
  dingtalk: { color: '#1268d3', drawing: '<path d="m7 6.5 9 4-2.5 2.5h2L10 18.5l1.5-4.5H9z"/>' },
  wecom: {
    color: '#2266c0',
    drawing:
      '<path d="M6 11a5 4.5 0 1 1 3 4l-2.5 1 .5-2.2A4.3 4.3 0 0 1 6 11zM15.5 11.5a3.2 3.2 0 0 1 2 5.2l.3 1.6-1.8-.7a4 4 0 0 1-4-1.4"/>',
  },
  'aliyun-eiam': { color: '#c24e00', drawing: CLOUD },
  oneaccess: { color: '#b5121b', drawing: CLOUD },
  'tencent-eiam': { color: '#0a62c6', drawing: CLOUD },
  bamboocloud: { color: '#2a7542', drawing: '<path d="M9.5 6v12M14.5 6v12M8 12h3M13 9.5h3M13 15h3"/>' },
  ruoyi: { color: '#27748f', drawing: '<path d="M8.5 17.5v-11h4a3.2 3.2 0 0 1 0 6.4h-4M12.5 13l3.5 4.5"/>' },
  'sa-token': {
    color: '#4b5563',
    drawing:
      '<path d="M15.5 8.3c-.8-1-2-1.5-3.5-1.5-2 0-3.4 1-3.4 2.5 0 3.5 7 1.8 7 5.2 0 1.6-1.5 2.7-3.6 2.7-1.5 0-2.8-.5-3.7-1.6"/>',
  },
}

/** `undefined` for a provider without a mark, whose button shows the first letter of its name. */
export function providerMark(preset: string): Html | undefined {
  const mark = Object.hasOwn(PROVIDER_MARKS, preset) ? PROVIDER_MARKS[preset] : undefined
  if (!mark) return undefined
  return html`<svg class="provider-mark" viewBox="0 0 24 24" width="28" height="28" aria-hidden="true" focusable="false"><rect width="24" height="24" rx="6" fill="${mark.color}"/><g fill="none" stroke="#fff" stroke-width="1.75" stroke-linecap="round" stroke-linejoin="round">${raw(mark.drawing)}</g></svg>`
}
