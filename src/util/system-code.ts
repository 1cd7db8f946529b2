// The code by which an operator recognises a failure: of the system (ENOSPC), of SQLite (SQLITE_FULL) or of Redis (OOM).

import { types } from 'node:util'

/** The primary result codes of SQLite that operators can do something about. */
const SQLITE_CODES: Readonly<Record<number, string>> = {
  5: 'SQLITE_BUSY',
  8: 'SQLITE_READONLY',
  10: 'SQLITE_IOERR',
  11: 'SQLITE_CORRUPT',
  13: 'SQLITE_FULL',
  14: 'SQLITE_CANTOPEN',
  26: 'SQLITE_NOTADB',
}
/** In its extended result codes, SQLite has the primary one in the lowest byte. */
const PRIMARY = 0xff
/** An error of Redis begins with its code. */
const REDIS_CODE = /^(OOM|READONLY|MISCONF|NOREPLICAS|LOADING|MASTERDOWN|CLUSTERDOWN|NOPERM|NOAUTH|WRONGPASS)\b/
const SYSTEM_CODE = /^E[A-Z0-9]{2,20}$|^SQLITE_[A-Z_]{2,30}$|^[A-Z]+(_[A-Z]+){1,5}$/
const MAX_CAUSES = 5

/** The code of the error, or of its nearest cause that has one. Never text from outside. */
export function systemCodeOf(error: unknown): string | undefined {
  let each = error
  // Under Jest, Node's own errors are not instances of the application's `Error`.
  for (let depth = 0; depth < MAX_CAUSES && isError(each); depth++) {
    const code = ownCodeOf(each)
    if (code !== undefined) return code
    each = each.cause
  }
  return undefined
}

function isError(value: unknown): value is Error {
  return value instanceof Error || types.isNativeError(value)
}

function ownCodeOf(error: Error): string | undefined {
  const { code, errcode } = error as { code?: unknown; errcode?: unknown }
  if (typeof errcode === 'number') return SQLITE_CODES[errcode & PRIMARY] ?? `SQLITE_${errcode & PRIMARY}`
  if (typeof code === 'string' && SYSTEM_CODE.test(code)) return code
  return REDIS_CODE.exec(error.message)?.[1]
}
