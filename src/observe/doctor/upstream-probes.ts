// Whether each application behind can be connected to, and answers.
import { readFileSync } from 'node:fs'
import { Agent, request } from 'undici'
import { phrase } from '../../phrases.ts'
import type { Config } from '../../settings/config/config-file.ts'
import type { Settings } from '../../settings/read.ts'
import { type Finding, failure, good, type Probe, reasonOf, warning } from './finding.ts'
import { probeOrigin } from './reach.ts'
import { isOurselves, type WayInOptions } from './way-in.ts'

const USER_AGENT = { 'user-agent': 'menshen doctor' }
/** From here on an answer to HEAD is no answer. */
const NO_HEAD = 400

interface Options {
  readonly settings: Pick<Settings, 'UPSTREAM' | 'UPSTREAM_CA_FILE' | 'UPSTREAM_CONNECT_TIMEOUT_MS'>
  readonly config: Config
  readonly timeoutMs: number
  readonly now: () => number
  /** How the Menshen of these settings is asked. */
  readonly wayIn: WayInOptions
}

export function upstreamProbes(options: Options): Probe[] {
  const { UPSTREAM } = options.settings
  const places: Config['upstreams'] = { ...(UPSTREAM && { '/': UPSTREAM }), ...options.config.upstreams }
  if (Object.keys(places).length === 0)
    return [{ name: 'upstream', run: async () => [good('upstream', phrase('no_upstream'))] }]
  return Object.entries(places).map(([prefix, place]) => {
    const name = `upstream ${prefix}`
    const url = typeof place === 'string' ? place : place.url
    return { name, run: () => probeUpstream(name, prefix, url, options) }
  })
}

async function probeUpstream(name: string, prefix: string, url: string, options: Options): Promise<Finding[]> {
  const { settings, timeoutMs, now } = options
  const ca = settings.UPSTREAM_CA_FILE && readFileSync(settings.UPSTREAM_CA_FILE, 'utf8')
  const socketPath = url.startsWith('unix:') ? url.slice('unix:'.length) : undefined
  const reached = socketPath ? [] : await probeOrigin(name, url, { timeoutMs, now, ca })
  if (reached.some(({ level }) => level === 'failure')) return reached
  const isOwn = socketPath ? false : isOurselves(url, options.wayIn, ca)
  const connect = { timeout: timeoutMs, ...(socketPath && { socketPath }), ...(ca && { ca }) }
  const dispatcher = new Agent({ connect })
  const target = new URL(prefix, socketPath ? 'http://localhost' : url)
  // Only the head of an answer: any will do. The rest ends with the connection.
  const ask = async (method: 'HEAD' | 'GET') => {
    const signal = AbortSignal.timeout(timeoutMs)
    const { statusCode, body } = await request(target, { method, headers: USER_AGENT, dispatcher, signal })
    body.on('error', () => {})
    return statusCode
  }
  try {
    const status = await ask('HEAD').catch(() => NO_HEAD)
    // Many applications know GET alone, and answer anything else with an error, or not at all.
    const last = status < NO_HEAD ? status : await ask('GET')
    if (await isOwn)
      return [...reached, failure(name, phrase('upstream_is_ourselves', { url }), phrase('name_application'))]
    return [...reached, judge(name, last)]
  } catch (error) {
    const seen = phrase('upstream_no_answer', { code: reasonOf(error) })
    return [...reached, failure(name, seen, phrase('check_application_running'))]
  } finally {
    await dispatcher.destroy()
  }
}

function judge(name: string, status: number): Finding {
  const seen = phrase('upstream_answers', { status })
  return status >= 500 ? warning(name, seen, phrase('look_at_application_log')) : good(name, seen)
}
