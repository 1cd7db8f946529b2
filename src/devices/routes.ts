// POST /_menshen/dbsc/register and /_menshen/dbsc/refresh: a browser binds its session to a key that does not leave the device,
// and proves every ten minutes that it still has the key (W3C, Device Bound Session Credentials).
//
// A proof is a JWT that the key signs over a challenge. Only the answer to the sign-in contains the first challenge: a thief
// who has copied the ticket cannot register another key.

import { decodeJwt, decodeProtectedHeader, importJWK, jwtVerify } from 'jose'
import { z } from 'zod'
import { foreignAnswer, jsonAnswer, type OwnAnswer, tooManyAnswer } from '../http/answers.ts'
import { readCookie, setCookie } from '../http/cookies.ts'
import type { GatewayRequest } from '../http/request.ts'
import type { RouteTable } from '../http/route-table.ts'
import { requestFields } from '../observe/observed-request.ts'
import { OWN_PATHS } from '../paths.ts'
import type { LoadedSession } from '../session/cache.ts'
import type { SignInContext } from '../sign-in/context.ts'
import { isFromOwnOrigin } from '../util/fetch-metadata.ts'
import {
  BOUND_SECONDS,
  type BoundDevice,
  bindDevice,
  type DeviceProof,
  isBound,
  mayWait,
  type PublicPoint,
  readRegistrationChallenge,
  renewDevice,
} from './binding.ts'
import { offersDevices } from './devices.ts'

/** The cookie's attributes, as `setCookie` writes them, without its lifetime: they tell the browser whether it has the cookie. */
const COOKIE_ATTRIBUTES = 'Path=/; HttpOnly; SameSite=Lax; Secure'

/** A browser's proof has about 500 characters. */
const MAX_PROOF_LENGTH = 4096
/** The browser must send each coordinate as 32 bytes in base64url. */
const COORDINATE = /^[\w-]{43}$/

/** What can be wrong with a proof. */
export const PROOF_PROBLEMS = ['malformed', 'algorithm', 'key', 'signature', 'challenge', 'late'] as const

class RefusedProof {
  readonly reason: (typeof PROOF_PROBLEMS)[number]

  constructor(reason: RefusedProof['reason']) {
    this.reason = reason
  }
}

async function registerDevice(context: SignInContext, request: GatewayRequest): Promise<OwnAnswer> {
  const { auth, now } = context
  if (!offersDevices(context.settings)) return notFound(context, request)
  const found = await findSession(context, request, ticketIn(proofIn(request)))
  if ('outcome' in found) return found
  const { ticket, loaded } = found
  const refuse = async (reason: RefusedProof['reason']) => {
    if (!(await auth.rateLimit.admits('device', request))) return tooManyAnswer(context.pages, request)
    observeRefused(context, request, loaded, 'register', reason)
    const status = reason === 'challenge' || reason === 'late' ? 403 : 400
    return problem(context, request, status, status === 403 ? 'proof_refused' : 'bad_request')
  }
  if (!mayWait(loaded.signedInAt, now())) return refuse('late')
  const signed = await readRegistration(proofIn(request), now())
  if (signed instanceof RefusedProof) return refuse(signed.reason)
  let bound: BoundDevice | undefined
  const latest = await auth.sessions.changeDevice(ticket, loaded, device => {
    bound = bindDevice(device, signed.point, readRegistrationChallenge(signed.challenge).challenge, now())
    return bound
  })
  if (!latest) return unauthenticated(context, request)
  if (!bound) return refuse('challenge')
  context.observe.report('device_bound', requestFields(request, latest))
  return sessionAnswer(context, bound)
}

async function refreshDevice(context: SignInContext, request: GatewayRequest): Promise<OwnAnswer> {
  const { auth, now } = context
  const found = await findSession(context, request)
  if ('outcome' in found) return found
  const { ticket, loaded } = found
  const { device } = loaded.session
  // This answer makes a browser forget the key of a former session.
  if (!isBound(device) || unquoted(request.headers['sec-secure-session-id']) !== device.id)
    return notFound(context, request)
  const proof = proofIn(request)
  if (proof === undefined) return challengeAnswer(context, request, device)
  const signed = await readProof(proof, device, now())
  let renewed: BoundDevice | undefined
  let latest: LoadedSession | undefined = loaded
  if (!(signed instanceof RefusedProof)) {
    latest = await auth.sessions.changeDevice(ticket, loaded, device => {
      renewed = isBound(device) ? renewDevice(device, signed, now()) : undefined
      return renewed
    })
    if (!latest) return unauthenticated(context, request)
  }
  if (renewed) return sessionAnswer(context, renewed)
  // Counted only now: a browser whose valid proof gets 429, because of others at its address, forgets its key.
  if (!(await auth.rateLimit.admits('device', request))) return tooManyAnswer(context.pages, request)
  // An old challenge does not mean theft: proofs can be late. The session goes on, and the browser signs the newest challenge.
  observeRefused(context, request, latest, 'refresh', signed instanceof RefusedProof ? signed.reason : 'challenge')
  const current = latest.session.device
  return challengeAnswer(context, request, isBound(current) ? current : device)
}

/** The session of the ticket. The second cookie is not required: it has expired when the browser comes here. */
async function findSession(
  context: SignInContext,
  request: GatewayRequest,
  ticketOfProof?: string,
): Promise<{ readonly ticket: string; readonly loaded: LoadedSession } | OwnAnswer> {
  const { settings, auth, pages } = context
  if (!isFromOwnOrigin(request, settings.BASE_URL)) return foreignAnswer(context, request)
  const ticket = readCookie(request.headers.cookie, auth.cookies.session) ?? ticketOfProof
  if (!ticket) return unauthenticated(context, request)
  const loaded = await auth.sessions.get(ticket)
  if (loaded) return { ticket, loaded }
  if (!(await auth.rateLimit.admits('ticket', request))) return tooManyAnswer(pages, request)
  return unauthenticated(context, request)
}

// Proofs.

/** `undefined` if the request has none. A string in a structured field has quotes. */
function proofIn({ headers }: GatewayRequest): string | undefined {
  return unquoted(headers['secure-session-response'])
}

function unquoted(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value.replace(/^"(.*)"$/, '$1') : undefined
}

const pointSchema = z.object({
  kty: z.literal('EC'),
  crv: z.literal('P-256'),
  x: z.string().regex(COORDINATE),
  y: z.string().regex(COORDINATE),
  // The private part of a key: a key that others know as well binds nothing.
  d: z.undefined().optional(),
})

/** The first proof contains the key, which must have signed that proof. */
async function readRegistration(
  proof: string | undefined,
  now: number,
): Promise<(DeviceProof & { readonly point: PublicPoint }) | RefusedProof> {
  const header = headerOf(proof)
  if (proof === undefined || !header) return new RefusedProof('malformed')
  if (header.alg !== 'ES256') return new RefusedProof('algorithm')
  const point = pointSchema.safeParse(header.jwk)
  if (!point.success) return new RefusedProof('key')
  const signed = await readProof(proof, point.data, now)
  return signed instanceof RefusedProof ? signed : { ...signed, point: { x: point.data.x, y: point.data.y } }
}

async function readProof(proof: string, { x, y }: PublicPoint, now: number): Promise<DeviceProof | RefusedProof> {
  const header = headerOf(proof)
  if (!header) return new RefusedProof('malformed')
  if (header.alg !== 'ES256') return new RefusedProof('algorithm')
  const key = await importJWK({ kty: 'EC', crv: 'P-256', x, y }, 'ES256').catch(() => undefined)
  if (!key) return new RefusedProof('key')
  try {
    const options = { algorithms: ['ES256'], typ: 'dbsc+jwt', currentDate: new Date(now) }
    const { payload } = await jwtVerify(proof, key, options)
    const { jti } = payload
    return typeof jti === 'string' ? { challenge: jti, nonce: nonceOf(proof) } : new RefusedProof('malformed')
  } catch {
    return new RefusedProof('signature')
  }
}

function headerOf(proof: string | undefined): ReturnType<typeof decodeProtectedHeader> | undefined {
  if (proof === undefined || proof.length > MAX_PROOF_LENGTH) return undefined
  try {
    return decodeProtectedHeader(proof)
  } catch {
    return undefined
  }
}

/** The ticket that the proof names. The signature is checked once the session is known. */
function ticketIn(proof: string | undefined): string | undefined {
  if (!headerOf(proof)) return undefined
  try {
    const { jti } = decodeJwt(proof ?? '')
    return typeof jti === 'string' ? readRegistrationChallenge(jti).ticket || undefined : undefined
  } catch {
    return undefined
  }
}

/** The first half of an ECDSA signature is random. The second can be changed without the key. */
function nonceOf(proof: string): string {
  const signature = Buffer.from(proof.slice(proof.lastIndexOf('.') + 1), 'base64url')
  return signature.subarray(0, 16).toString('base64url')
}

function observeRefused(
  { observe }: SignInContext,
  request: GatewayRequest,
  loaded: LoadedSession,
  step: 'register' | 'refresh',
  reason: RefusedProof['reason'],
): void {
  observe.report('device_refused', { ...requestFields(request, loaded), step, reason })
}

// Answers are always JSON: only browsers call these routes, not pages.

/** What the browser keeps of the session, its next cookie and its next challenge. */
function sessionAnswer({ settings, auth, pages }: SignInContext, device: BoundDevice): OwnAnswer {
  const { bound } = auth.cookies
  const instructions = {
    session_identifier: device.id,
    refresh_url: OWN_PATHS.deviceRefresh,
    scope: { origin: new URL(settings.BASE_URL).origin, include_site: false },
    credentials: [{ type: 'cookie', name: bound, attributes: COOKIE_ATTRIBUTES }],
  }
  return jsonAnswer(pages, instructions, {
    cookies: [setCookie(bound, device.cookie.value, BOUND_SECONDS)],
    headers: challengeHeader(device),
  })
}

function challengeAnswer(context: SignInContext, request: GatewayRequest, device: BoundDevice): OwnAnswer {
  return problem(context, request, 403, 'proof_required', challengeHeader(device))
}

function challengeHeader({ id, challenge }: BoundDevice): Record<string, string> {
  return { 'secure-session-challenge': `"${challenge}";id="${id}"` }
}

function unauthenticated(context: SignInContext, request: GatewayRequest): OwnAnswer {
  return problem(context, request, 401, 'unauthenticated')
}

function notFound(context: SignInContext, request: GatewayRequest): OwnAnswer {
  return problem(context, request, 404, 'not_found')
}

function problem(
  { pages }: SignInContext,
  { observed }: GatewayRequest,
  status: number,
  error: string,
  headers: Record<string, string> = {},
): OwnAnswer {
  return jsonAnswer(pages, { error, requestId: observed.requestId }, { status, headers })
}

/** The routes at BASE_URL. */
export const DEVICE_ROUTES: RouteTable<SignInContext> = {
  [OWN_PATHS.deviceRegister]: { POST: registerDevice },
  [OWN_PATHS.deviceRefresh]: { POST: refreshDevice },
}
