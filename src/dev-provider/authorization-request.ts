// Judging an authorization request: who asks decides where the answer may go, so that comes first.

import type { RegisteredClient } from './client.ts'
import { readFields } from './fields.ts'

type AuthorizationRequest =
  /** Sent by nobody we know, or to be answered to an address we do not know: it must never be redirected. */
  | { readonly verdict: 'untrusted'; readonly reason: 'badClientId' | 'badRedirectUri' }
  | {
      readonly verdict: 'refused'
      readonly error: string
      readonly description: string
      readonly state: string | undefined
    }
  | { readonly verdict: 'accepted'; readonly challenge: string | undefined; readonly state: string | undefined }

export function judgeAuthorizationRequest(query: URLSearchParams, client: RegisteredClient): AuthorizationRequest {
  if (single(query, 'client_id') !== client.id) {
    return { verdict: 'untrusted', reason: 'badClientId' }
  }
  if (single(query, 'redirect_uri') !== client.redirectUri) {
    return { verdict: 'untrusted', reason: 'badRedirectUri' }
  }

  const state = single(query, 'state')
  const refused = (error: string, description: string) => ({ verdict: 'refused', error, description, state }) as const

  const fields = readFields(query)
  if (!fields) return refused('invalid_request', 'a parameter is repeated')
  const responseType = fields.get('response_type')
  if (!responseType) return refused('invalid_request', 'response_type is missing')
  if (responseType !== 'code') return refused('unsupported_response_type', 'response_type must be code')
  if (fields.get('scope') !== 'read') return refused('invalid_scope', 'scope must be read')

  const challenge = fields.get('code_challenge')
  const method = fields.get('code_challenge_method')
  if (!challenge && !method) return { verdict: 'accepted', challenge, state }
  if (method !== 'S256') return refused('invalid_request', 'code_challenge_method must be S256')
  if (!challenge || !/^[\w-]{43}$/.test(challenge)) {
    return refused('invalid_request', 'code_challenge must be 43 characters of base64url')
  }
  return { verdict: 'accepted', challenge, state }
}

function single(query: URLSearchParams, name: string): string | undefined {
  const [value, ...more] = query.getAll(name)
  return more.length === 0 ? value || undefined : undefined
}
