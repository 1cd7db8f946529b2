// A sign-in attempt: its state, and where the provider needs it (bound state, PKCE, nonce) a short-lived record that only the
// browser that started the attempt can redeem, once.

import { hash, randomBytes } from 'node:crypto'
import { z } from 'zod'
import type { AuthenticationDemand } from '../access/conditions.ts'
import type { Settings } from '../config/settings.ts'
import type { AuthorizationRequest } from '../provider/authorization-url.ts'
import type { ProviderPlan } from '../provider/plan.ts'
import { decodeJson, encodeJson, sealValue, unsealValue } from '../session/sealing.ts'
import { isTicket, newTicket, sealingKey } from '../session/ticket.ts'
import type { Entry, Store } from '../stores/store.ts'

interface NewAttempt {
  /** The parameters for the provider. */
  readonly authorization: AuthorizationRequest
  /** The browser's secret, for its cookie; absent if there is no record. */
  readonly browser?: string
}

export interface Attempt {
  /** The only provider whose answer is accepted. */
  readonly provider?: string
  readonly verifier?: string
  readonly nonce?: string
  readonly returnPath?: string
  /** The fragment of the requested page, with its `#`; only the browser knows it. */
  readonly fragment?: string
  readonly startedAt?: number
  /** A test sign-in of the doctor: it creates no session, and its result goes to the holder of the ticket. */
  readonly testSignIn?: { readonly ticket: string; readonly show: boolean }
  /** Started in place of another whose answer came late; it is never started again itself. */
  readonly isRetry?: true
  /** Present if a signed-in user signs in again: whose session it replaces, when they had signed in, and what the rules require. */
  readonly stepUp?: {
    readonly sub: string
    readonly time: number
    readonly demands: readonly AuthenticationDemand[]
    /** Whether the provider is asked for `prompt=login`. */
    readonly isPrompted?: true
  }
}

/** What is remembered of an attempt after it was used. */
export type UsedAttempt = Pick<Attempt, 'provider' | 'returnPath' | 'fragment'> & { readonly isTestSignIn?: true }

const attemptSchema: z.ZodType<Attempt> = z.object({
  provider: z.string().exactOptional(),
  verifier: z.string().exactOptional(),
  nonce: z.string().exactOptional(),
  returnPath: z.string().exactOptional(),
  fragment: z.string().exactOptional(),
  startedAt: z.number().exactOptional(),
  testSignIn: z.object({ ticket: z.string(), show: z.boolean() }).exactOptional(),
  isRetry: z.literal(true).exactOptional(),
  stepUp: z
    .object({
      sub: z.string(),
      time: z.number(),
      demands: z.array(
        z.object({
          maxAge: z.number().optional(),
          acr: z.array(z.string()).optional(),
          amr: z.array(z.string()).optional(),
        }),
      ),
      isPrompted: z.literal(true).exactOptional(),
    })
    .exactOptional(),
})

const usedSchema: z.ZodType<UsedAttempt> = z.object({
  provider: z.string().exactOptional(),
  returnPath: z.string().exactOptional(),
  fragment: z.string().exactOptional(),
  isTestSignIn: z.literal(true).exactOptional(),
})

/** What is kept for the callback, besides the values of the protocol. */
export type AttemptFields = Omit<Attempt, 'provider' | 'verifier' | 'nonce' | 'startedAt'>

/** The page that the visitor wants. */
export type ReturnTarget = Pick<Attempt, 'returnPath' | 'fragment'>

/** The part of a provider's plan that decides how an attempt starts. */
export type AttemptPlan = Pick<ProviderPlan, 'id' | 'kind' | 'state' | 'stateCheck' | 'pkce'> &
  Partial<Pick<ProviderPlan, 'par'>>

export interface Attempts {
  /** How long an attempt, and the cookie of its browser, lives. */
  readonly seconds: number
  start(plan: AttemptPlan, browser: string | undefined, kept: AttemptFields): Promise<NewAttempt>
  /** The attempt; `undefined` if this browser did not start it, or has redeemed it. */
  find(browser: string | undefined, state: string): Promise<Attempt | undefined>
  /** Reads the attempt and removes it. */
  take(browser: string | undefined, state: string): Promise<Attempt | undefined>
  /** Called after `take`: keeps what `findUsed` returns. Never rejects, because the sign-in does not depend on it. */
  remember(browser: string, state: string, attempt: Attempt): Promise<void>
  /** An attempt that this browser has used. */
  findUsed(browser: string | undefined, state: string): Promise<UsedAttempt | undefined>
  /** Whether the attempt with this state is a retry, even for a browser that has lost its secret. */
  isRetry(state: string): Promise<boolean>
  /** Remembers that AUTO_SIGN_IN has started the attempt with this state for a client. Never rejects. */
  noteAutomatic(client: string, state: string): Promise<void>
  /**
   * Called when a client came back with this state and without the cookies that it was given. If AUTO_SIGN_IN started that attempt
   * for it, the client is remembered for a minute. Never rejects.
   */
  noteWithoutCookies(client: string, state: string): Promise<void>
  isWithoutCookies(client: string): Promise<boolean>
}

const WITHOUT_COOKIES_MS = 60_000
const STATE_SUFFIX = '_idp'
const STATE_BYTES = 32

interface AttemptsOptions {
  readonly settings: Pick<Settings, 'ATTEMPT_MINUTES'>
  readonly store: Store
  readonly now: () => number
}

export function createAttempts({ settings, store, now }: AttemptsOptions): Attempts {
  const seconds = settings.ATTEMPT_MINUTES * 60
  return {
    seconds,

    async start(plan, known, kept) {
      const state = newState(plan)
      // If the state does not have to be known, a record only keeps the page that this tab wants.
      if (!storesAttempt(plan) && !kept.returnPath && !kept.stepUp) return { authorization: { state } }
      const browser = known && isTicket(known) ? known : newTicket()
      const verifier = plan.pkce ? newTicket() : undefined
      const nonce = plan.kind === 'oidc' ? newTicket() : undefined
      const attempt: Attempt = {
        provider: plan.id,
        ...(verifier && { verifier }),
        ...(nonce && { nonce }),
        ...kept,
        startedAt: now(),
      }
      const key = attemptKey(browser, state)
      const entry = {
        value: sealValue(sealingKey(browser), encodeJson(attempt), key),
        expiresAt: now() + seconds * 1000,
        labels: [],
      }
      try {
        await store.create(key, entry)
      } catch (error) {
        // Without the record the cookie may still lead to the page.
        if (storesAttempt(plan) || kept.stepUp) throw error
        return { authorization: { state } }
      }
      if (kept.isRetry) await store.create(retryKey(state), { ...entry, value: new Uint8Array() })
      const challenge = verifier && hash('sha256', verifier, 'base64url')
      return { authorization: { state, ...(nonce && { nonce }), ...(challenge && { challenge }) }, browser }
    },

    async find(browser, state) {
      if (!browser) return undefined
      const key = attemptKey(browser, state)
      return opened(attemptSchema, browser, key, await store.read(key))
    },

    async take(browser, state) {
      if (!browser) return undefined
      const key = attemptKey(browser, state)
      return opened(attemptSchema, browser, key, await store.take(key))
    },

    async remember(browser, state, { provider, returnPath, fragment, testSignIn }) {
      const used: UsedAttempt = {
        ...(provider !== undefined && { provider }),
        ...(returnPath !== undefined && { returnPath }),
        ...(fragment !== undefined && { fragment }),
        ...(testSignIn && { isTestSignIn: true }),
      }
      const key = usedKey(browser, state)
      const value = sealValue(sealingKey(browser), encodeJson(used), key)
      await store.create(key, { value, expiresAt: now() + seconds * 1000, labels: [] }).catch(() => {})
    },

    async findUsed(browser, state) {
      if (!browser) return undefined
      const key = usedKey(browser, state)
      return opened(usedSchema, browser, key, await store.read(key))
    },

    async isRetry(state) {
      return (await store.read(retryKey(state))) !== undefined
    },

    async noteAutomatic(client, state) {
      const entry = { value: new Uint8Array(), expiresAt: now() + seconds * 1000, labels: [] }
      await store.create(automaticKey(client, state), entry).catch(() => {})
    },

    async noteWithoutCookies(client, state) {
      const expiresAt = now() + WITHOUT_COOKIES_MS
      try {
        if (!(await store.take(automaticKey(client, state)))) return
        await store.create(clientKey(client), { value: new Uint8Array(), expiresAt, labels: [] })
      } catch {
        // The sign-in does not depend on it.
      }
    },

    async isWithoutCookies(client) {
      return (await store.read(clientKey(client))) !== undefined
    },
  }
}

function opened<T>(schema: z.ZodType<T>, browser: string, key: string, entry: Entry | undefined): T | undefined {
  return entry && decodeJson(schema, unsealValue(sealingKey(browser), entry.value, key))
}

/** Whether the attempt has a record in the store. */
export function storesAttempt({ stateCheck, pkce, kind, par }: AttemptPlan): boolean {
  return stateCheck === 'bound' || pkce || kind === 'oidc' || par === 'on'
}

function newState({ state }: AttemptPlan): string {
  const random = randomBytes(STATE_BYTES)
  return state === 'plain' ? random.toString('hex') : random.toString('base64url') + STATE_SUFFIX
}

/** Whether a state has our format. With STATE_CHECK=suffix nothing else is checked: specification 3.4. */
export function looksLikeState(state: string, plans: readonly AttemptPlan[]): boolean {
  if (state.endsWith(STATE_SUFFIX)) return true
  return plans.some(plan => plan.state === 'plain') && /^[\da-f]{64}$/.test(state)
}

function attemptKey(browser: string, state: string): string {
  return `attempt:${hash('sha256', `${browser} ${state}`, 'base64url')}`
}

/** Differs from the attempt's key, so that a used attempt cannot be mistaken for an unused one. */
function usedKey(browser: string, state: string): string {
  return `used-attempt:${hash('sha256', `${browser} ${state}`, 'base64url')}`
}

function automaticKey(client: string, state: string): string {
  return `automatic-attempt:${hash('sha256', `${client} ${state}`, 'base64url')}`
}

function clientKey(client: string): string {
  return `without-cookies:${hash('sha256', client, 'base64url')}`
}

/** Depends only on the state: a browser without cookies has no secret. */
function retryKey(state: string): string {
  return `retry:${hash('sha256', state, 'base64url')}`
}
