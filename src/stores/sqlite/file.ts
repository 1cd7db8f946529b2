// The database file of the embedded store: its folder, its format, and how a connection is opened.
//
// Only SQLite opens the file. A process that opens and closes it by other means loses the locks that its connections hold.

import { closeSync, existsSync, fsyncSync, linkSync, mkdirSync, mkdtempSync, openSync, rmSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { SqliteFault } from './faults.ts'

/** "MSHN". It distinguishes our databases from those of other programs. */
const APPLICATION_ID = 0x4d_53_48_4e
const FORMAT = 1

// `audit_kinds.last_number` and `store_state` keep what the other tables do not contain: numbers that only grow, and a count that
// would need a scan.
const SCHEMA = `
  CREATE TABLE records (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    version INTEGER NOT NULL,
    expires_at REAL NOT NULL,
    since INTEGER,
    labels TEXT NOT NULL,
    value BLOB NOT NULL
  ) STRICT;
  CREATE INDEX records_by_expiry ON records (expires_at);
  CREATE INDEX records_by_since ON records (since, key) WHERE since IS NOT NULL;
  CREATE TABLE record_labels (
    label TEXT NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (label, key)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE audit_events (
    number INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    tags TEXT NOT NULL,
    value BLOB NOT NULL
  ) STRICT;
  CREATE INDEX audit_events_by_kind ON audit_events (kind);
  CREATE TABLE audit_kinds (
    kind TEXT PRIMARY KEY,
    events INTEGER NOT NULL,
    last_number INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE store_state (
    name TEXT PRIMARY KEY,
    number INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  INSERT INTO store_state VALUES ('generation', 0), ('records_with_since', 0);
  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${FORMAT};
`

/** A WAL that is larger than this is truncated when it restarts. */
const WAL_BYTES = 16 * 1024 * 1024
const READER_CACHE_KB = 8192

/** How long a command waits for a lock of another process. */
const LOCK_MS = 10_000

/** Creates the file if it is missing. Blocks while another process holds a lock: not for the main thread of a server. */
export function openForWriting(file: string, lockMs = LOCK_MS): DatabaseSync {
  makeFolder(dirname(resolve(file)))
  createFile(file)
  const database = new DatabaseSync(file, { timeout: lockMs })
  try {
    protect(database)
    const isNew = !isOurs(database)
    if (isNew) database.exec('PRAGMA auto_vacuum = INCREMENTAL')
    if (readPragma(database, 'journal_mode = WAL') !== 'wal') throw new SqliteFault('no_wal', 'no write-ahead log')
    database.exec(`PRAGMA synchronous = FULL; PRAGMA journal_size_limit = ${WAL_BYTES}; PRAGMA wal_autocheckpoint = 0`)
    if (isNew) createSchema(database)
    // Locks have their own deadline in the thread, and maintenance does not wait for any.
    database.exec('PRAGMA busy_timeout = 0')
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/** For the main thread: does not wait for locks. The file has to be open for writing in this process. */
export function openForReading(file: string): DatabaseSync {
  const database = new DatabaseSync(file, { readOnly: true, timeout: 0 })
  try {
    protect(database)
    database.exec(`PRAGMA cache_size = -${READER_CACHE_KB}`)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

function protect(database: DatabaseSync): void {
  database.enableDefensive(true)
  database.exec('PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON')
}

/** False if the database is empty. Throws if it belongs to another program or to a newer Menshen. */
function isOurs(database: DatabaseSync): boolean {
  const id = readPragma(database, 'application_id')
  const format = Number(readPragma(database, 'user_version'))
  if (id === APPLICATION_ID) {
    if (format > FORMAT) throw new SqliteFault('newer_format', `format ${format}`)
    return true
  }
  const hasTables = database.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() !== undefined
  if (id !== 0 || format !== 0 || hasTables) throw new SqliteFault('foreign', `application_id ${id}`)
  return false
}

function createSchema(database: DatabaseSync): void {
  database.exec('BEGIN IMMEDIATE')
  try {
    // Another process may have been faster.
    if (!isOurs(database)) database.exec(SCHEMA)
    database.exec('COMMIT')
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
}

export function readPragma(database: DatabaseSync, text: string): unknown {
  return Object.values(database.prepare(`PRAGMA ${text}`).get() ?? {})[0]
}

/** Creates one folder at a time: where nothing can be created, as in /proc, Node's `recursive` never returns. */
function makeFolder(folder: string): void {
  if (existsSync(folder)) {
    if (!statSync(folder).isDirectory()) throw new SqliteFault('bad_path', `${folder} is not a folder`)
    return
  }
  makeFolder(dirname(folder))
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    // Another process may have been faster.
    if (!existsSync(folder)) throw error
  }
  syncFolder(dirname(folder))
}

/** SQLite gives its other files the mode of this one. */
function createFile(file: string): void {
  const found = statSync(file, { throwIfNoEntry: false })
  if (found && !found.isFile()) throw new SqliteFault('bad_path', `${file} is not a file`)
  if (found) return
  try {
    closeSync(openSync(file, 'wx', 0o600))
  } catch (error) {
    if (Object(error).code !== 'EEXIST') throw error
  }
  syncFolder(dirname(resolve(file)))
}

/** A new file would otherwise be lost in a power cut, together with what is in it. */
function syncFolder(folder: string): void {
  // Windows has no descriptors of folders, and writes their entries immediately.
  if (process.platform === 'win32') return
  const descriptor = openSync(folder, 'r')
  try {
    fsyncSync(descriptor)
  } catch (error) {
    // Some file systems, such as /proc, cannot.
    if (Object(error).code !== 'EINVAL') throw error
  } finally {
    closeSync(descriptor)
  }
}

/**
 * Writes the state of one moment into a new file, while others read and write. The target appears only when the copy is complete and
 * on the disk. Throws `EEXIST` if it exists. Blocks: for commands only.
 */
export function copyDatabase(database: DatabaseSync, target: string): void {
  if (existsSync(target)) throw Object.assign(new Error('it exists'), { code: 'EEXIST' })
  const folder = dirname(resolve(target))
  makeFolder(folder)
  const temporary = mkdtempSync(join(folder, '.menshen-backup-'))
  try {
    const copy = join(temporary, 'menshen.db')
    closeSync(openSync(copy, 'wx', 0o600))
    database.prepare('VACUUM INTO ?').run(copy)
    const descriptor = openSync(copy, 'r+')
    fsyncSync(descriptor)
    closeSync(descriptor)
    // Unlike a rename, a link never replaces a file.
    linkSync(copy, target)
  } finally {
    rmSync(temporary, { recursive: true, force: true })
  }
  syncFolder(folder)
}
