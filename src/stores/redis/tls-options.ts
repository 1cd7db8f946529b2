// How connections to Redis are secured, if the address says `rediss`.

import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { MenshenError } from '../../errors.ts'
import type { Host, RedisAddress } from './redis-address.ts'

export interface TlsOptions {
  readonly tls: true
  readonly servername?: string
  readonly ca?: Buffer
}

/** The certificate is read once, when the store is opened: a file that cannot be read stops the start. */
export function tlsOptionsOf({ tls, ca }: Pick<RedisAddress, 'tls' | 'ca'>): (host?: Host) => Partial<TlsOptions> {
  if (!tls) return () => ({})
  const authority = ca === undefined ? {} : { ca: readAuthority(ca) }
  return host => ({ tls: true, ...authority, ...(host && !isIP(host.host) ? { servername: host.host } : {}) })
}

function readAuthority(file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (cause) {
    throw new MenshenError('bad_settings', `STORE names ${file} as ca, which cannot be read.`, cause)
  }
}
