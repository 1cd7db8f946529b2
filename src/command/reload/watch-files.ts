// Notices that one of several files has changed. They are looked at every few seconds by what the system says of them: that works
// the same for a file that is written in place, one that an editor replaces, and one behind the links of a Kubernetes volume.
import { stat } from 'node:fs/promises'

const LOOK_EVERY_MS = 2000

export interface FileWatch {
  /** From now on these. Those that are watched already may have changed since they were read. */
  watch(files: readonly string[]): Promise<void>
  stop(): void
}

/** Calls `onChange` when a change is over: at two looks in a row the files were the same. */
export function watchFiles(onChange: () => void, everyMs = LOOK_EVERY_MS): FileWatch {
  let files: readonly string[] = []
  let known = ''
  let latest = ''
  let isLooking = false

  async function look(): Promise<void> {
    if (isLooking) return
    isLooking = true
    const seen = await appearanceOf(files)
    isLooking = false
    const isOver = seen === latest
    latest = seen
    if (seen === known || !isOver) return
    known = seen
    onChange()
  }

  const timer = setInterval(() => void look(), everyMs).unref()
  return {
    async watch(chosen) {
      if (chosen.join() === files.join()) return
      files = chosen
      known = latest = await appearanceOf(files)
    },
    stop: () => clearInterval(timer),
  }
}

async function appearanceOf(files: readonly string[]): Promise<string> {
  const seen = await Promise.all(
    files.map(file =>
      stat(file, { bigint: true }).then(
        ({ ino, dev, size, mtimeNs, ctimeNs }) => [dev, ino, size, mtimeNs, ctimeNs].join(),
        // Not there, or not for us to see.
        ({ code }) => String(code),
      ),
    ),
  )
  return seen.join('\n')
}
