// The compile cache of the command is in a folder that only its user can write to: what is in it runs as code.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, readdirSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { type Environment, runMenshen } from '../kit/instance.ts'
import { tempFolder } from '../kit/temp.ts'

/** Another account on this machine. */
const STRANGER = 65534
const isRoot = process.getuid?.() === 0
const asRoot = { skip: isRoot ? false : 'only root can make what belongs to another account' }

suite('the compile cache', { concurrency: 2 }, () => {
  test('the command keeps compiled code in a private folder below HOME', async t => {
    const { HOME, TMPDIR } = folders(t)
    await runCommand({ HOME, TMPDIR })
    const folder = join(HOME, '.cache', 'menshen')
    assert.equal(statSync(folder).mode & 0o777, 0o700)
    assert.ok(filesIn(folder).length > 0)
    assert.deepEqual(filesIn(TMPDIR), [])
    await runCommand({ HOME, TMPDIR })
  })

  test('compiled code is kept below XDG_CACHE_HOME if that is set', async t => {
    const { HOME, TMPDIR } = folders(t)
    const XDG_CACHE_HOME = tempFolder(t)
    await compile({ HOME, TMPDIR, XDG_CACHE_HOME })
    assert.ok(filesIn(join(XDG_CACHE_HOME, 'menshen')).length > 0)
    assert.deepEqual(filesIn(HOME), [])
  })

  test('compiled code is never kept in the shared temporary folder, even if no other folder is available', async t => {
    const { TMPDIR } = folders(t)
    await runCommand({ HOME: '/nowhere/at/all', TMPDIR, XDG_CACHE_HOME: '' })
    await compile({ HOME: '/dev/null', TMPDIR, XDG_CACHE_HOME: '' })
    assert.deepEqual(filesIn(TMPDIR), [])
  })

  test('compiled code is not kept in a folder that other accounts can read or write', async t => {
    const { HOME, TMPDIR } = folders(t)
    for (const mode of [0o770, 0o777, 0o755, 0o1777]) {
      const folder = prepared(HOME, 'menshen', mode)
      await compile({ HOME, TMPDIR })
      assert.deepEqual(filesIn(folder), [], mode.toString(8))
    }
  })

  test('compiled code is not kept if other accounts can write to a parent folder', async t => {
    const { HOME, TMPDIR } = folders(t)
    const folder = prepared(HOME, 'menshen', 0o700)
    chmodSync(join(HOME, '.cache'), 0o777)
    await compile({ HOME, TMPDIR })
    assert.deepEqual(filesIn(folder), [])
  })

  test('compiled code is not kept behind a symbolic link', async t => {
    const { HOME, TMPDIR } = folders(t)
    const elsewhere = tempFolder(t)
    mkdirSync(join(HOME, '.cache'))
    symlinkSync(elsewhere, join(HOME, '.cache', 'menshen'))
    await compile({ HOME, TMPDIR })
    assert.deepEqual(filesIn(elsewhere), [])
  })

  test('compiled code is not kept in a folder that belongs to another account', asRoot, async t => {
    const { HOME, TMPDIR } = folders(t)
    const folder = prepared(HOME, 'menshen', 0o700)
    chownSync(folder, STRANGER, STRANGER)
    await compile({ HOME, TMPDIR })
    assert.deepEqual(filesIn(folder), [])
  })

  test('compiled code is not kept below a home or a cache folder that belongs to another account', asRoot, async t => {
    for (const stranger of ['', '.cache']) {
      const { HOME, TMPDIR } = folders(t)
      const folder = prepared(HOME, 'menshen', 0o700)
      chownSync(join(HOME, stranger), STRANGER, STRANGER)
      await compile({ HOME, TMPDIR })
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

/** A run of the whole command; which one it is makes no difference. */
async function runCommand(env: Environment): Promise<void> {
  const { code, output } = await runMenshen(env, { args: ['rules', 'check', '/'] })
  assert.equal(code, 0, output)
}

/** What the command does first, and one small module to compile: a tenth of the time of the whole command. */
async function compile(env: Environment): Promise<void> {
  const script = `import { useCompileCache } from '${new URL('../../bin/compile-cache.js', import.meta.url)}'
    useCompileCache()
    await import('${new URL('../../bin/own-node.js', import.meta.url)}')`
  const args = ['--input-type=module', '--eval', script]
  await promisify(execFile)(process.execPath, args, { env: { PATH: process.env.PATH, ...env } })
}

function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true }).map(String)
}
