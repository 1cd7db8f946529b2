// Writes to stdout what a command has to say; whoever reads only the first of it need not be told the rest.
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

/** Line by line as fast as they come, or all at once. Resolves when it is written, or nobody reads any more. */
export async function say(lines: AsyncIterable<string> | Iterable<string>): Promise<void> {
  try {
    await pipeline(Readable.from(lines), process.stdout, { end: false })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error
  }
}
