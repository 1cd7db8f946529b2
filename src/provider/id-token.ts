// Reads the provider's session id from an ID token that came with the tokens, if its signature, issuer and audience hold.
import { errors, type JWTVerifyGetKey, jwtVerify } from 'jose'
import { z } from 'zod'
import { MenshenError } from '../errors.ts'
import type { Report } from '../events.ts'
import type { ProviderSession } from './answers.ts'

/** What the clocks of two machines may differ by. */
const CLOCK_TOLERANCE_SECONDS = 60

const claimsWithSid = z.object({ sid: z.string().min(1).max(1000) })

export interface IdTokenReader {
  readonly publicKeys: JWTVerifyGetKey
  readonly issuer: string
  readonly clientId: string
  readonly now: () => number
  readonly report: Report
}

/** Nobody is kept out for want of a session id: without one, the provider can only end all sessions of a user. */
export async function readProviderSession(
  reader: IdTokenReader,
  idToken: string,
): Promise<ProviderSession | undefined> {
  const { publicKeys, issuer, clientId, now, report } = reader
  try {
    const { payload } = await jwtVerify(idToken, publicKeys, {
      issuer,
      audience: clientId,
      requiredClaims: ['exp'],
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
      currentDate: new Date(now()),
    })
    const claims = claimsWithSid.safeParse(payload)
    return claims.success ? { issuer, sid: claims.data.sid } : undefined
  } catch (error) {
    const hasCode = error instanceof errors.JOSEError || error instanceof MenshenError
    report('id_token_unusable', { reason: hasCode ? error.code : 'unreadable' })
    return undefined
  }
}
