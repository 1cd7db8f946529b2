// The development provider: the client that Menshen is to it, and the users that the configuration gives it.
import { z } from 'zod'

/** The client of Menshen at the development provider. */
export const DEVELOPMENT_CLIENT = { CLIENT_ID: 'menshen-development', CLIENT_SECRET: 'development-only' }

export interface DevProviderConfig {
  readonly users?: readonly DevUserConfig[] | undefined
}

/** The fields of specification 5.4, and groups. A field that is left out is empty. */
export interface DevUserConfig {
  readonly username: string
  /** Otherwise made of the username, always the same. */
  readonly sub?: string | undefined
  readonly nickname?: string | undefined
  readonly email?: string | undefined
  readonly phone_number?: string | undefined
  readonly ou_id?: string | undefined
  readonly ou_name?: string | undefined
  readonly groups?: readonly string[] | undefined
}

const MOST_USERS = 100
const MOST_GROUPS = 50

const text = z.string('expected text').max(200, 'expected at most 200 characters')
const name = text.regex(/^\S(.*\S)?$/u, 'expected a name, without spaces around it')

const userShape = z.strictObject({
  username: name,
  sub: name.optional(),
  nickname: text.optional(),
  email: text.optional(),
  phone_number: text.optional(),
  ou_id: text.optional(),
  ou_name: text.optional(),
  groups: z
    .array(name, 'expected a list of names')
    .max(MOST_GROUPS, `expected at most ${MOST_GROUPS} groups`)
    .optional(),
})

export const devProviderShape = z.strictObject({
  users: z
    .array(userShape, "expected a list of users, for example [{ username: 'ann', groups: ['finance'] }]")
    .min(1, 'expected at least one user')
    .max(MOST_USERS, `expected at most ${MOST_USERS} users`)
    .superRefine(refuseTwins)
    .optional(),
})

/** A click on a card says no more than the username, and two people with one `sub` are one. */
function refuseTwins(users: readonly DevUserConfig[], context: z.RefinementCtx): void {
  const seen = { username: new Set<string>(), sub: new Set<string>() }
  for (const [n, user] of users.entries()) {
    const own = { username: user.username, sub: subOf(user) }
    for (const field of ['username', 'sub'] as const) {
      if (seen[field].has(own[field]))
        context.addIssue({
          code: 'custom',
          path: [n, field],
          message: 'another user has the same value; expected a different one',
        })
      seen[field].add(own[field])
    }
  }
}

export function subOf({ sub, username }: DevUserConfig): string {
  return sub ?? `dev-${username}`
}
