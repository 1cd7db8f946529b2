// What the next page says of sessions that were just ended: how many and, in the console, whose.
import { z } from 'zod'
import { type CookieNames, readCookie, setCookie } from '../http/cookies.ts'

export interface Ended {
  readonly ended: number
  readonly user?: string
}

const SHOWN_WITHIN_SECONDS = 60
/** A cookie has its bounds, and a name may have none. */
const LONGEST_NAME = 100

const endedSchema: z.ZodType<Ended> = z.object({ ended: z.int().min(0), user: z.string().exactOptional() })

export function endedCookie({ ended: name }: CookieNames, { ended, user }: Ended): string {
  const said = user === undefined ? { ended } : { ended, user: user.slice(0, LONGEST_NAME).toWellFormed() }
  return setCookie(name, Buffer.from(JSON.stringify(said)).toString('base64url'), SHOWN_WITHIN_SECONDS)
}

/** `undefined` if nothing was ended, or somebody else made the cookie. */
export function readEnded({ ended: name }: CookieNames, header: string | undefined): Ended | undefined {
  const cookie = readCookie(header, name)
  if (cookie === undefined) return undefined
  try {
    return endedSchema.safeParse(JSON.parse(Buffer.from(cookie, 'base64url').toString())).data
  } catch {
    return undefined
  }
}
