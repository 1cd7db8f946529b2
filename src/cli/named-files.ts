// Files that settings name and that can be read, but not used: certificates, keys, the folder of the store.
import { X509Certificate } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import type { Settings } from '../config/settings.ts'
import { MenshenError } from '../errors.ts'
import { certificateProblem } from '../options.ts'

export function assertCertificate({ TLS_CERT_FILE, TLS_KEY_FILE }: Settings): void {
  if (TLS_CERT_FILE === undefined || TLS_KEY_FILE === undefined) return
  try {
    createSecureContext({ cert: readFileSync(TLS_CERT_FILE), key: readFileSync(TLS_KEY_FILE) })
  } catch (error) {
    throw new MenshenError('bad_settings', certificateProblem((error as NodeJS.ErrnoException).code))
  }
}

export function assertAuthority({ UPSTREAM_CA_FILE }: Settings): void {
  if (UPSTREAM_CA_FILE === undefined) return
  try {
    new X509Certificate(readFileSync(UPSTREAM_CA_FILE))
  } catch {
    throw new MenshenError(
      'bad_settings',
      `UPSTREAM_CA_FILE is "${UPSTREAM_CA_FILE}", which holds no certificate; expected one in PEM.`,
    )
  }
}

/** Without opening anything: whether STORE can be what it says. */
export async function assertStoreAddress({ STORE }: Settings): Promise<void> {
  if (STORE.startsWith('lmdb:')) return assertFolder(STORE.slice('lmdb:'.length))
  if (!STORE.startsWith('redis')) return
  const [{ parseRedisAddress }, { tlsOptionsOf }] = await Promise.all([
    import('../stores/redis/redis-address.ts'),
    import('../stores/redis/redis-connection.ts'),
  ])
  tlsOptionsOf(parseRedisAddress(STORE))
}

function assertFolder(folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() === false)
    throw new MenshenError(
      'bad_settings',
      `STORE is "lmdb:${folder}", which is no folder; expected one, or the path of one that can be made.`,
    )
}
