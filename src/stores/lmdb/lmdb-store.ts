// The embedded store: files in one folder, shared by the processes of one machine, whole again after any crash.
//
// A change is decided on what was read and written on the condition that the record still has the version that was
// read. Versions never repeat, so the condition holds across processes, and whoever loses reads again.

import { hash } from 'node:crypto'
import { getLastVersion } from 'lmdb'
import { MenshenError } from '../../errors.ts'
import { expiryOf, packEntry, unpackEntry } from '../entry-bytes.ts'
import { firstVersion } from '../first-version.ts'
import type { Entry, Page, Store, Stored } from '../store.ts'
import { inTime, openFiles, withReason } from './lmdb-files.ts'
import { createProofs } from './lmdb-proofs.ts'

const NOTHING = Buffer.alloc(0)
/** Its version is the generation. On the disk it has the name that it had first. */
const GENERATION = 'mark'
/** Counts as expired, so that it can be written over and is swept away. */
const DAMAGED: Entry = { value: NOTHING, expiresAt: 0, labels: [] }
/** A page is short rather than late: so many expired ones are passed over for it. */
const MOST_PASSED_OVER = 1000
/** Small steps with pauses, so that nobody waits long for a sweep. */
const SWEEP_STEP = 100
const SWEEP_PAUSE_MS = 20

interface Options {
  readonly directory: string
  readonly now: () => number
  readonly sweepEveryMs?: number
}

export async function openLmdbStore({ directory, now, sweepEveryMs = 1000 }: Options): Promise<Store> {
  const { root, records, byLabel, byExpiry, generations } = await openFiles(directory)
  let closed = false

  function unavailable(problem: string, cause: unknown): MenshenError {
    return new MenshenError('store_unavailable', `The store in ${directory} ${problem}.`, cause)
  }

  /** A look at what all processes have done up to now. */
  function latest<Result>(look: () => Result): Result {
    return reading(() => {
      // Otherwise the reads of one event turn share a snapshot, and miss what other processes did since.
      records.resetReadTxn()
      return look()
    })
  }

  const proofs = createProofs({
    now,
    readGeneration() {
      records.resetReadTxn()
      return generations.getBinaryFast(GENERATION) === undefined ? 0 : getLastVersion()
    },
    lookUp(key) {
      const record = records.getBinaryFast(key)
      return record && { version: getLastVersion(), expiresAt: expiryOf(record) }
    },
  })

  function reading<Result>(look: () => Result): Result {
    try {
      if (closed) throw new Error('The store is closed.')
      return look()
    } catch (cause) {
      throw unavailable('could not be read', cause)
    }
  }

  function find(key: string): Stored | undefined {
    const found = records.getEntry(key)
    return found && { ...(unpackEntry(found.value) ?? DAMAGED), key, version: found.version ?? 0 }
  }

  function isLiving({ expiresAt }: Entry): boolean {
    return expiresAt > now()
  }

  function living(key: string): Stored | undefined {
    const stored = latest(() => find(key))
    return stored && isLiving(stored) ? stored : undefined
  }

  /** Puts `next` in the place of `old`, indexes included. False, and nothing changes, if `old` is no longer there. */
  async function change(key: string, old: Stored | undefined, next?: Entry): Promise<boolean> {
    try {
      const record = next && packEntry(next)
      const write = () => {
        if (record) records.put(key, record, (old?.version ?? firstVersion()) + 1)
        else records.remove(key)
        index(key, old, next)
        generations.put(GENERATION, NOTHING, firstVersion())
      }
      const written = old ? records.ifVersion(key, old.version, write) : records.ifNoExists(key, write)
      return await inTime(withReason(written))
    } catch (cause) {
      throw unavailable('could not be written', cause)
    } finally {
      proofs.lookAgain()
    }
  }

  /** Only what differs: most changes leave a session listed and expiring as it was. */
  function index(key: string, old: Entry | undefined, next: Entry | undefined): void {
    if (old?.expiresAt !== next?.expiresAt) {
      if (old) byExpiry.remove([old.expiresAt, key])
      if (next) byExpiry.put([next.expiresAt, key], NOTHING)
    }
    const [before, after] = [new Set(old?.labels), new Set(next?.labels)]
    for (const label of before.difference(after)) byLabel.remove(underLabel(label) + key)
    for (const label of after.difference(before)) byLabel.put(underLabel(label) + key, NOTHING)
  }

  async function take(key: string): Promise<Entry | undefined> {
    while (true) {
      const old = living(key)
      if (!old || (await change(key, old))) return old
    }
  }

  /** Removes the first of the expired entries. True if there may be more. */
  async function sweep(): Promise<boolean> {
    const expired = latest(() => {
      const due = [...byExpiry.getKeys({ end: [now()], limit: SWEEP_STEP })]
      return due.map(place => ({ place, stored: find(place[1]) }))
    })
    await Promise.all(expired.map(({ place, stored }) => sweepOne(place, stored)))
    return expired.length === SWEEP_STEP
  }

  async function sweepOne([expiresAt, key]: [number, string], stored: Stored | undefined): Promise<void> {
    // What the index says wrongly must not stay in the way of the others.
    if (stored?.expiresAt !== expiresAt) await inTime(withReason(byExpiry.remove([expiresAt, key])))
    if (stored && !isLiving(stored)) await change(key, stored)
  }

  let sweeping: Promise<void> | undefined
  let sweeper = setTimeout(sweepOn, sweepEveryMs).unref()
  function sweepOn(): void {
    sweeping = sweep()
      .catch(() => false) // the next one tries again
      .then(more => {
        if (!closed) sweeper = setTimeout(sweepOn, more ? SWEEP_PAUSE_MS : sweepEveryMs).unref()
      })
  }

  return {
    async create(key, entry) {
      while (true) {
        const old = latest(() => find(key))
        if (old && isLiving(old)) return false
        if (await change(key, old, entry)) return true
      }
    },

    async read(key) {
      return living(key)
    },

    holds: (key, version) => reading(() => proofs.holds(key, version)),

    async replace(key, entry, version) {
      const old = living(key)
      return old?.version === version && change(key, old, entry)
    },

    async remove(key) {
      return (await take(key)) !== undefined
    },

    take,

    async list({ label, after = '', limit }): Promise<Page> {
      const prefix = underLabel(label)
      return latest(() => {
        const entries: Stored[] = []
        let passedOver = 0
        for (const name of byLabel.getKeys({ start: prefix + after, exclusiveStart: true, end: `${prefix}\uffff` })) {
          const key = name.slice(prefix.length)
          const stored = find(key)
          if (!stored || !isLiving(stored)) {
            if (++passedOver === MOST_PASSED_OVER) return { entries, next: key }
            continue
          }
          if (entries.length === limit) return { entries, next: entries.at(-1)?.key ?? after }
          entries.push(stored)
        }
        return { entries }
      })
    },

    async ready() {
      latest(() => records.doesExist('ready'))
    },

    async close() {
      if (closed) return
      closed = true
      clearTimeout(sweeper)
      try {
        await sweeping
        await inTime(root.close())
      } catch (cause) {
        throw unavailable('could not be closed', cause)
      }
    },
  }
}

/** Labels of any length and content, in keys of a fixed one. */
function underLabel(label: string): string {
  return hash('sha256', label, 'base64url')
}
