// Keys derived from our secrets. Every instance has them and the store does not, so that a stolen store cannot be read.
// The first secret seals and signs; all of them open.
import { createHash, hkdfSync, randomBytes } from 'node:crypto'
import { isProduction } from '../config/deployment.ts'
import { Secret } from '../config/secret.ts'
import type { Settings } from '../config/settings.ts'

import type { ProviderPlan } from '../provider/plan.ts'

/** The first one seals and signs, all of them open. */
export type KeyList = readonly [Uint8Array, ...Uint8Array[]]

/** A key that wraps the data keys. */
export interface WrappingKey {
  /** An id of the secret that reveals nothing of it. */
  readonly id: string
  readonly key: Uint8Array
}

export interface DerivedKeys {
  /** One per secret in use; empty without a secret. */
  readonly wrapping: readonly WrappingKey[]
  /** Keys that only open: secrets that are no longer in use. */
  readonly formerWrapping: readonly WrappingKey[]
  /** For the return path in its cookie. */
  readonly returnPath: KeyList
  /** For the requests of the doctor. */
  readonly doctor: KeyList
  /** For the names of icons. */
  readonly icons: KeyList
}

/** Without SECRET, keys derive from the client secret. With it, what the client secret sealed can still be opened. */
export function deriveKeys({ SECRET, CLIENT_SECRET }: Pick<Settings, 'SECRET' | 'CLIENT_SECRET'>): DerivedKeys {
  const clientSecrets = CLIENT_SECRET ? [CLIENT_SECRET] : []
  const secrets = SECRET ?? clientSecrets
  const former = SECRET ? clientSecrets : []
  // While settings are missing there may be no secret, and no user can sign in.
  const [first = new Secret(randomBytes(32).toString('hex')), ...rest] = secrets
  const deriveAll = (purpose: string, others: readonly Secret[]): KeyList => [
    derive(first, purpose),
    ...others.map(secret => derive(secret, purpose)),
  ]
  return {
    wrapping: secrets.map(wrappingKey),
    formerWrapping: former.map(wrappingKey),
    // Cookies come from outside: secrets that are out of use are not accepted there.
    returnPath: deriveAll('return path', rest),
    doctor: deriveAll('doctor', rest),
    icons: deriveAll('icons', []),
  }
}

export function sameSecrets(one: DerivedKeys, other: DerivedKeys): boolean {
  const ids = ({ wrapping, formerWrapping }: DerivedKeys) =>
    [...wrapping, { id: '' }, ...formerWrapping].map(({ id }) => id)
  return ids(one).join() === ids(other).join()
}

/** While secrets change, the previous ones can still open values, so that everything can be sealed again. */
export function withFormer(keys: DerivedKeys, before: DerivedKeys): DerivedKeys {
  return {
    ...keys,
    formerWrapping: [...keys.formerWrapping, ...before.wrapping],
  }
}

/** A shorter client secret could be guessed from a cookie that it signs. */
const MIN_CLIENT_SECRET_LENGTH = 16

/** The problem if there is nothing to derive keys from: a client without a secret, or in production with a short one, needs SECRET. */
export function secretProblem(
  { SECRET, NODE_ENV }: Pick<Settings, 'SECRET' | 'NODE_ENV'>,
  { clientSecret, missing }: Pick<ProviderPlan, 'clientSecret' | 'missing'>,
): string | undefined {
  if (SECRET || missing.length > 0) return undefined
  if (clientSecret) {
    const isShort = clientSecret.reveal().length < MIN_CLIENT_SECRET_LENGTH
    return isShort && isProduction({ NODE_ENV })
      ? `SECRET is not set, and the client secret, which has fewer than ${MIN_CLIENT_SECRET_LENGTH} characters, is too short to derive keys from; expected any text of 32 characters or more, for example from openssl rand -hex 32.`
      : undefined
  }
  return `SECRET is not set, and there is no client secret to derive it from; expected any text of 32 characters or more, for example from openssl rand -hex 32.`
}

function wrappingKey(secret: Secret): WrappingKey {
  const key = derive(secret, 'data keys')
  return { id: createHash('sha256').update('id ').update(key).digest('base64url').slice(0, 16), key }
}

function derive(secret: Secret, purpose: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret.reveal(), '', `menshen ${purpose}`, 32))
}
