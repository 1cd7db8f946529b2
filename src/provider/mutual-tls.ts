// Mutual TLS (RFC 8705): the client authenticates with the certificate of its connections. Every call to the provider presents
// the same certificate, so that access tokens can be bound to it.

import { createSecureContext } from 'node:tls'
import { withFullStop } from '../config/issue-text.ts'
import type { ProviderConfig } from '../config/provider.ts'
import { Secret } from '../config/secret.ts'
import { MenshenError } from '../errors.ts'
import { phrase, phrasedError, phrasedProblem } from '../text/text.ts'
import { readClientKey } from './client-key.ts'

/** Both in PEM. The certificate may be followed by those of its issuers. */
export interface ClientCertificate {
  readonly cert: Secret
  readonly key: Secret
}

export function usesMutualTls({ clientAuth }: Pick<ProviderConfig, 'clientAuth'>): boolean {
  return clientAuth === 'tls_client_auth' || clientAuth === 'self_signed_tls_client_auth'
}

/** `undefined` if one of the two is missing. Throws if TLS cannot use them. That they belong together is checked before. */
export function certificateOf(key: Secret | undefined, cert: Secret | undefined): ClientCertificate | undefined {
  if (!key || !cert) return undefined
  const pem = readClientKey(key.reveal()).key.export({ type: 'pkcs8', format: 'pem' }).toString()
  try {
    createSecureContext({ cert: cert.reveal(), key: pem })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new MenshenError('bad_settings', [
      phrasedProblem(
        { namedSettings: ['CLIENT_CERT_FILE', 'CLIENT_KEY_FILE'] },
        withFullStop(
          phrase('config.pair_unusable', { cert: 'CLIENT_CERT_FILE', key: 'CLIENT_KEY_FILE', code: String(code) }),
        ),
      ),
    ])
  }
  return { cert, key: new Secret(pem) }
}

/** Without TLS no certificate is presented, and anyone could claim to be this client. */
export function assertTls(url: string): void {
  if (new URL(url).protocol !== 'https:') throw phrasedError('bad_settings', phrase('mutual_tls_needs_https'))
}
