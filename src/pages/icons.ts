// Small drawings of our own, in the colour of the text beside them. They say nothing that the text does not.
import { html } from 'hono/html'
import type { DeviceKind } from './device-name.ts'

const computer = html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><rect x="3" y="4" width="18" height="12" rx="2"/><path d="M9 20h6M12 16v4"/></svg>`
const phone = html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><rect x="7" y="3" width="10" height="18" rx="2"/><path d="M11 18h2"/></svg>`
const tablet = html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><rect x="4" y="3" width="16" height="18" rx="2"/><path d="M11 18h2"/></svg>`
const unknown = html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><rect x="3" y="4" width="18" height="16" rx="2"/><path d="M7 9l3 3-3 3M13 15h4"/></svg>`

export const DEVICE_ICONS = { computer, phone, tablet, unknown } as const satisfies Record<DeviceKind, unknown>

const badge = html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><circle cx="12" cy="8" r="4"/><path d="M4 20c1-4 4-6 8-6s7 2 8 6"/></svg>`

/** In front of a provider's name: its first letter, which keeps several apart; without a name, somebody. */
export function providerMark(name: string | undefined) {
  const [initial] = name?.trim() ?? ''
  return initial === undefined
    ? badge
    : html`<span class="initial" aria-hidden="true" data-initial="${initial.toUpperCase()}"></span>`
}
