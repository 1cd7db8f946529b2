// A fingerprint of a value, to tell whether it has changed: a hash, so that no secret can be read from it.

import { hash } from 'node:crypto'
import { Networks } from './networks.ts'
import { Secret } from './secret.ts'

export function fingerprintOf(value: unknown): string {
  return hash('sha256', JSON.stringify(value, revealSecrets) ?? '', 'base64url')
}

/** A Secret hides itself from JSON before a replacer sees it, so that the value is read from the object that holds it. */
function revealSecrets(this: unknown, key: string, shown: unknown): unknown {
  const value: unknown = Object(this)[key]
  if (value instanceof Secret) return { secret: value.reveal() }
  return value instanceof Networks ? value.rules : shown
}
