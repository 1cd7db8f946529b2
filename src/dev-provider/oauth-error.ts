// The JSON in which this provider refuses a call from a server (RFC 6749, section 5.2).

import type { Context } from 'hono'

const STATUS = {
  invalid_request: 400,
  invalid_grant: 400,
  invalid_scope: 400,
  unsupported_grant_type: 400,
  invalid_client: 401,
  invalid_token: 401,
} as const

export function oauthError(c: Context, error: keyof typeof STATUS, description: string): Response {
  return c.json({ error, error_description: description }, STATUS[error])
}
