// Says in one sentence why a server could not listen, and which setting to change.
import { MenshenError } from '../errors.ts'

interface FailedAddress {
  readonly setting: 'PORT' | 'DEV_PROVIDER_PORT'
  readonly port: number
  readonly host: string
}

export function refuseToListen({ code }: NodeJS.ErrnoException, { setting, port, host }: FailedAddress): never {
  if (code === 'EADDRINUSE')
    throw new MenshenError(
      'cannot_start',
      `${setting}: port ${port} is already in use; stop what uses it, or choose another by ${setting}${PROXY_HINT[setting]}.`,
    )
  if (code === 'EACCES')
    throw new MenshenError(
      'cannot_start',
      `${setting}: this user may not listen on port ${port} (${code}); choose one from 1024 on by ${setting}, or let the service manager open it.`,
    )
  if (code?.startsWith('ERR_OSSL')) throw new MenshenError('cannot_start', certificateProblem(code))
  throw new MenshenError(
    'cannot_start',
    `HOST is "${host}", where port ${port} cannot be listened on (${code}); expected an address of this machine and a port that this user may use.`,
  )
}

export function certificateProblem(code: string | undefined): string {
  return `TLS_CERT_FILE and TLS_KEY_FILE cannot be used (${code}); expected a certificate and its key in PEM.`
}

/** Without PORT, the port of a local BASE_URL is taken, where a proxy may well be. */
const PROXY_HINT = { PORT: ' (behind a proxy BASE_URL has its port, and PORT is another)', DEV_PROVIDER_PORT: '' }
