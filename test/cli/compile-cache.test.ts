// Compiled code that is kept for the next start lies where nobody but us can write: what is found there is run.
import assert from 'node:assert/strict'
import { chmodSync, chownSync, mkdirSync, readdirSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import { type Environment, runMenshen } from '../kit/process.ts'
import { tempFolder } from '../kit/temp.ts'

/** Another account on this machine. */
const STRANGER = 65534
const isRoot = process.getuid?.() === 0
const asRoot = { skip: isRoot ? false : 'only root can make what belongs to another account' }

suite('compiled code', { concurrency: 2 }, () => {
  test('is kept in a folder of our own, which is private', async t => {
    const { HOME, TMPDIR } = folders(t)
    await start({ HOME, TMPDIR })
    const folder = join(HOME, '.cache', 'menshen')
    assert.equal(statSync(folder).mode & 0o777, 0o700)
    assert.ok(filesIn(folder).length > 0)
    assert.deepEqual(filesIn(TMPDIR), [])
    await start({ HOME, TMPDIR })
  })

  test('is kept where XDG_CACHE_HOME says', async t => {
    const { HOME, TMPDIR } = folders(t)
    const XDG_CACHE_HOME = tempFolder(t)
    await start({ HOME, TMPDIR, XDG_CACHE_HOME })
    assert.ok(filesIn(join(XDG_CACHE_HOME, 'menshen')).length > 0)
    assert.deepEqual(filesIn(HOME), [])
  })

  test('is never kept in the shared temporary folder, not even if there is no other', async t => {
    const { TMPDIR } = folders(t)
    for (const HOME of ['/nowhere/at/all', '/dev/null']) await start({ HOME, TMPDIR, XDG_CACHE_HOME: '' })
    assert.deepEqual(filesIn(TMPDIR), [])
  })

  test('is not kept in a folder that others may write to', async t => {
    const { HOME, TMPDIR } = folders(t)
    for (const mode of [0o770, 0o777, 0o755, 0o1777]) {
      const folder = prepared(HOME, 'menshen', mode)
      await start({ HOME, TMPDIR })
      assert.deepEqual(filesIn(folder), [], mode.toString(8))
    }
  })

  test('is not kept where others may write on the way to it', async t => {
    const { HOME, TMPDIR } = folders(t)
    const folder = prepared(HOME, 'menshen', 0o700)
    chmodSync(join(HOME, '.cache'), 0o777)
    await start({ HOME, TMPDIR })
    assert.deepEqual(filesIn(folder), [])
  })

  test('is not kept where a link leads', async t => {
    const { HOME, TMPDIR } = folders(t)
    const elsewhere = tempFolder(t)
    mkdirSync(join(HOME, '.cache'))
    symlinkSync(elsewhere, join(HOME, '.cache', 'menshen'))
    await start({ HOME, TMPDIR })
    assert.deepEqual(filesIn(elsewhere), [])
  })

  test('is not kept in a folder that another account made first', asRoot, async t => {
    const { HOME, TMPDIR } = folders(t)
    const folder = prepared(HOME, 'menshen', 0o700)
    chownSync(folder, STRANGER, STRANGER)
    await start({ HOME, TMPDIR })
    assert.deepEqual(filesIn(folder), [])
  })

  test('is not kept in the home of another account, nor in a cache folder of another', asRoot, async t => {
    for (const stranger of ['', '.cache']) {
      const { HOME, TMPDIR } = folders(t)
      const folder = prepared(HOME, 'menshen', 0o700)
      chownSync(join(HOME, stranger), STRANGER, STRANGER)
      await start({ HOME, TMPDIR })
      assert.deepEqual(filesIn(folder), [], stranger)
    }
  })
})

function folders(t: TestContext) {
  return { HOME: tempFolder(t), TMPDIR: tempFolder(t) }
}

function prepared(home: string, name: string, mode: number): string {
  const folder = join(home, '.cache', name)
  mkdirSync(folder, { recursive: true })
  chmodSync(join(home, '.cache'), 0o700)
  chmodSync(folder, mode)
  return folder
}

/** A whole run of the command; which one makes no difference to what is kept. */
async function start(env: Environment): Promise<void> {
  const { code, output } = await runMenshen(env, { args: ['rules', 'check', '/'] })
  assert.equal(code, 0, output)
}

function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true }).map(String)
}
