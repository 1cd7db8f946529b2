// All applications with connections: those of the configuration in use, and those of former ones while they have requests.

import type { Config } from '../config/file.ts'
import type { Settings } from '../config/settings.ts'
import { openUpstreams, type Upstream, type Upstreams } from './upstreams.ts'

export interface UpstreamPool {
  /** The applications of a configuration, which `use` then puts in use. */
  choose(settings: Settings, config: Pick<Config, 'upstreams'>): Upstreams
  /** From now on, requests go to these. Requests to others finish. */
  use(upstreams: Pick<Upstreams, 'all'>): void
  /** How many requests wait for one of them. */
  readonly waiting: number
  /** How many sockets and event streams are open. */
  readonly streams: number
  /** Ends sockets and event streams, which would not end on their own. Clients open them again, at another process. */
  endStreams(): void
  /** Everything else has this long to finish. */
  close(timeoutMs: number): Promise<void>
}

export function createUpstreamPool(): UpstreamPool {
  let current: readonly Upstream[] = []
  let former: readonly Upstream[] = []
  const all = () => [...current, ...former]

  return {
    choose: (settings, config) => openUpstreams(settings, config, current),
    use({ all: chosen }) {
      const left = current.filter(upstream => !chosen.includes(upstream))
      for (const { connections } of left) connections.disableKeepAlive()
      former = [...former, ...left].filter(({ capacity }) => !capacity.isEmpty)
      current = chosen
    },
    get waiting() {
      return all().reduce((sum, { capacity }) => sum + capacity.waiting, 0)
    },
    get streams() {
      return all().reduce((sum, { capacity }) => sum + capacity.streams, 0)
    },
    endStreams() {
      for (const { capacity } of all()) capacity.endStreams()
    },
    async close(timeoutMs) {
      await Promise.all(
        all().map(async ({ capacity, connections }) => {
          await capacity.close(timeoutMs)
          await connections.close()
        }),
      )
    },
  }
}
