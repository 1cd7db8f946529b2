// The headers that tell an application who is there. Every one is always set, so that a forged one cannot survive.
import type { Opened } from '../session/opened.ts'

export type IdentityHeaders = Readonly<Record<string, string>>

export function identityHeaders({ session }: Opened): IdentityHeaders {
  const { userInfo, userRole } = session
  return {
    'x-forwarded-user': printable(userInfo.username),
    'x-forwarded-email': printable(userInfo.email),
    'x-forwarded-preferred-username': encodeURIComponent(userInfo.nickname.toWellFormed()),
    'x-forwarded-groups': userRole,
  }
}

/** What a header cannot carry is percent-encoded. */
function printable(text: string): string {
  return text.toWellFormed().replace(/[^\x21-\x7e]/gu, encodeURIComponent)
}
