// POST /_menshen/account/keys creates a personal key and shows it once; POST /_menshen/account/keys/revoke revokes one. Only if a
// rule has `keys: 'personal'`, at BASE_URL or at one of `hosts`.

import { errorAnswer, foreignAnswer, languageOf, type OwnAnswer, pageAnswer, redirectAnswer } from '../http/answers.ts'
import type { GatewayRequest } from '../http/request.ts'
import type { SignedInCaller } from '../identify/admission.ts'
import type { KeyRequest } from '../keys/personal.ts'
import { requestFields } from '../observe/observed-request.ts'
import { OWN_PATHS } from '../paths.ts'
import { userIdOf } from '../session/record.ts'
import { isOwnForm } from '../util/fetch-metadata.ts'
import { accountAnswer, draftQuery, hasPersonalKeys, readDraft } from './account.ts'
import type { AccountContext } from './context.ts'
import { type KeysView, newKeyPage } from './key-section.ts'
import { keyObstacle, keyStepUpAnswer } from './sign-in-for-key.ts'

export async function createPersonalKey(
  context: AccountContext,
  request: GatewayRequest,
  caller: SignedInCaller,
  form: URLSearchParams,
): Promise<OwnAnswer> {
  const { settings, auth, pages, observe } = context
  const { loaded, ticket = '', cookies } = caller
  if (!hasPersonalKeys(context)) return errorAnswer(pages, request, 'not_found', { cookies })
  if (!isOwnForm(request, settings.BASE_URL)) return foreignAnswer(context, request, cookies)
  const keyRequest = readKeyRequest(form, settings.PERSONAL_KEY_MAX_DAYS)
  if ('problem' in keyRequest) return accountAnswer(context, request, caller, keyRequest)
  const obstacle = keyObstacle(loaded, context.now())
  if (obstacle === 'step_up_failed') return errorAnswer(pages, request, obstacle, { cookies, outcome: 'refused' })
  if (obstacle) return keyStepUpAnswer(context, request, caller, draftQuery(keyRequest))
  const claims = await auth.sessions.readClaims(ticket)
  const made = await auth.personalKeys.create(
    { ...loaded.session, claims, askedAt: loaded.session.tokenIssuedAt },
    keyRequest,
  )
  if (typeof made === 'string') return accountAnswer(context, request, caller, { problem: made, draft: keyRequest })
  // The user signed out while the key was created, so it is revoked too, and was never shown.
  if (!(await auth.sessions.loadLatest(ticket))) {
    await auth.personalKeys.revoke(userIdOf(loaded.session), made.id)
    return redirectAnswer(pages, request.method, pages.paths.login, { cookies, outcome: 'visitor' })
  }
  const { name, expiresAt } = made
  const expires = new Date(expiresAt).toISOString()
  observe.report('key_created', { ...requestFields(request, loaded), name, expires })
  return pageAnswer(pages, newKeyPage(languageOf(pages, request), made), { cookies })
}

interface InvalidKeyRequest extends Pick<KeysView, 'draft'> {
  readonly problem: KeysView['problem']
}

function readKeyRequest(form: URLSearchParams, maxDays: number): KeyRequest | InvalidKeyRequest {
  const draft = readDraft(form, maxDays)
  const { name, days } = draft
  if (name === undefined) return { problem: 'bad_name', draft }
  if (days === undefined) return { problem: 'bad_days', draft }
  return { name, days }
}

export async function revokePersonalKey(
  context: AccountContext,
  request: GatewayRequest,
  { loaded, cookies }: SignedInCaller,
  form: URLSearchParams,
): Promise<OwnAnswer> {
  const { settings, auth, pages, observe } = context
  if (!isOwnForm(request, settings.BASE_URL)) return foreignAnswer(context, request, cookies)
  const id = form.get('key') ?? ''
  const revoked = /^[\da-f]{64}$/.test(id) ? await auth.personalKeys.revoke(userIdOf(loaded.session), id) : undefined
  if (revoked) observe.report('key_revoked', { ...requestFields(request, loaded), by: 'user', name: revoked.name })
  // The same answer whether there is no such key or it is another user's.
  return redirectAnswer(pages, request.method, OWN_PATHS.account, { cookies })
}
