// Checks each host of `hosts` as a browser would reach it: its name in DNS, its certificate, how a request arrives at Menshen, and
// its applications.

import { browserHostname } from '../config/deployment.ts'
import { upstreamsOfHost } from '../config/file.ts'
import type { Settings } from '../config/settings.ts'
import type { Finding, Probe } from './finding.ts'
import { type ProxyProbeOptions, probeProxy } from './proxy-probe.ts'
import { probeOrigin, type UpstreamProbesOptions, upstreamProbes } from './upstream-probes.ts'

interface HostProbesOptions extends UpstreamProbesOptions {
  readonly settings: Settings
  readonly proxy: ProxyProbeOptions
}

export function hostProbes(options: HostProbesOptions): Probe[] {
  const { settings, config, timeoutMs, now, proxy } = options
  const { protocol } = new URL(settings.BASE_URL)
  return Object.entries(config.hosts ?? {}).flatMap(([host, hostConfig]) => {
    const origin = `${protocol}//${host}`
    const { hostname } = new URL(origin)
    const connectTo = browserHostname(hostname)
    const upstreams = upstreamsOfHost(hostConfig)
    const isGateway = Object.keys(upstreams).length > 0
    const name = `host ${host}`

    async function run(): Promise<Finding[]> {
      const reached = await probeOrigin(name, origin, { timeoutMs, now, ...(connectTo !== hostname && { connectTo }) })
      if (reached.some(({ level }) => level === 'failure')) return reached
      const arrived = await probeProxy({ ...proxy, isGateway, settings: { ...proxy.settings, BASE_URL: origin } })
      return [...reached, ...arrived.map(finding => ({ ...finding, name: finding.name.replace(/^proxy/, name) }))]
    }

    const applications = isGateway
      ? upstreamProbes({ ...options, settings: { ...settings, UPSTREAM: undefined }, config: { upstreams } })
      : []
    return [
      { name, run },
      ...applications.map(probe => ({
        name: `${name} ${probe.name}`,
        run: async () => (await probe.run()).map(finding => ({ ...finding, name: `${name} ${finding.name}` })),
      })),
    ]
  })
}
