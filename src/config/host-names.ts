// The names of `hosts`, as browsers send them in Host: which are refused, and what is wrong with them beside BASE_URL.

import { z } from 'zod'
import { type Problem, refuseIf } from '../errors.ts'
import type { Settings } from './settings.ts'

const EXAMPLE = 'for example "wiki.example.com"'
const LONGEST_SHOWN = 60

/** A name, with a port if that is not the scheme's own. */
export const hostName = z.string().superRefine((given, context) => {
  const problem = problemOf(given)
  if (problem !== undefined) context.addIssue(problem)
})

function problemOf(given: string): string | undefined {
  const shown = JSON.stringify(given.slice(0, LONGEST_SHOWN))
  const likely = likelyHost(given)
  const meant = likely === undefined ? EXAMPLE : `did you mean "${likely}"?`
  const refuse = (reason: string) => `${shown} ${reason}; expected only the name of a host, ${meant}`
  if (/^[a-z][a-z\d+.-]*:\/\//i.test(given)) return refuse('has a scheme')
  if (given.includes('@')) return refuse('has a user')
  if (/[/?#\\]/.test(given)) return refuse('has a path')
  if (/[*^$|()]/.test(given)) return refuse('looks like a pattern')
  if (/[^\x21-\x7e]/.test(given)) return refuse('is not in the form that browsers send')
  if (given !== given.toLowerCase()) return refuse('has capitals')
  if (/\.(?::\d*)?$/.test(given)) return refuse('ends with a dot')
  if (!/^(?:[a-z\d_](?:[a-z\d_.-]*[a-z\d_])?|\[[\da-f:.]+\])(?::[1-9]\d{0,4})?$/.test(given) || given.includes('..'))
    return refuse('is not the name of a host')
  // Of two schemes: each leaves its own port out.
  const hosts = ['http', 'https'].map(scheme => URL.parse(`${scheme}://${given}`)?.host)
  return hosts.includes(given) ? undefined : refuse('is not in the form that browsers send')
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

/** Refuses what BASE_URL and other hosts do not allow. `source` is the file of the configuration. */
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
    const refuse = (message: string, setting?: string) =>
      problems.push({
        path,
        ...(setting !== undefined && { namedSettings: [setting] }),
        message: `${source ? `${source}: ` : ''}${path}: ${message}`,
      })
    const { host: asSent, hostname } = new URL(`${authHost.protocol}//${host}`)
    const other = byName.get(hostname)
    if (host === authHost.host || (asSent === authHost.host && asSent !== host))
      refuse(
        'this is the host of BASE_URL, whose upstreams and rules are at the top level; expected another host.',
        'BASE_URL',
      )
    else if (asSent !== host)
      refuse(`browsers omit the default port of ${authHost.protocol.slice(0, -1)}; expected "${asSent}".`)
    else if (other)
      refuse(
        `has the same name as ${other} with another port, and cookies are shared by all ports; expected another name.`,
        other === 'BASE_URL' ? other : undefined,
      )
    byName.set(hostname, `hosts.${host}`)
  }
  if (DEVICE_BOUND_SESSIONS === 'on' && Object.keys(hosts).length > 0)
    problems.push({
      setting: 'DEVICE_BOUND_SESSIONS',
      message: `DEVICE_BOUND_SESSIONS is "on" with hosts: a browser binds a session to one host, and cookies of the other hosts could still be stolen; expected only one of the two.`,
    })
  refuseIf(problems)
}
