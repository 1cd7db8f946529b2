// Notices that one of several files has changed. It compares the result of `stat` every few seconds, which works the same for a file
// that is written in place, one that an editor replaces, and one behind the symbolic links of a Kubernetes volume.

import { stat } from 'node:fs/promises'

const LOOK_EVERY_MS = 2000

export interface FileWatch {
  /** Replaces the list of files. A change of a file that was already watched is still reported. */
  watch(files: readonly string[]): Promise<void>
  stop(): void
}

/** Keyed by file. */
type Appearances = ReadonlyMap<string, string>

/**
 * Calls `onChange` when a change is complete: two checks in a row saw the same. Also calls it once soon after the first `watch`,
 * because the files may have changed since they were read.
 */
export function watchFiles(onChange: () => void, everyMs = LOOK_EVERY_MS): FileWatch {
  let files: readonly string[] = []
  let known: Appearances = new Map()
  let latest: Appearances = new Map()
  let isLooking = false

  async function look(): Promise<void> {
    if (isLooking) return
    isLooking = true
    const seen = await appearancesOf(files)
    isLooking = false
    const isOver = isSame(seen, latest)
    latest = seen
    if (!isOver || isSame(seen, known)) return
    known = seen
    onChange()
  }

  const timer = setInterval(() => void look(), everyMs).unref()
  return {
    async watch(chosen) {
      if (chosen.join() === files.join()) return
      const isFirst = files.length === 0
      files = chosen
      if (isFirst) return
      const seen = await appearancesOf(chosen)
      known = new Map([...seen].map(([file, appearance]) => [file, known.get(file) ?? appearance]))
    },
    stop: () => clearInterval(timer),
  }
}

function isSame(one: Appearances, other: Appearances): boolean {
  return one.size === other.size && [...one].every(([file, appearance]) => other.get(file) === appearance)
}

async function appearancesOf(files: readonly string[]): Promise<Appearances> {
  return new Map(await Promise.all(files.map(async file => [file, await appearanceOf(file)] as const)))
}

async function appearanceOf(file: string): Promise<string> {
  try {
    const { ino, dev, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true })
    return [dev, ino, size, mtimeNs, ctimeNs].join()
  } catch (error) {
    // Missing, or this user cannot read it.
    return String((error as NodeJS.ErrnoException).code)
  }
}
