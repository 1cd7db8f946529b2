// Trial sign-ins: the doctor announces one, whoever opens its address begins it, once, and what came of it goes back to
// the doctor and to nobody else. All that the store holds of it is sealed with the ticket in that address.
import { z } from 'zod'
import { decodeJson, encodeJson, sealValue, unsealValue } from '../../session/record-format.ts'
import { isTicket, newTicket, recordKey, sealingKey } from '../../session/ticket.ts'
import type { Store } from '../../stores/store.ts'
import { type Mapping, mappingSchema } from './mapping.ts'

export interface Trial {
  readonly provider: string
  /** Whether values may be shown, and not only names. */
  readonly show: boolean
}

export interface Trials {
  /** The ticket that begins it. */
  announce(trial: Trial): Promise<string>
  /** `undefined` if none was announced, or it has begun already. */
  begin(ticket: string): Promise<Trial | undefined>
  /** Whether somebody has opened its address. */
  isBegun(ticket: string): Promise<boolean>
  finish(ticket: string, mapping: Mapping): Promise<void>
  /** What came of it, once; `undefined` while nothing has. */
  result(ticket: string): Promise<Mapping | undefined>
  /** Nobody can begin it any more. */
  withdraw(ticket: string): Promise<void>
}

export const TRIAL_SECONDS = 600

const trialSchema: z.ZodType<Trial> = z.object({ provider: z.string(), show: z.boolean() })

export function createTrials({ store, now }: { readonly store: Store; readonly now: () => number }): Trials {
  async function put(place: string, ticket: string, value: object): Promise<void> {
    const key = keyOf(place, ticket)
    const sealed = sealValue(sealingKey(ticket), encodeJson(value), key)
    await store.create(key, { value: sealed, expiresAt: now() + TRIAL_SECONDS * 1000, labels: [] })
  }

  async function take<T>(place: string, ticket: string, schema: z.ZodType<T>): Promise<T | undefined> {
    const key = keyOf(place, ticket)
    const entry = isTicket(ticket) ? await store.take(key) : undefined
    return entry && decodeJson(schema, unsealValue(sealingKey(ticket), entry.value, key))
  }

  return {
    async announce(trial) {
      const ticket = newTicket()
      await put('trial', ticket, trial)
      return ticket
    },
    begin: ticket => take('trial', ticket, trialSchema),
    isBegun: async ticket => (await store.read(keyOf('trial', ticket))) === undefined,
    finish: (ticket, mapping) => put('trial-result', ticket, mapping),
    result: ticket => take('trial-result', ticket, mappingSchema),
    async withdraw(ticket) {
      await store.remove(keyOf('trial', ticket))
    },
  }
}

function keyOf(place: string, ticket: string): string {
  return `${place}:${recordKey(ticket)}`
}
