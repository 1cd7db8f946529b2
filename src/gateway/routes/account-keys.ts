// POST /_menshen/account/keys makes a personal key and shows it once; POST /_menshen/account/keys/revoke ends one. Only where a
// rule says `keys: 'personal'`, at BASE_URL or at one of `hosts`.

import { requestFields } from '../../observe/observed-request.ts'
import { type KeysView, newKeyPage } from '../../pages/key-section.ts'
import { OWN_PATHS } from '../../paths.ts'
import { LONGEST_NAME } from '../../session/personal-keys.ts'
import { userIdOf } from '../../session/session-record.ts'
import { isFormOfUser } from '../../util/fetch-metadata.ts'
import type { SignedInCaller } from '../admission.ts'
import type { GatewayContext } from '../context.ts'
import type { GatewayRequest } from '../request.ts'
import { errorAnswer, foreignAnswer, languageOf, type OwnAnswer, pageAnswer, redirectAnswer } from '../respond.ts'
import { accountAnswer, hasPersonalKeys } from './account.ts'

export async function createPersonalKey(
  context: GatewayContext,
  request: GatewayRequest,
  caller: SignedInCaller,
  form: URLSearchParams,
): Promise<OwnAnswer> {
  const { settings, auth, pages, observe } = context
  const { loaded, ticket = '', cookies } = caller
  if (!hasPersonalKeys(context)) return errorAnswer(pages, request, 'not_found', { cookies })
  if (!isFormOfUser(request, settings.BASE_URL)) return foreignAnswer(context, request, cookies)
  const wish = readWish(form, settings.PERSONAL_KEY_MAX_DAYS)
  if ('problem' in wish) return accountAnswer(context, request, caller, wish.problem)
  const claims = await auth.sessions.readClaims(ticket)
  const made = await auth.personalKeys.create({ ...loaded.session, claims }, wish)
  if (typeof made === 'string') return accountAnswer(context, request, caller, made)
  // Signed out while it was made: the key ends too, and nobody has seen it.
  if (!(await auth.sessions.reload(ticket))) {
    await auth.personalKeys.revoke(userIdOf(loaded.session), made.id)
    return redirectAnswer(pages, request.method, pages.paths.login, { cookies, outcome: 'visitor' })
  }
  const { name, expiresAt } = made
  const expires = new Date(expiresAt).toISOString()
  observe.report('key_created', { ...requestFields(request, loaded), name, expires })
  return pageAnswer(pages, newKeyPage(languageOf(pages, request), made), { cookies })
}

/** Letters, digits, signs and spaces of any script; nothing that is invisible or turns the direction of a text. */
const NAME = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]+$/u

function readWish(
  form: URLSearchParams,
  maxDays: number,
): { name: string; days: number } | { problem: KeysView['problem'] } {
  const name = (form.get('name') ?? '').trim()
  const days = form.get('days') ?? ''
  if (!NAME.test(name) || [...name].length > LONGEST_NAME) return { problem: 'bad_name' }
  if (!/^\d{1,4}$/.test(days) || Number(days) < 1 || Number(days) > maxDays) return { problem: 'bad_days' }
  return { name, days: Number(days) }
}

export async function revokePersonalKey(
  context: GatewayContext,
  request: GatewayRequest,
  { loaded, cookies }: SignedInCaller,
  form: URLSearchParams,
): Promise<OwnAnswer> {
  const { settings, auth, pages, observe } = context
  if (!isFormOfUser(request, settings.BASE_URL)) return foreignAnswer(context, request, cookies)
  const id = form.get('key') ?? ''
  const revoked = /^[\da-f]{64}$/.test(id) ? await auth.personalKeys.revoke(userIdOf(loaded.session), id) : undefined
  if (revoked) observe.report('key_revoked', { ...requestFields(request, loaded), by: 'user', name: revoked.name })
  // The same answer whether there is no such key or it is another user's.
  return redirectAnswer(pages, request.method, OWN_PATHS.account, { cookies })
}
