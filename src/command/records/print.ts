// Prints line by line as fast as they are read; whoever reads only the first ones need not wait for the others.
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

export async function print(lines: AsyncIterable<string>): Promise<void> {
  try {
    await pipeline(Readable.from(lines), process.stdout, { end: false })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error
  }
}
