// Certificates and keys that settings name: whether they can be used.

import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { MenshenError, type Problem } from '../errors.ts'
import { phrase, phrasedProblem } from '../text/text.ts'
import { withFullStop } from './issue-text.ts'
import type { Settings } from './settings.ts'

export function assertCertificate({ TLS_CERT_FILE, TLS_KEY_FILE }: Settings): void {
  if (TLS_CERT_FILE === undefined || TLS_KEY_FILE === undefined) return
  try {
    createSecureContext({ cert: readFileSync(TLS_CERT_FILE), key: readFileSync(TLS_KEY_FILE) })
  } catch (error) {
    throw new MenshenError('bad_settings', [certificateProblem((error as NodeJS.ErrnoException).code)])
  }
}

export function certificateProblem(code: string | undefined): Problem {
  const [cert, key] = ['TLS_CERT_FILE', 'TLS_KEY_FILE']
  return phrasedProblem(
    { namedSettings: [cert, key] },
    withFullStop(phrase('config.pair_unusable', { cert, key, code: String(code) })),
  )
}

export function assertUpstreamAuthority({ UPSTREAM_CA_FILE }: Settings): void {
  if (UPSTREAM_CA_FILE === undefined) return
  try {
    new X509Certificate(readFileSync(UPSTREAM_CA_FILE))
  } catch {
    throw new MenshenError('bad_settings', [
      phrasedProblem(
        { setting: 'UPSTREAM_CA_FILE' },
        phrase('config.authority_without_certificate', { name: 'UPSTREAM_CA_FILE', file: UPSTREAM_CA_FILE }),
      ),
    ])
  }
}
