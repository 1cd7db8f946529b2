// An application behind Menshen that is Menshen itself: every request would go round until something gives way.
import { networkInterfaces } from 'node:os'
import { MenshenError } from '../errors.ts'
import type { Config } from './config-file.ts'
import { portIn } from './deployment.ts'
import type { Settings } from './settings.ts'

type Address = Pick<Settings, 'UPSTREAM' | 'BASE_URL' | 'HOST' | 'PORT'>

/** Where browsers reach us. */
export function refuseBaseUrlAsUpstream(settings: Address, config: Pick<Config, 'upstreams'>): void {
  const own = new URL(settings.BASE_URL).origin
  refuseOwn(settings, config, url => new URL(url).origin === own)
}

/** Where this process listens, for whoever listens by HOST and PORT. */
export function refuseListenerAsUpstream(settings: Address, config: Pick<Config, 'upstreams'>): void {
  const { HOST, PORT } = settings
  refuseOwn(settings, config, url => portIn(url) === PORT && reaches(new URL(url).hostname, HOST))
}

function refuseOwn(
  { UPSTREAM }: Address,
  { upstreams = {} }: Pick<Config, 'upstreams'>,
  isOwn: (url: string) => boolean,
): void {
  const given = Object.entries(upstreams).map(([prefix, place]) => [
    `upstreams.${prefix}`,
    typeof place === 'string' ? place : place.url,
  ])
  const own = [['UPSTREAM', UPSTREAM ?? ''], ...given].filter(([, url = '']) => /^https?:/.test(url) && isOwn(url))
  if (own.length === 0) return
  const sentences = own.map(
    ([name, url]) => `${name} is "${url}", which is Menshen itself; expected the address of the application behind it.`,
  )
  throw new MenshenError('bad_settings', sentences.join('\n'))
}

const ANY = ['0.0.0.0', '::']
const LOCAL = ['127.0.0.1', '::1']

/** Whether a connection to this name arrives where `host` listens. A name that only a name server knows is left to the doctor. */
function reaches(hostname: string, host: string): boolean {
  const name = hostname.replace(/^\[|\]$/g, '').toLowerCase()
  const listens = host.toLowerCase()
  const isLocalhost = name === 'localhost' || name.endsWith('.localhost')
  if (name === listens || ANY.includes(name)) return true
  if (isLocalhost) return LOCAL.includes(listens) || ANY.includes(listens) || listens === 'localhost'
  if (listens === 'localhost') return LOCAL.includes(name)
  if (!ANY.includes(listens)) return false
  const addresses = Object.values(networkInterfaces()).flatMap((each = []) => each.map(({ address }) => address))
  return name.startsWith('127.') || addresses.includes(name)
}
