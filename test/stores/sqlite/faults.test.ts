// The embedded store when its file, its disk or its neighbours misbehave.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync } from 'node:fs'
import { rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import type { Worker } from 'node:worker_threads'
import { MenshenError } from '../../../src/errors.ts'
import { openSqliteStore } from '../../../src/stores/sqlite/store.ts'
import type { Entry, Store } from '../../../src/stores/store.ts'
import { phraseIn, phraseOf } from '../../../src/text/text.ts'
import { requireLinux, requireProgram } from '../../kit/requirements.ts'
import { tempFolder } from '../../kit/temp.ts'
import { until } from '../../kit/until.ts'
import { type Neighbour, startNeighbour } from '../neighbour.ts'

const UNAVAILABLE = { code: 'store_unavailable' }

test('forty stores in one process open and close one file while it is written, and no write is lost', {
  timeout: 120_000,
}, async t => {
  const file = fileFor(t)
  const first = await openFor(t, file)
  const written: string[] = []
  let isOver = false
  const write = async (name: string) => {
    for (let n = 0; !isOver; n++) {
      assert.ok(await first.create(`${name}${n}`, entry('a', ['label'])))
      written.push(`${name}${n}`)
    }
  }
  const writing = ['a', 'b', 'c'].map(write)
  for (let wave = 0; wave < 2; wave++)
    await Promise.all(
      Array.from({ length: 20 }, async (_, n) => {
        const store = await openSqliteStore({ file, now: Date.now })
        assert.ok(await store.create(`${wave} ${n}`, entry('b')))
        assert.ok(await first.read(`${wave} ${n}`), 'the others see it')
        await store.close()
        await assert.rejects(store.read('a0'), UNAVAILABLE)
      }),
    )
  isOver = true
  await Promise.all(writing)
  assert.ok(written.length > 3)
  for (const key of written) assert.ok(await first.read(key), key)
})

test('a store can be opened while the last store on the same file is closing', async t => {
  const file = fileFor(t)
  let last = await openSqliteStore({ file, now: Date.now })
  for (let n = 0; n < 10; n++) {
    const closing = last.close()
    last = await openSqliteStore({ file, now: Date.now })
    await closing
    assert.ok(await last.create(`k${n}`, entry('a')))
  }
  for (let n = 0; n < 10; n++) assert.ok(await last.read(`k${n}`))
  await last.close()
})

test('a copy of the files at any moment, as after a power cut, contains every confirmed change', async t => {
  requireLinux('/proc')
  const file = fileFor(t)
  const neighbour = await startNeighbour(file)
  t.after(() => neighbour.leave())
  /** The version, or `undefined` once it is removed. Without the keys that are being changed. */
  const confirmed = new Map<string, unknown>()
  let isOver = false
  const useSessions = async (name: string) => {
    for (let n = 0; !isOver; n++) {
      const key = `${name}${n}`
      const [created] = await neighbour.call(['create', key, { ...entry('x'.repeat(900), ['label']), since: n }])
      confirmed.set(key, created?.result)
      if (n % 2 === 0) continue
      confirmed.delete(key)
      const [replaced] = await neighbour.call(['replace', key, entry('y'.repeat(900)), created?.result])
      confirmed.set(key, replaced?.result)
      if (n % 4 === 1) continue
      confirmed.delete(key)
      await neighbour.call(['remove', key])
      confirmed.set(key, undefined)
    }
  }
  const using = Array.from({ length: 8 }, (_, n) => useSessions(`u${n}-`))
  try {
    for (let cut = 0; cut < 10; cut++) {
      const before = confirmed.size
      await until(() => confirmed.size > before + 20 + 17 * cut)
      const copy = join(dirname(file), `cut${cut}`, 'menshen.db')
      mkdirSync(dirname(copy))
      const expected = await whileStopped(neighbour, () => {
        const expected = new Map(confirmed)
        for (const part of ['', '-wal']) copyFileSync(file + part, copy + part)
        return expected
      })
      const store = await openSqliteStore({ file: copy, now: Date.now })
      for (const [key, version] of expected) assert.equal((await store.read(key))?.version, version, key)
      await store.close()
      const database = new DatabaseSync(copy)
      assert.deepEqual(Object.values(database.prepare('PRAGMA integrity_check').get() ?? {}), ['ok'])
      database.close()
    }
  } finally {
    isOver = true
    await Promise.all(using)
  }
})

test('while another connection holds a lock, reads work and writes fail after the deadline; then writes work again', async t => {
  const file = fileFor(t)
  const store = await openSqliteStore({ file, now: Date.now, deadlineMs: 3000 })
  t.after(() => store.close())
  await store.create('k', entry('a'))
  const other = new DatabaseSync(file)
  t.after(() => other.close())
  other.exec('BEGIN IMMEDIATE')
  const waiting = store.create('l', entry('b'))
  assert.ok(await store.read('k'))
  const refused = await waiting.then(
    () => assert.fail(),
    error => error,
  )
  assert.ok(refused instanceof MenshenError)
  assert.match(refused.message, /menshen\.db could not be written: another process holds its lock .*find that process/)
  const sentence = phraseOf(refused) ?? assert.fail('it has only an English sentence')
  assert.match(phraseIn('zh-CN', sentence), /^无法写入 .*menshen\.db 中的存储：.*锁/)
  other.exec('ROLLBACK')
  assert.ok(await store.create('l', entry('b')))
})

test('a start fails with cannot_start if another process holds a lock until the deadline', async t => {
  const file = fileFor(t)
  await (await openSqliteStore({ file, now: Date.now })).close()
  const other = new DatabaseSync(file)
  t.after(() => other.close())
  other.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
  await assert.rejects(openSqliteStore({ file, now: Date.now, deadlineMs: 3000 }), {
    code: 'cannot_start',
    message: /another process holds its lock/,
  })
})

test('a file that is deleted while in use is created again and contains every write confirmed from then on', async t => {
  const file = fileFor(t)
  const store = await openFor(t, file)
  const version = await store.create('before', entry('a'))
  for (const part of ['', '-wal', '-shm']) await rm(file + part)
  assert.ok(await store.create('after', entry('b')))
  assert.equal(await store.read('before'), undefined)
  assert.equal(store.isCurrent('before', version ?? 0), false)
  await store.close()
  const again = await openFor(t, file)
  assert.ok(await again.read('after'))
})

/** A store with the key `mine`, whose file can be replaced by one with the key `theirs`. */
async function openReplaceable(t: TestContext) {
  const file = fileFor(t)
  const other = join(dirname(file), 'other.db')
  const source = await openSqliteStore({ file: other, now: Date.now })
  await source.create('theirs', entry('a'))
  await source.close()
  const store = await openFor(t, file)
  const version = (await store.create('mine', entry('a'))) ?? 0
  assert.ok(store.isCurrent('mine', version))
  return {
    store,
    version,
    async replaceFile(): Promise<void> {
      for (const part of ['-wal', '-shm']) await rm(file + part)
      await rename(other, file)
    },
  }
}

test('a store without writes notices that its file was replaced', async t => {
  const { store, version, replaceFile } = await openReplaceable(t)
  await replaceFile()
  await until(() => !store.isCurrent('mine', version))
  assert.ok(await store.read('theirs'))
})

test('a store whose thread has died continues with a new one, and notices that its file was replaced in between', async t => {
  const threads: Worker[] = []
  const note = (thread: Worker) => void threads.push(thread)
  process.on('worker', note)
  t.after(() => process.off('worker', note))
  const { store, version, replaceFile } = await openReplaceable(t)
  await threads.at(-1)?.terminate()
  await replaceFile()
  assert.ok(await store.create('next', entry('b')))
  assert.ok(await store.read('theirs'))
  assert.ok(!store.isCurrent('mine', version))
})

test('a file that is no longer a database causes an error with a remedy, and the store recovers once it is deleted', async t => {
  const file = fileFor(t)
  const store = await openFor(t, file)
  await store.create('k', entry('a'))
  for (const part of ['-wal', '-shm']) await rm(file + part)
  await writeFile(`${file}.new`, 'not a database '.repeat(1000))
  await rename(`${file}.new`, file)
  await assert.rejects(store.create('l', entry('b')), /is not a database .*move the file away/)
  await assert.rejects(async () => store.read('k'), UNAVAILABLE)
  for (const part of ['', '-wal', '-shm']) await rm(file + part, { force: true })
  assert.ok(await store.create('m', entry('c')))
  assert.ok(await store.read('m'))
})

test('filling and emptying the disk under load neither ends the process nor loses confirmed writes', async t => {
  if (process.getuid?.() !== 0) return t.skip('only root can mount a small disk')
  const { folder, remount } = mountDisk(t)
  const neighbour = await startNeighbour(join(folder, 'menshen.db'))
  t.after(() => neighbour.leave())
  const confirmed: string[] = []
  let last = 0
  const writeTogether = async () => {
    const keys = Array.from({ length: 20 }, () => `k${last++}`)
    const outcomes = await neighbour.call(...keys.map(key => ['create', key, entry('x'.repeat(500))] as const))
    for (const [n, { error }] of outcomes.entries()) {
      assert.ok(error === undefined || error === 'store_unavailable', error ?? '')
      if (error === undefined) confirmed.push(keys[n] ?? '')
    }
    return outcomes.every(({ error }) => error === undefined)
  }
  const assertAll = async () => {
    const outcomes = await neighbour.call(...confirmed.map(key => ['read', key] as const))
    for (const [n, { error, result }] of outcomes.entries()) assert.ok(!error && result, confirmed[n] ?? '')
  }

  await writeTogether()
  for (let round = 0; round < 2; round++) {
    await writeFile(join(folder, 'filler'), Buffer.alloc(4_000_000)).catch(() => {})
    while (await writeTogether());
    await assertAll()
    await rm(join(folder, 'filler'))
    await until(writeTogether)
    await assertAll()
    remount('size=6m')
  }
  remount('size=20m')
  await until(writeTogether)
  assert.equal(await neighbour.leave(), 0)
})

test('a read-only folder causes a startup error with a remedy', async t => {
  if (process.getuid?.() !== 0) return t.skip('only root can mount a small disk')
  const { folder, remount } = mountDisk(t)
  const file = join(folder, 'menshen.db')
  await (await openSqliteStore({ file, now: Date.now })).close()
  remount('ro')
  await assert.rejects(openSqliteStore({ file, now: Date.now }), {
    code: 'cannot_start',
    message: /give this user (read and )?write access/,
  })
  remount('rw')
  const store = await openSqliteStore({ file, now: Date.now })
  assert.ok(await store.create('k', entry('a')))
  await store.close()
})

test('the store files do not keep growing when entries are repeatedly created and removed', async t => {
  const file = fileFor(t)
  const store = await openFor(t, file)
  const round = async () => {
    const keys = Array.from({ length: 400 }, (_, n) => `k${n}`)
    await Promise.all(keys.map(key => store.create(key, { ...entry('x'.repeat(2000), ['label']), since: 1 })))
    await Promise.all(keys.map(key => store.remove(key)))
  }
  const size = () =>
    execFileSync('du', ['-sb', dirname(file)])
      .toString()
      .split('\t')[0]
  for (let n = 0; n < 4; n++) await round()
  const before = Number(size())
  for (let n = 0; n < 8; n++) await round()
  assert.ok(Number(size()) < 2 * before, `${before} became ${size()}`)
})

function mountDisk(t: TestContext) {
  requireLinux('tmpfs')
  const [mount, umount] = [requireProgram('mount'), requireProgram('umount')]
  const folder = mkdtempSync(join(tmpdir(), 'menshen-disk-'))
  execFileSync(mount, ['-t', 'tmpfs', '-o', 'size=3m', 'tmpfs', folder])
  t.after(() => {
    execFileSync(umount, ['--lazy', folder])
    rmdirSync(folder)
  })
  return { folder, remount: (option: string) => execFileSync(mount, ['-o', `remount,${option}`, folder]) }
}

/** No thread of the process runs during the work. */
async function whileStopped<Result>({ process: child }: Neighbour, work: () => Result): Promise<Result> {
  child.kill('SIGSTOP')
  await until(() => /^State:\s+T/m.test(readFileSync(`/proc/${child.pid}/status`, 'utf8')))
  try {
    return work()
  } finally {
    child.kill('SIGCONT')
  }
}

function entry(text: string, labels: readonly string[] = []): Entry {
  return { value: new TextEncoder().encode(text), expiresAt: Date.now() + 600_000, labels }
}

function fileFor(t: TestContext): string {
  return join(tempFolder(t), 'menshen.db')
}

async function openFor(t: TestContext, file: string): Promise<Store> {
  const store = await openSqliteStore({ file, now: Date.now })
  t.after(() => store.close())
  return store
}
