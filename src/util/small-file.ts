// Reads a file that is expected to be small: a configuration, a secret, a certificate, an image. A pipe, a device or a folder in its place
// is refused before it is opened, so that a start never waits for one.

import { closeSync, constants, fstatSync, openSync, readSync, type Stats, statSync } from 'node:fs'

/** `reason` is a system code, or a few words. It never contains any of the content. */
export class SmallFileError extends Error {
  readonly reason: string

  constructor(reason: string) {
    super(reason)
    this.reason = reason
  }
}

/** As text in UTF-8, without a byte order mark. */
export function readSmallText(file: string, maxBytes: number): string {
  const bytes = readSmallFile(file, maxBytes)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new SmallFileError('not text in UTF-8')
  }
}

export function readSmallFile(file: string, maxBytes: number): Buffer<ArrayBuffer> {
  let opened: number | undefined
  try {
    assertPlainFile(statSync(file))
    // Another kind of file may have taken its place.
    opened = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
    assertPlainFile(fstatSync(opened))
    return readUpTo(opened, maxBytes)
  } catch (error) {
    if (error instanceof SmallFileError) throw error
    throw new SmallFileError(String((error as NodeJS.ErrnoException).code))
  } finally {
    if (opened !== undefined) closeSync(opened)
  }
}

function assertPlainFile(status: Stats): void {
  if (status.isDirectory()) throw new SmallFileError('EISDIR')
  if (!status.isFile()) throw new SmallFileError('not a regular file')
}

/** The size that the system reports may be that of a file that is still being written. */
function readUpTo(opened: number, maxBytes: number): Buffer<ArrayBuffer> {
  const buffer = Buffer.alloc(maxBytes + 1)
  let length = 0
  while (length <= maxBytes) {
    const count = readSync(opened, buffer, length, buffer.length - length, null)
    // A copy: the rest of the buffer is not kept with it.
    if (count === 0) return Buffer.from(buffer.subarray(0, length))
    length += count
  }
  throw new SmallFileError(`larger than ${maxBytes / 1024} KB`)
}
