// Changes to the application's data in a session. Concurrent calls would overwrite each other's versions and start over, each as
// often as there are others. So a process has at most one write per session in flight, and one that waits for it:
//
//   call 1    writes
//   call 2    waits for call 1
//   call 3    joins call 2, whose write now has the data of call 3: the last one wins
//
// A burst of any size takes two writes.

import type { LoadedSession } from './cache.ts'
import type { SessionData } from './record.ts'

/** Writes the data over whatever the session has; `undefined` if the session has ended. */
type SaveData = (ticket: string, loaded: LoadedSession, data: SessionData) => Promise<LoadedSession | undefined>

interface Waiting {
  loaded: LoadedSession
  data: SessionData
  readonly result: Promise<LoadedSession | undefined>
}

interface Changes {
  readonly running: Promise<unknown>
  waiting?: Waiting
}

export function createDataChanges(save: SaveData): SaveData {
  const bySession = new Map<string, Changes>()

  function write(ticket: string, loaded: LoadedSession, data: SessionData): Promise<LoadedSession | undefined> {
    const result = save(ticket, loaded, data)
    const running = result
      .catch(() => undefined)
      .then(() => {
        if (bySession.get(loaded.key)?.waiting === undefined) bySession.delete(loaded.key)
      })
    bySession.set(loaded.key, { running })
    return result
  }

  return (ticket, loaded, data) => {
    const changes = bySession.get(loaded.key)
    if (!changes) return write(ticket, loaded, data)
    const { waiting } = changes
    if (waiting) {
      Object.assign(waiting, { loaded, data })
      return waiting.result
    }
    const next: Waiting = {
      loaded,
      data,
      result: changes.running.then(() => write(ticket, next.loaded, next.data)),
    }
    changes.waiting = next
    return next.result
  }
}
