// The key by which a client proves itself in place of a secret (private_key_jwt).
import { createPrivateKey, type KeyObject } from 'node:crypto'
import { MenshenError } from '../../errors.ts'

const EXPECTED = 'expected a key in PEM that begins with "-----BEGIN PRIVATE KEY-----": RSA, P-256 or Ed25519'

/** By which algorithm it signs. Refuses a key that could not be used. */
export function algorithmOf(pem: string): string {
  const { asymmetricKeyType, asymmetricKeyDetails } = readKey(pem)
  if (asymmetricKeyType === 'rsa') return 'RS256'
  if (asymmetricKeyType === 'ed25519') return 'EdDSA'
  if (asymmetricKeyType === 'ec' && asymmetricKeyDetails?.namedCurve === 'prime256v1') return 'ES256'
  throw refusal('another key')
}

function readKey(pem: string): KeyObject {
  if (!pem.trimStart().startsWith('-----BEGIN PRIVATE KEY-----')) throw refusal('no such key')
  try {
    return createPrivateKey(pem)
  } catch {
    throw refusal('a broken key')
  }
}

function refusal(what: string): MenshenError {
  return new MenshenError('bad_settings', `CLIENT_KEY_FILE holds ${what}; ${EXPECTED}.`)
}
