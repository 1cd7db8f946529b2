import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'

/** An empty folder that is removed when the test ends. A process that is just ending may still write to it. */
export function tempFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'menshen-'))
  t.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }))
  return folder
}

/** All files of a folder, as one text with a character for each byte. Not for a store that this process has open. */
export function bytesOf(folder: string): string {
  return readdirSync(folder)
    .map(name => readFileSync(join(folder, name), 'latin1'))
    .join('')
}
