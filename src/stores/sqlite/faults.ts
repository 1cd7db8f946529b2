// What can be wrong with the database file. The phrases `store_fault_…` say what to do about it.

export type FaultKind =
  | 'full'
  | 'read_only'
  | 'no_access'
  | 'locked'
  | 'not_a_database'
  | 'foreign'
  | 'damaged'
  | 'newer_format'
  | 'no_wal'
  | 'bad_path'
  | 'io'
  | 'no_answer'
  | 'closed'
  | 'other'

/** Plain data: the thread sends it. */
export interface Fault {
  readonly kind: FaultKind
  /** The message of SQLite or of the operating system. */
  readonly reason: string
}

/** A fault that SQLite does not report. */
export class SqliteFault extends Error {
  readonly kind: FaultKind
  /** The error code, for programs. */
  readonly code: string

  constructor(kind: FaultKind, reason: string) {
    super(reason)
    this.kind = kind
    this.code = CODES[kind] ?? 'SQLITE_ERROR'
  }
}

const CODES: Partial<Record<FaultKind, string>> = {
  full: 'SQLITE_FULL',
  read_only: 'SQLITE_READONLY',
  no_access: 'SQLITE_CANTOPEN',
  locked: 'SQLITE_BUSY',
  not_a_database: 'SQLITE_NOTADB',
  damaged: 'SQLITE_CORRUPT',
  io: 'SQLITE_IOERR',
}

/** Keyed by the primary result code of SQLite. */
const KINDS = new Map<number, FaultKind>([
  [3, 'no_access'],
  [5, 'locked'],
  [6, 'locked'],
  [8, 'read_only'],
  [10, 'io'],
  [11, 'damaged'],
  [13, 'full'],
  [14, 'no_access'],
  [15, 'locked'],
  [26, 'not_a_database'],
])

/** Keyed by the code of a system call. */
const SYSTEM_KINDS = new Map<unknown, FaultKind>([
  ['ENOSPC', 'full'],
  ['EDQUOT', 'full'],
  ['EROFS', 'read_only'],
  ['EACCES', 'no_access'],
  ['EPERM', 'no_access'],
  ['ENOENT', 'bad_path'],
  ['ENOTDIR', 'bad_path'],
  ['EIO', 'io'],
])

export function faultOf(error: unknown): Fault {
  const reason = error instanceof Error ? error.message : String(error)
  if (error instanceof SqliteFault) return { kind: error.kind, reason }
  const code = resultCodeOf(error)
  const kind = code === undefined ? SYSTEM_KINDS.get(Object(error).code) : KINDS.get(code)
  return { kind: kind ?? 'other', reason }
}

const BUSY = 5

export function isBusy(error: unknown): boolean {
  return resultCodeOf(error) === BUSY
}

/** SQLITE_TOOBIG, SQLITE_CONSTRAINT and SQLITE_MISMATCH. */
const REFUSED = new Set([18, 19, 20])

/** Whether the data to be written is the problem, and not the file. */
export function isRefused(error: unknown): boolean {
  const code = resultCodeOf(error)
  return code === undefined ? !(error instanceof SqliteFault) : REFUSED.has(code)
}

function resultCodeOf(error: unknown): number | undefined {
  const { errcode } = Object(error)
  return typeof errcode === 'number' ? errcode & 0xff : undefined
}
