// The key with which a client authenticates instead of a secret (private_key_jwt, mutual TLS), and its certificate.

import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { z } from 'zod'
import { withFullStop } from '../config/issue-text.ts'
import { ASSERTION_ALGORITHMS } from '../config/provider-fields.ts'
import { MenshenError } from '../errors.ts'
import { phrase, phrasedProblem } from '../text/text.ts'

export interface ClientKey {
  readonly key: KeyObject
  /** Only a JWK has one. */
  readonly kid?: string | undefined
  /** The algorithms of this kind of key; the first is the one that providers expect. */
  readonly algorithms: readonly [string, ...string[]]
}

const ALGORITHMS: Readonly<Record<string, ClientKey['algorithms']>> = {
  rsa: ['RS256', 'PS256', 'RS384', 'PS384', 'RS512', 'PS512'],
  prime256v1: ['ES256'],
  secp384r1: ['ES384'],
  secp521r1: ['ES512'],
  ed25519: ['EdDSA', 'Ed25519'],
}

const jwk = z.looseObject({
  kty: z.string(),
  d: z.string(),
  kid: z.string().min(1).optional(),
  alg: z.enum(ASSERTION_ALGORITHMS).optional(),
})
/** The key file of Zitadel. */
const namedPem = z.object({ key: z.string(), keyId: z.string().min(1) })

/** Throws if the key cannot be used. */
export function readClientKey(text: string): ClientKey {
  if (!text.trimStart().startsWith('{')) return withAlgorithms(readPem(text))
  const json = parseJson(text)
  const named = namedPem.safeParse(json).data
  if (named) return withAlgorithms(readPem(named.key), named.keyId)
  const { data } = jwk.safeParse(json)
  if (!data) throw refusal('key_none')
  const { kid, alg, ...key } = data
  const read = withAlgorithms(open({ key, format: 'jwk' }), kid)
  return alg === undefined ? read : { ...read, algorithms: [assertAlgorithm(read, alg)] }
}

/** The configured algorithm, otherwise the first that the provider accepts. */
export function algorithmFor(key: ClientKey, wanted: string | undefined, taken: readonly string[] | undefined): string {
  if (wanted !== undefined) return assertAlgorithm(key, wanted)
  return key.algorithms.find(name => taken?.includes(name)) ?? key.algorithms[0]
}

/** `x5t#S256` (RFC 7515, 4.1.8). The certificate must belong to the key. */
export function thumbprintOf(pem: string, { key }: ClientKey): string {
  let certificate: X509Certificate
  try {
    certificate = new X509Certificate(pem)
  } catch {
    throw new MenshenError('bad_settings', [
      phrasedProblem(
        { setting: 'CLIENT_CERT_FILE' },
        withFullStop(phrase('config.no_certificate', { file: 'CLIENT_CERT_FILE' })),
      ),
    ])
  }
  if (!certificate.checkPrivateKey(key))
    throw new MenshenError('bad_settings', [
      phrasedProblem(
        { namedSettings: ['CLIENT_CERT_FILE', 'CLIENT_KEY_FILE'] },
        withFullStop(phrase('config.pair_not_matching', { cert: 'CLIENT_CERT_FILE', key: 'CLIENT_KEY_FILE' })),
      ),
    ])
  return Buffer.from(certificate.fingerprint256.replaceAll(':', ''), 'hex').toString('base64url')
}

function assertAlgorithm({ algorithms }: ClientKey, wanted: string): string {
  if (algorithms.includes(wanted)) return wanted
  throw new MenshenError('bad_settings', [
    phrasedProblem(
      { setting: 'CLIENT_ASSERTION_ALGORITHM', namedSettings: ['CLIENT_ASSERTION_ALGORITHM', 'CLIENT_KEY_FILE'] },
      phrase('config.algorithm_not_of_key', { wanted, algorithms }),
    ),
  ])
}

function withAlgorithms(key: KeyObject, kid?: string): ClientKey {
  const { asymmetricKeyType = '', asymmetricKeyDetails } = key
  const name = asymmetricKeyType === 'ec' ? (asymmetricKeyDetails?.namedCurve ?? '') : asymmetricKeyType
  const algorithms = Object.hasOwn(ALGORITHMS, name) ? ALGORITHMS[name] : undefined
  if (!algorithms) throw refusal('key_other')
  return { key, kid, algorithms }
}

function readPem(text: string): KeyObject {
  // A passphrase would have to be kept beside the key.
  if (/^\s*-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: *4, *ENCRYPTED/m.test(text)) throw refusal('key_encrypted')
  // With `RSA` or `EC`: the form that OpenSSL wrote until version 3.
  if (!/^\s*-----BEGIN (RSA |EC )?PRIVATE KEY-----/.test(text)) throw refusal('key_none')
  return open(text)
}

function open(given: Parameters<typeof createPrivateKey>[0]): KeyObject {
  try {
    return createPrivateKey(given)
  } catch {
    throw refusal('key_broken')
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function refusal(what: 'key_none' | 'key_other' | 'key_encrypted' | 'key_broken'): MenshenError {
  return new MenshenError('bad_settings', [
    phrasedProblem({ setting: 'CLIENT_KEY_FILE' }, phrase('config.client_key', { what: phrase(`config.${what}`) })),
  ])
}
