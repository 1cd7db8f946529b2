// Makes the next commit of an embedded store fail at its very end, as a disk can: after that, LMDB refuses to read and to write in
// this process. As a module that Node imports first, it does so when the process gets SIGUSR2.

import assert from 'node:assert/strict'
import { closeSync, openSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'

const O_DSYNC = 0o10000

/** LMDB writes the last page of a commit through a descriptor of its own. It is replaced by one that nothing can be written to. */
export function breakLmdb(): void {
  const [fd = assert.fail('no store is open')] = readdirSync('/proc/self/fd').map(Number).filter(isForLastPage)
  closeSync(fd)
  const others: number[] = []
  for (let opened = openSync('/dev/null', 'r'); opened !== fd; opened = openSync('/dev/null', 'r')) others.push(opened)
  for (const other of others) closeSync(other)
}

function isForLastPage(fd: number): boolean {
  try {
    const [, flags = ''] = /^flags:\s+(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8')) ?? []
    const file = readlinkSync(`/proc/self/fd/${fd}`)
    return file.endsWith('/data.mdb') && (Number.parseInt(flags, 8) & O_DSYNC) !== 0
  } catch {
    // That of the list itself.
    return false
  }
}

if (process.execArgv.concat(process.env.NODE_OPTIONS ?? '').some(arg => arg.includes(import.meta.url)))
  process.on('SIGUSR2', () => {
    breakLmdb()
    process.stdout.write('broken\n')
  })
