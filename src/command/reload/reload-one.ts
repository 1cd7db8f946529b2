// A reload in a process that serves.
import type { Core, ReloadFacts } from '../../create.ts'
import type { Serving } from '../serve.ts'
import { blamingWhole, type Rereading, readAgain } from './read-again.ts'
import type { Sources } from './read-sources.ts'
import type { Reloading } from './reloader.ts'

/** `before` is what it has started with. */
export function reloadOne(
  menshen: Pick<Core, 'prepare' | 'noteRefused'>,
  serving: Pick<Serving, 'renewCertificate'>,
  before: Sources,
  rereading: Rereading,
): Reloading {
  let inUse = before
  return {
    async prepare() {
      const { sources, changed } = await readAgain(inUse, rereading)
      const put = blamingWhole(sources, () => menshen.prepare(sources.settings, sources.config))
      return {
        sources,
        changed,
        async use(tells) {
          inUse = sources
          serving.renewCertificate()
          await put(tells ? factsOfReload(sources, changed) : undefined)
        },
      }
    },
    noteRefused: menshen.noteRefused,
  }
}

function factsOfReload({ settings, config }: Sources, changed: readonly string[]): ReloadFacts {
  const { rules = [], upstreams = {} } = config
  return {
    changed: changed.join(', ') || 'nothing',
    rules: rules.length,
    upstreams: Object.keys({ ...(settings.UPSTREAM && { '/': '' }), ...upstreams }).length,
  }
}
