// One trip to the provider: its state, and where the settings ask for it (`STATE_CHECK=bound`, `PKCE=S256`) a record
// that only the browser that started it can take back, once and soon.
import { hash, randomBytes } from 'node:crypto'
import { z } from 'zod'
import type { Settings } from '../settings/read.ts'
import type { Store } from '../stores/store.ts'
import { decodeJson, encodeJson, sealValue, unsealValue } from './record-format.ts'
import { isTicket, newTicket, sealingKey } from './ticket.ts'

interface Started {
  readonly state: string
  readonly challenge?: string
  /** The browser's secret, for its cookie; absent if nothing has to be remembered. */
  readonly browser?: string
}

export interface Attempt {
  readonly verifier?: string
  readonly returnPath?: string
}

const attemptSchema: z.ZodType<Attempt> = z.object({
  verifier: z.string().exactOptional(),
  returnPath: z.string().exactOptional(),
})

export interface Attempts {
  /** Whether an attempt has to be known to the server before the browser leaves. */
  readonly remembered: boolean
  start(browser: string | undefined, returnPath: string | undefined): Promise<Started>
  /** What was remembered; `undefined` if this browser did not start it, or took it back before. */
  take(browser: string | undefined, state: string): Promise<Attempt | undefined>
}

export const ATTEMPT_SECONDS = 600
export const STATE_SUFFIX = '_idp'

export function createAttempts({
  store,
  settings,
  now,
}: {
  readonly store: Store
  readonly settings: Pick<Settings, 'STATE_CHECK' | 'PKCE'>
  readonly now: () => number
}): Attempts {
  const remembered = settings.STATE_CHECK === 'bound' || settings.PKCE === 'S256'
  return {
    remembered,

    async start(known, returnPath) {
      const state = randomBytes(32).toString('base64url') + STATE_SUFFIX
      if (!remembered) return { state }
      const browser = known && isTicket(known) ? known : newTicket()
      const verifier = settings.PKCE === 'S256' ? newTicket() : undefined
      const attempt: Attempt = { ...(verifier && { verifier }), ...(returnPath && { returnPath }) }
      const key = attemptKey(browser, state)
      await store.create(key, {
        value: sealValue(sealingKey(browser), encodeJson(attempt), key),
        expiresAt: now() + ATTEMPT_SECONDS * 1000,
        labels: [],
      })
      return { state, browser, ...(verifier && { challenge: hash('sha256', verifier, 'base64url') }) }
    },

    async take(browser, state) {
      if (!browser) return undefined
      const key = attemptKey(browser, state)
      const entry = await store.take(key)
      return entry && decodeJson(attemptSchema, unsealValue(sealingKey(browser), entry.value, key))
    },
  }
}

function attemptKey(browser: string, state: string): string {
  return `attempt:${hash('sha256', `${browser} ${state}`, 'base64url')}`
}
