// AUDIT_FILE: every event as a line of JSON. Several processes may write to the same file, so that whole lines go there in
// one write, to wherever its end is then.
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'

export interface AuditFile {
  /** Says how many of the lines, from the first on, were written as a whole. */
  write(lines: readonly string[]): Promise<number>
  /** The next write is to whatever has this name then. */
  reopen(): void
  close(): Promise<void>
}

/** A pipe that nobody reads is an error, and nothing to wait for. */
const FLAGS = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK
const OWNER_ALONE = 0o600
const NEWLINE = 0x0a

export function createAuditFile(path: string): AuditFile {
  let handle: FileHandle | undefined
  let isStale = false
  /** A line was cut off by a full disk: what follows it must begin anew. */
  let isCut = false

  async function close(): Promise<void> {
    const old = handle
    handle = undefined
    // What it could not write it has said already.
    await old?.close().catch(() => {})
  }

  async function opened(): Promise<FileHandle> {
    if (isStale) await close()
    isStale = false
    handle ??= await open(path, FLAGS, OWNER_ALONE)
    return handle
  }

  return {
    close,

    reopen() {
      isStale = true
    },

    async write(lines) {
      try {
        const file = await opened()
        if (lines.length === 0) return 0
        const bytes = Buffer.from((isCut ? '\n' : '') + lines.join(''))
        const { bytesWritten } = await file.write(bytes)
        if (bytesWritten === bytes.length) {
          isCut = false
          return lines.length
        }
        const written = bytes.subarray(0, bytesWritten)
        const ends = written.filter(byte => byte === NEWLINE).length
        const whole = isCut && bytesWritten > 0 ? ends - 1 : ends
        if (bytesWritten > 0) isCut = written.at(-1) !== NEWLINE
        return whole
      } catch (error) {
        await close()
        throw error
      }
    },
  }
}
