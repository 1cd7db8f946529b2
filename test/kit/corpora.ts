// Hostile inputs that others collected, in the folder that CORPORA_DIR names. Without it every list is empty, and tests
// have only their own cases.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const folder = process.env.CORPORA_DIR

/** The lines of a text file that are not empty, or the strings of a JSON file. */
export function corpusStrings(file: string): string[] {
  if (!folder) return []
  const content = readFileSync(join(folder, file), 'utf8')
  return file.endsWith('.json') ? JSON.parse(content) : content.split('\n').filter(line => line !== '')
}

/** The files of a folder, as they are. */
export function corpusFiles(subfolder: string): { name: string; bytes: Buffer }[] {
  if (!folder) return []
  const path = join(folder, subfolder)
  return readdirSync(path).map(name => ({ name, bytes: readFileSync(join(path, name)) }))
}
