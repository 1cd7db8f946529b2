// The development provider: the client that Menshen is to it, and the users that the configuration gives it.
import { z } from 'zod'
import { phrase } from '../text/text.ts'
import { issueText } from './issue-text.ts'

/** The client of Menshen at the development provider. */
export const DEVELOPMENT_CLIENT = { CLIENT_ID: 'menshen-development', CLIENT_SECRET: 'development-only' }

export interface DevProviderConfig {
  /** The users that can sign in. */
  readonly users?: readonly DevUserConfig[] | undefined
}

/** The fields of specification 5.4, and groups. A field that is left out is empty. */
export interface DevUserConfig {
  /** The name that the user signs in with. */
  readonly username: string
  /** By default derived from the username, always the same. */
  readonly sub?: string | undefined
  /** The display name. */
  readonly nickname?: string | undefined
  /** The e-mail address. */
  readonly email?: string | undefined
  /** The phone number. */
  readonly phone_number?: string | undefined
  /** The id of the user’s organization. */
  readonly ou_id?: string | undefined
  /** The name of the user’s organization. */
  readonly ou_name?: string | undefined
  /** The groups of the user. */
  readonly groups?: readonly string[] | undefined
}

const MAX_USERS = 100
const MAX_GROUPS = 50

const text = z
  .string(issueText(phrase('config.expected_text')))
  .max(200, issueText(phrase('config.expected_at_most', { limit: 200 })))
const name = text.regex(/^\S(.*\S)?$/u, issueText(phrase('config.name_without_spaces')))

const userShape = z.strictObject({
  username: name,
  sub: name.optional(),
  nickname: text.optional(),
  email: text.optional(),
  phone_number: text.optional(),
  ou_id: text.optional(),
  ou_name: text.optional(),
  groups: z
    .array(name, issueText(phrase('config.name_list')))
    .max(MAX_GROUPS, issueText(phrase('config.at_most_groups', { limit: MAX_GROUPS })))
    .optional(),
})

export const devProviderShape = z.strictObject({
  users: z
    .array(userShape, issueText(phrase('config.user_list', { example: "[{ username: 'ann', groups: ['finance'] }]" })))
    .min(1, issueText(phrase('config.at_least_one_user')))
    .max(MAX_USERS, issueText(phrase('config.at_most_users', { limit: MAX_USERS })))
    .superRefine(refuseDuplicateUsers)
    .optional(),
})

/** A click on a card sends only the username, and two users with one `sub` are the same user. */
function refuseDuplicateUsers(users: readonly DevUserConfig[], context: z.RefinementCtx): void {
  const seen = { username: new Set<string>(), sub: new Set<string>() }
  for (const [n, user] of users.entries()) {
    const own = { username: user.username, sub: subOf(user) }
    for (const field of ['username', 'sub'] as const) {
      if (seen[field].has(own[field]))
        context.addIssue({
          code: 'custom',
          path: [n, field],
          message: issueText(phrase('config.same_user')),
        })
      seen[field].add(own[field])
    }
  }
}

export function subOf({ sub, username }: DevUserConfig): string {
  return sub ?? `dev-${username}`
}
