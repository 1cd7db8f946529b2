// Keeps compiled code for the next start, which then takes half the time. What lies in that folder is run as our own
// code: it is used only if nobody but us can have written there.
import { lstatSync, mkdirSync, realpathSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'

const OTHERS_MAY_WRITE = 0o022
const OTHERS_MAY_ANYTHING = 0o077
const STICKY = 0o1000

export function useCompileCache() {
  const folder = privateFolder()
  if (folder) enableCompileCache(folder)
}

/** A folder of our own below the user's cache folder; `undefined` where there can be no safe one. */
function privateFolder() {
  const user = process.geteuid?.()
  if (user === undefined) return undefined
  try {
    const cache = makeFolder(cacheFolder())
    const folder = makeFolder(join(realpathSync(cache), 'menshen'))
    const { uid, mode } = lstatSync(folder)
    const isOurs = uid === user && (mode & OTHERS_MAY_ANYTHING) === 0
    return isOurs && isSafe(folder, user) ? folder : undefined
  } catch {
    return undefined
  }
}

function cacheFolder() {
  const { XDG_CACHE_HOME = '' } = process.env
  return isAbsolute(XDG_CACHE_HOME) ? XDG_CACHE_HOME : join(homedir(), '.cache')
}

/** @param {string} folder */
function makeFolder(folder) {
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EEXIST') throw error
  }
  return folder
}

/**
 * Whether nobody but the system and us can put another folder in its place, at any step of the way. Where everybody may
 * write but the sticky bit is set, what is ours stays ours.
 * @param {string} folder
 * @param {number} user
 * @returns {boolean}
 */
function isSafe(folder, user) {
  const status = lstatSync(folder)
  if (!status.isDirectory() || (status.uid !== user && status.uid !== 0)) return false
  if ((status.mode & OTHERS_MAY_WRITE) !== 0 && (status.mode & STICKY) === 0) return false
  return folder === dirname(folder) || isSafe(dirname(folder), user)
}
