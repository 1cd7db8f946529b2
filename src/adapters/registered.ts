// What the adapters share: the types of the instance that an application registers, and what a page may want.
import { type Menshen, MenshenError, type Role, type Session } from '../index.ts'

/** An instance with whichever roles and fields, as far as an adapter needs it. */
export type AnyMenshen = Pick<Menshen<Role, never>, 'admit'> & Partial<Pick<Menshen, 'signInPaths' | 'callbackPaths'>>

/** The session type of `{ auth: typeof auth }`; otherwise any role and field. */
export type SessionOf<Registered> = Registered extends { readonly auth: Menshen<infer R, infer F> }
  ? Session<R, F>
  : Session

/** An `await` that is missing would otherwise fail with the first request. */
export function assertInstance(auth: unknown, expected: string): void {
  if (typeof Object(auth).admit === 'function') return
  const isPromise = typeof Object(auth).then === 'function'
  throw new MenshenError(
    'bad_settings',
    `menshen: expected ${expected}, with the result of createMenshen${isPromise ? ': await createMenshen(…)' : ''}.`,
  )
}

/** A list by mistake, or nothing, would refuse everyone: reported at the start, not to the first user. */
export function assertRoles(roles: readonly unknown[]): void {
  const areNames = roles.length > 0 && roles.every(role => typeof role === 'string' && role !== '')
  if (!areNames)
    throw new MenshenError(
      'bad_settings',
      "requireRole: expected names of roles, for example requireRole('developer').",
    )
}

/** The program has the order wrong: the user is not known yet. */
export function notInFront(name: 'requireUser' | 'requireRole', remedy: string): MenshenError {
  return new MenshenError('bad_settings', `${name}: Menshen does not protect this route; ${remedy}.`)
}
