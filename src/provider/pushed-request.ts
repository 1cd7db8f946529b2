// Pushed authorization requests (RFC 9126): the parameters of an attempt go from server to server, and the client authenticates.
// The browser gets a reference to them and cannot change them.

import { z } from 'zod'
import { phrase, phrasedError } from '../text/text.ts'
import { type AuthorizationRequest, buildAuthorizationUrl } from './authorization-url.ts'
import { requestAsClient } from './client-auth.ts'
import type { ProviderConnection } from './connection.ts'
import { endpointOf, type Metadata } from './discovery.ts'
import { readAnswer } from './fetch.ts'
import type { ProviderPlan } from './plan.ts'
import { descriptionIn, errorCodeIn, RefusalError, withCause } from './refusal.ts'

/**
 * The endpoint to push requests to; `undefined` if they are not pushed. Throws if they must be and the provider has no such
 * endpoint.
 */
export function pushEndpoint({ par }: Pick<ProviderPlan, 'par'>, known: Metadata): string | undefined {
  const isWanted = par === 'on' || (par === 'auto' && known.document?.demandsPushedRequests)
  if (!isWanted) return undefined
  const { par: endpoint } = known.endpoints
  if (endpoint === undefined) throw phrasedError('bad_settings', phrase('no_push_endpoint'))
  return endpoint
}

/** RFC 3986: a URI has no spaces and no control characters. */
const MAX_REQUEST_URI_LENGTH = 4096
const pushed = z.object({
  request_uri: z
    .string()
    .max(MAX_REQUEST_URI_LENGTH)
    .regex(/^[a-z][a-z\d+.-]*:[\x21-\x7e]+$/i),
  /** Seconds. Each reference is for one attempt, whose browser uses it immediately. */
  expires_in: z.number().positive(),
})

/** Pushes the attempt, and returns the URL at which the browser signs in. It never falls back to a request that is not pushed. */
export async function pushedAuthorizationUrl(
  connection: ProviderConnection,
  known: Metadata,
  endpoint: string,
  attempt: AuthorizationRequest,
): Promise<string> {
  const { plan, redirectUri } = connection
  // The same parameters as in the address of an attempt that is not pushed.
  const { searchParams } = new URL(buildAuthorizationUrl(new URL(endpoint).origin, plan, redirectUri, attempt))
  const response = await requestAsClient(connection, known, endpoint, Object.fromEntries(searchParams))
  const { status, body } = await readAnswer(response)
  if (status !== 201) throw withCause(refusalOf(status, body), plan, known)
  const { data, error } = pushed.safeParse(body)
  if (!data) {
    const fields = error.issues.map(({ path }) => path.join('.')).filter(Boolean)
    const unusable = fields.length > 0 ? [...new Set(fields)].join(', ') : phrase('the_whole')
    const seen = phrase('push_unusable', { fields: unusable })
    throw new RefusalError('provider_answer', seen, status, undefined, { remedy: phrase('check_push') })
  }
  const url = new URL(endpointOf(known, 'authorization'))
  url.searchParams.set(plan.authorization.names.client_id || 'client_id', plan.clientId)
  url.searchParams.set('request_uri', data.request_uri)
  return url.href + plan.authorization.fragment
}

/** 201 is the only success (RFC 9126, 2.2). */
function refusalOf(status: number, body: unknown): RefusalError {
  const error = errorCodeIn(body)
  const seen = error ? phrase('push_answered_with', { status, error }) : phrase('push_answered', { status })
  return new RefusalError('provider_answer', seen, status, error, descriptionIn(body))
}
