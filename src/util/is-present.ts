// Whether there is a file. One that an operator has put there must not be treated as absent because it cannot be used at the moment.

import { lstatSync, statSync } from 'node:fs'

/** Whether a folder has this entry, even if it is a link that leads nowhere because its volume is not mounted yet. */
export function isPresent(path: string): boolean {
  try {
    lstatSync(path)
    return true
  } catch {
    return false
  }
}

/** Whether there is certainly no such file: one that this account must not see may exist. */
export function isAbsent(path: string): boolean {
  try {
    statSync(path)
    return false
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return code === 'ENOENT' || code === 'ENOTDIR'
  }
}
