// The provider's own session at which a user signed in, as its id_token names it: by that the provider can end one device.
import { z } from 'zod'

/** Its id means something together with the issuer only. */
export interface ProviderSession {
  readonly issuer: string
  readonly sid: string
}

const claimsWithSid = z.object({ iss: z.string(), sid: z.string().min(1).max(1000) })

export function providerSessionIn(claims: unknown): ProviderSession | undefined {
  const { success, data } = claimsWithSid.safeParse(claims)
  return success ? { issuer: data.iss, sid: data.sid } : undefined
}
