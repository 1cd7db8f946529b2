// The names of `hosts`, as browsers send them in Host: which names are refused, alone or because of BASE_URL.

import { z } from 'zod'
import { type Problem, refuseIf } from '../errors.ts'
import { type Phrase, phrase, phrasedProblem } from '../text/text.ts'
import { issueText, problemAt, withFullStop } from './issue-text.ts'
import type { Settings } from './settings.ts'

const MAX_SHOWN_LENGTH = 60

/** A name, with a port unless that is the default of the scheme. */
export const hostName = z.string().superRefine((given, context) => {
  const problem = problemOf(given)
  if (problem !== undefined) context.addIssue(issueText(problem))
})

function problemOf(given: string): Phrase | undefined {
  const host = JSON.stringify(given.slice(0, MAX_SHOWN_LENGTH))
  const likely = likelyHost(given)
  const refuse = (reason: Phrase) =>
    likely === undefined
      ? phrase('config.host_name', { host, reason })
      : phrase('config.host_name_likely', { host, reason, likely: `"${likely}"` })
  if (/^[a-z][a-z\d+.-]*:\/\//i.test(given)) return refuse(phrase('config.host_has_scheme'))
  if (given.includes('@')) return refuse(phrase('config.host_has_user'))
  if (/[/?#\\]/.test(given)) return refuse(phrase('config.host_has_path'))
  if (/[*^$|()]/.test(given)) return refuse(phrase('config.host_is_pattern'))
  if (/[^\x21-\x7e]/.test(given)) return refuse(phrase('config.host_form'))
  if (given !== given.toLowerCase()) return refuse(phrase('config.host_capitals'))
  if (/\.(?::\d*)?$/.test(given)) return refuse(phrase('config.host_dot'))
  if (!/^(?:[a-z\d_](?:[a-z\d_.-]*[a-z\d_])?|\[[\da-f:.]+\])(?::[1-9]\d{0,4})?$/.test(given) || given.includes('..'))
    return refuse(phrase('config.host_no_name'))
  // Both schemes, because each omits its own default port.
  const hosts = ['http', 'https'].map(scheme => URL.parse(`${scheme}://${given}`)?.host)
  return hosts.includes(given) ? undefined : refuse(phrase('config.host_form'))
}

/** What a browser would send as Host. */
function likelyHost(given: string): string | undefined {
  const address = /^[a-z][a-z\d+.-]*:\/\//i.test(given) ? given : `http://${given}`
  const host = URL.parse(address)?.host.replace(/\.(?=:|$)/, '')
  return host && problemOfLikely(host) ? host : undefined
}

function problemOfLikely(host: string): boolean {
  return /^[a-z\d][a-z\d.-]*(?::\d+)?$/.test(host)
}

/** Refuses hosts that conflict with BASE_URL or with each other. `source` is the file of the configuration. */
export function refuseHosts(
  { BASE_URL, DEVICE_BOUND_SESSIONS }: Pick<Settings, 'BASE_URL' | 'DEVICE_BOUND_SESSIONS'>,
  { hosts = {} }: { readonly hosts?: Readonly<Record<string, unknown>> | undefined },
  source?: string,
): void {
  const authHost = new URL(BASE_URL)
  const problems: Problem[] = []
  const byName = new Map([[authHost.hostname, 'BASE_URL']])
  for (const host of Object.keys(hosts)) {
    const path = `hosts.${host}`
    const refuse = (given: Phrase, setting?: string) =>
      problems.push(problemAt(source, path, given, path, setting === undefined ? {} : { namedSettings: [setting] }))
    const { host: asSent, hostname } = new URL(`${authHost.protocol}//${host}`)
    const other = byName.get(hostname)
    if (host === authHost.host || (asSent === authHost.host && asSent !== host))
      refuse(phrase('config.host_of_base_url'), 'BASE_URL')
    else if (asSent !== host)
      refuse(phrase('config.host_port', { scheme: authHost.protocol.slice(0, -1), expected: `"${asSent}"` }))
    else if (other) refuse(phrase('config.host_twice', { other }), other === 'BASE_URL' ? other : undefined)
    byName.set(hostname, `hosts.${host}`)
  }
  if (DEVICE_BOUND_SESSIONS === 'on' && Object.keys(hosts).length > 0)
    problems.push(
      phrasedProblem({ setting: 'DEVICE_BOUND_SESSIONS' }, withFullStop(phrase('config.devices_with_hosts'))),
    )
  refuseIf(problems)
}
