// All applications that there are connections to: those of the configuration in use, and those of former ones for as long as
// somebody is still there.

import type { Config } from '../config/config-file.ts'
import type { Settings } from '../config/settings.ts'
import { openUpstreams, type Upstream, type Upstreams } from './upstreams.ts'

export interface UpstreamPool {
  /** What a configuration names. It counts from `use` on. */
  choose(settings: Settings, config: Config): Upstreams
  /** From now on requests go to these. Whoever is with another one, or on the way there, finishes. */
  use(upstreams: Upstreams): void
  /** How many requests wait for one of them. */
  readonly waiting: number
  /** How many sockets and event streams are open. */
  readonly streams: number
  /** Sockets and event streams: they would never end by themselves, and open anew elsewhere. */
  endStreams(): void
  /** Everything else has this long to end by itself. */
  close(patienceMs: number): Promise<void>
}

export function createUpstreamPool(): UpstreamPool {
  let inUse: readonly Upstream[] = []
  let former: readonly Upstream[] = []
  const all = () => [...inUse, ...former]

  return {
    choose: (settings, config) => openUpstreams(settings, config, inUse),
    use({ all: chosen }) {
      const left = inUse.filter(upstream => !chosen.includes(upstream))
      for (const { connections } of left) connections.keepNone()
      former = [...former, ...left].filter(({ capacity }) => !capacity.isEmpty)
      inUse = chosen
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
    async close(patienceMs) {
      await Promise.all(
        all().map(async ({ capacity, connections }) => {
          await capacity.close(patienceMs)
          await connections.close()
        }),
      )
    },
  }
}
