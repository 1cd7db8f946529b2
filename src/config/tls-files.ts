// Certificates and keys that settings name: whether they can be used.

import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { MenshenError, type Problem } from '../errors.ts'
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
  return {
    namedSettings: ['TLS_CERT_FILE', 'TLS_KEY_FILE'],
    message: `TLS_CERT_FILE and TLS_KEY_FILE cannot be used (${code}); expected a certificate and its key in PEM.`,
  }
}

export function assertUpstreamAuthority({ UPSTREAM_CA_FILE }: Settings): void {
  if (UPSTREAM_CA_FILE === undefined) return
  try {
    new X509Certificate(readFileSync(UPSTREAM_CA_FILE))
  } catch {
    throw new MenshenError('bad_settings', [
      {
        setting: 'UPSTREAM_CA_FILE',
        message: `UPSTREAM_CA_FILE is "${UPSTREAM_CA_FILE}", which contains no certificate; expected one in PEM.`,
      },
    ])
  }
}
