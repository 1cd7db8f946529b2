// Notices that one of several files has changed. It compares the result of `stat` every few seconds, which works the same for a file
// that is written in place, one that an editor replaces, and one behind the symbolic links of a Kubernetes volume.

import { stat } from 'node:fs/promises'

const POLL_INTERVAL_MS = 2000

export interface FileWatcher {
  /** Replaces the list of files. A change of a file that was already watched is still reported. */
  watch(files: readonly string[]): Promise<void>
  stop(): void
}

/** Keyed by file. */
type FileStates = ReadonlyMap<string, string>

/**
 * Calls `onChange` when a change is complete: two checks in a row saw the same. Also calls it once soon after the first `watch`,
 * because the files may have changed since they were read.
 */
export function watchFiles(onChange: () => void, intervalMs = POLL_INTERVAL_MS): FileWatcher {
  let files: readonly string[] = []
  let known: FileStates = new Map()
  let latest: FileStates = new Map()
  let isChecking = false

  async function check(): Promise<void> {
    if (isChecking) return
    isChecking = true
    const seen = await readStates(files)
    isChecking = false
    const isOver = isSame(seen, latest)
    latest = seen
    if (!isOver || isSame(seen, known)) return
    known = seen
    onChange()
  }

  const timer = setInterval(() => void check(), intervalMs).unref()
  return {
    async watch(chosen) {
      if (chosen.join() === files.join()) return
      const isFirst = files.length === 0
      files = chosen
      if (isFirst) return
      const seen = await readStates(chosen)
      known = new Map([...seen].map(([file, state]) => [file, known.get(file) ?? state]))
    },
    stop: () => clearInterval(timer),
  }
}

function isSame(one: FileStates, other: FileStates): boolean {
  return one.size === other.size && [...one].every(([file, state]) => other.get(file) === state)
}

async function readStates(files: readonly string[]): Promise<FileStates> {
  return new Map(await Promise.all(files.map(async file => [file, await readState(file)] as const)))
}

async function readState(file: string): Promise<string> {
  try {
    const { ino, dev, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true })
    return [dev, ino, size, mtimeNs, ctimeNs].join()
  } catch (error) {
    // Missing, or this user cannot read it.
    return String((error as NodeJS.ErrnoException).code)
  }
}
