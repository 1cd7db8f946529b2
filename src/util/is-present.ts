// Whether a folder has an entry, even if that is a link that leads nowhere. A file that an operator has put there must not be treated
// as absent because its volume is not mounted yet.

import { lstatSync } from 'node:fs'

export function isPresent(path: string): boolean {
  try {
    lstatSync(path)
    return true
  } catch {
    return false
  }
}
