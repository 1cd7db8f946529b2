// Whether the store can be written. Reads of a full disk, of a read-only file or of a Redis that is out of memory succeed, but users
// cannot sign in.
//
//   a write fails            store_not_writable, `ready` fails with the error of that write
//   every 5 s from then on   a small write is tried
//   a write succeeds         store_writable, `ready` resolves
//
// Without a write in the last seconds, `ready` tries one, so that an instance without users notices a full disk, too.

import { randomBytes } from 'node:crypto'
import { errorFields } from '../errors.ts'
import type { Report } from '../events.ts'
import { systemCodeOf } from '../util/system-code.ts'
import type { Store } from './store.ts'

interface WriteWatchOptions {
  readonly now: () => number
  readonly report: Report
  /** The shortest time between two attempts to write. */
  readonly intervalMs?: number
}

const PROBE_INTERVAL_MS = 5000
/** As large as the record of a session. */
const PROBE_BYTES = 4096
/** A probe that could not be removed is swept. */
const PROBE_LIFETIME_MS = 60_000

export function watchWrites(store: Store, { now, report, intervalMs = PROBE_INTERVAL_MS }: WriteWatchOptions): Store {
  /** The error of a write, if none has succeeded since. */
  let outage: { readonly error: unknown } | undefined
  let isClosed = false
  let writtenAt = Number.NEGATIVE_INFINITY
  let timer: NodeJS.Timeout | undefined
  let probing: Promise<void> | undefined

  function succeeded(): void {
    writtenAt = performance.now()
    if (!outage) return
    outage = undefined
    clearInterval(timer)
    report('store_writable')
  }

  function failed(error: unknown): void {
    if (isClosed) return
    const isKnown = outage !== undefined
    // The next errors may have fewer details: the connection to a Redis that became a replica is closed immediately.
    if (!isKnown || systemCodeOf(error) !== undefined) outage = { error }
    if (isKnown) return
    timer = setInterval(() => void probe(), intervalMs).unref()
    report('store_not_writable', errorFields(error))
  }

  /** `hasWritten`: a change that finds nothing to change writes nothing, and proves nothing. */
  async function watch<Result>(work: Promise<Result>, hasWritten: (result: Result) => boolean): Promise<Result> {
    try {
      const result = await work
      if (hasWritten(result)) succeeded()
      return result
    } catch (error) {
      failed(error)
      throw error
    }
  }

  const watched: Store = {
    ...store,
    create: (key, entry) => watch(store.create(key, entry), version => version !== undefined),
    replace: (key, entry, version) => watch(store.replace(key, entry, version), next => next !== undefined),
    remove: key => watch(store.remove(key), hadEntry => hadEntry),
    take: key => watch(store.take(key), entry => entry !== undefined),
    trail: {
      ...store.trail,
      append: (events, keep) => watch(store.trail.append(events, keep), () => events.length > 0),
    },
    async ready() {
      if (!outage) await store.ready()
      if (!outage && performance.now() - writtenAt >= intervalMs) await probe()
      if (outage) throw outage.error
    },
    async close() {
      isClosed = true
      clearInterval(timer)
      await store.close()
    },
  }

  /** One at a time. Its failure is noted. */
  function probe(): Promise<void> {
    probing ??= tryToWrite(watched, now)
      .catch(() => {})
      .finally(() => {
        probing = undefined
      })
    return probing
  }

  return watched
}

async function tryToWrite(store: Store, now: () => number): Promise<void> {
  const key = `write-probe:${randomBytes(16).toString('hex')}`
  // Random, because some file systems compress other bytes into nothing.
  const value = randomBytes(PROBE_BYTES)
  await store.create(key, { value, expiresAt: now() + PROBE_LIFETIME_MS, labels: [] })
  await store.remove(key)
}

// Why the store cannot be written, as `ready` reports it.

export type StoreProblem = 'store' | 'store_full' | 'store_read_only'

const PROBLEMS: Readonly<Record<string, StoreProblem>> = {
  ENOSPC: 'store_full',
  EDQUOT: 'store_full',
  EFBIG: 'store_full',
  SQLITE_FULL: 'store_full',
  OOM: 'store_full',
  EROFS: 'store_read_only',
  EACCES: 'store_read_only',
  EPERM: 'store_read_only',
  SQLITE_READONLY: 'store_read_only',
  READONLY: 'store_read_only',
}

export function storeProblemOf(code: string | undefined): StoreProblem {
  return (code !== undefined && PROBLEMS[code]) || 'store'
}
