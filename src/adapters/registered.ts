// What the adapters share: the types of the instance that an application registers, and the checks of their arguments.
import { type Menshen, MenshenError, type Role, type Session } from '../index.ts'

/** An instance with any roles and fields, limited to what an adapter needs. */
export type AnyMenshen = Pick<Menshen<Role, never>, 'admit'> & Partial<Pick<Menshen, 'signInPaths' | 'callbackPaths'>>

/** The session type of `{ auth: typeof auth }`; otherwise any role and field. */
export type SessionOf<Registered> = Registered extends { readonly auth: Menshen<infer R, infer F> }
  ? Session<R, F>
  : Session

/** Otherwise a missing `await` would fail only with the first request. */
export function assertInstance(auth: unknown, expected: string): void {
  if (typeof Object(auth).admit === 'function') return
  const isPromise = typeof Object(auth).then === 'function'
  throw new MenshenError(
    'bad_settings',
    `menshen: expected ${expected}, with the result of createMenshen${isPromise ? ': await createMenshen(…)' : ''}.`,
  )
}

/** A list by mistake, or no role, would refuse everyone. This is reported at the start instead of to the first user. */
export function assertRoles(roles: readonly unknown[]): void {
  const areNames = roles.length > 0 && roles.every(role => typeof role === 'string' && role !== '')
  if (!areNames)
    throw new MenshenError(
      'bad_settings',
      "requireRole: expected names of roles, for example requireRole('developer').",
    )
}

/** `requireUser('developer')` would admit every user, and `requireUser` without `()` would never answer. */
export function assertNoArguments(given: readonly unknown[]): void {
  if (given.length === 0) return
  const [first] = given
  const remedy = typeof first === 'string' ? `use requireRole('${first}')` : 'write requireUser()'
  throw new MenshenError('bad_settings', `requireUser: expected no arguments; ${remedy}.`)
}

/** The order in the program is wrong, so the user is not known yet. */
export function notInFront(name: 'requireUser' | 'requireRole', remedy: string): MenshenError {
  return new MenshenError('bad_settings', `${name}: Menshen does not protect this route; ${remedy}.`)
}
