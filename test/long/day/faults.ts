// What goes wrong in the day. Each fault says what a client may see of it; whatever else a client sees fails the day.

import assert from 'node:assert/strict'
import { type ChildProcess, execFile, execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, rmdirSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Client, createClient, signIn } from '../../kit/client.ts'
import { PRIMARY_NAME, type RedisServer, type startWithSentinels } from '../../kit/redis-server.ts'
import { requireUtilLinux } from '../../kit/requirements.ts'
import type { ScriptedProvider } from '../../kit/scripted-provider.ts'
import { until } from '../../kit/until.ts'
import type { Random } from '../../security/random.ts'
import type { Site } from './site.ts'

const run = promisify(execFile)

export interface World {
  readonly embedded: Site
  readonly redis: Site
  readonly servers: RedisPair
  /** Of the embedded store and its audit file. */
  readonly disk: Disk
  readonly provider: ScriptedProvider
  readonly application: Application
  readonly random: Random
  /** Somebody who is signed in all day at this site. */
  watcherAt(site: Site): Client
}

export type Where = 'embedded' | 'redis' | 'both'

export interface Fault {
  readonly name: string
  /** Statuses, codes of socket errors, and words of users.ts. */
  readonly expected: readonly string[]
  /** Where it can happen; one of them is chosen. */
  readonly at: readonly Where[]
  /** Whether it lasts for some seconds; otherwise what is done in `begin` is all of the cause. */
  readonly lasts: boolean
  /** Whether it ends processes of Menshen. */
  readonly endsProcesses?: boolean
  /** Resolves with what removes it, or waits until it has passed. */
  begin(world: World, site: Site): Promise<() => Promise<void> | void>
}

const CUT_OFF = ['ECONNRESET', 'EPIPE', 'stream ended']
/** Streams stay: a store that does not answer proves nothing. */
const STORE_AWAY = ['503', 'sign-in: callback_error']
const PROVIDER_CALLS = ['token', 'refresh', 'userinfo', 'logout'] as const
const SLOW_MS = 1500
const SIGN_INS_AT_ONCE = 20
/** The size of a block of the disk: the last write that succeeds leaves no room. */
const FILL_BYTES = 4096
const DISK_SIZE = '64m'
/** Less than what is left of a token when it is due, so that no session has a reason to end. */
const CLOCK_STEPS_SECONDS = [-45, -20, 20, 45]

export const FAULTS: readonly Fault[] = [
  {
    name: 'provider down',
    expected: ['sign-in: token_error'],
    at: ['both'],
    lasts: true,
    async begin({ provider }) {
      for (const call of PROVIDER_CALLS) provider.answer(call, { kind: 'cut', when: 'at once' })
      return () => {
        for (const call of PROVIDER_CALLS) provider.answer(call, { kind: 'normal' })
      }
    },
  },
  {
    name: 'provider slow',
    expected: [],
    at: ['both'],
    lasts: true,
    async begin({ provider }) {
      for (const call of PROVIDER_CALLS) provider.answer(call, { kind: 'delay', ms: SLOW_MS })
      return () => {
        for (const call of PROVIDER_CALLS) provider.answer(call, { kind: 'normal' })
      }
    },
  },
  {
    name: 'Redis failover',
    expected: STORE_AWAY,
    at: ['redis'],
    lasts: false,
    async begin({ servers }) {
      await servers.killPrimary()
      return () => servers.restore()
    },
  },
  {
    name: 'Redis hangs',
    expected: STORE_AWAY,
    at: ['redis'],
    lasts: false,
    // Shorter than what the sentinels take for its death.
    async begin({ servers, random }) {
      servers.pausePrimary()
      await pause(500 + random.below(1000))
      return () => servers.resumePrimary()
    },
  },
  {
    name: 'worker killed',
    expected: CUT_OFF,
    at: ['embedded', 'redis'],
    lasts: false,
    endsProcesses: true,
    async begin({ random }, site) {
      process.kill(random.pick(site.workers()), 'SIGKILL')
      return () => {}
    },
  },
  {
    name: 'worker killed while it writes',
    expected: CUT_OFF,
    at: ['embedded', 'redis'],
    lasts: false,
    endsProcesses: true,
    async begin({ provider, random }, site) {
      const signIns = Array.from({ length: SIGN_INS_AT_ONCE }, (_, n) =>
        signIn(createClient(site.url), provider, { username: `crowd-${n}` }).catch(() => {}),
      )
      // One of them has got its tokens: the store is written to.
      await Promise.race(signIns)
      process.kill(random.pick(site.workers()), 'SIGKILL')
      await Promise.all(signIns)
      return () => {}
    },
  },
  {
    name: 'SIGTERM and start',
    expected: [...CUT_OFF, 'ECONNREFUSED', '503'],
    at: ['embedded', 'redis'],
    lasts: false,
    endsProcesses: true,
    async begin(_, site) {
      await site.end('SIGTERM')
      return () => site.startAgain()
    },
  },
  {
    name: 'SIGKILL and start',
    expected: [...CUT_OFF, 'ECONNREFUSED'],
    at: ['embedded', 'redis'],
    lasts: false,
    endsProcesses: true,
    async begin(_, site) {
      await site.end('SIGKILL')
      return () => site.startAgain()
    },
  },
  {
    name: 'reload',
    expected: [],
    at: ['embedded', 'redis'],
    lasts: false,
    async begin(world, site) {
      const revision = await site.reload()
      return () => untilClosed(world, site, revision)
    },
  },
  {
    name: 'reload refused',
    expected: [],
    at: ['embedded', 'redis'],
    lasts: true,
    async begin(world, site) {
      const revision = await site.reloadRefused()
      await untilClosed(world, site, revision)
      return async () => untilClosed(world, site, await site.reload())
    },
  },
  {
    name: 'certificate replaced',
    expected: [],
    at: ['embedded'],
    lasts: false,
    async begin(_, site) {
      await site.replaceCertificate()
      return () => {}
    },
  },
  {
    name: 'backup',
    expected: [],
    at: ['embedded'],
    lasts: false,
    async begin(_, site) {
      assert.equal(await site.backUp(), 'ok')
      return () => {}
    },
  },
  {
    name: 'log rotation',
    expected: [],
    at: ['embedded', 'redis'],
    lasts: false,
    async begin(_, site) {
      await site.rotate()
      return () => {}
    },
  },
  {
    name: 'clock step',
    expected: [],
    at: ['embedded', 'redis'],
    lasts: true,
    async begin({ random }, site) {
      await site.stepClock(random.pick(CLOCK_STEPS_SECONDS))
      return () => site.stepClock(0)
    },
  },
  {
    name: 'disk full',
    expected: STORE_AWAY,
    at: ['embedded'],
    lasts: true,
    async begin({ disk }) {
      disk.fill()
      return () => disk.empty()
    },
  },
  {
    name: 'writes fail',
    expected: STORE_AWAY,
    at: ['embedded'],
    lasts: true,
    // A full disk may leave the store room within its file. With this limit no write to a file succeeds.
    async begin(_, site) {
      const limit = (size: string) =>
        Promise.all(
          site.processes().map(pid => run(requireUtilLinux('prlimit'), ['--pid', `${pid}`, `--fsize=${size}:`])),
        )
      await limit('1')
      return async () => void (await limit('unlimited'))
    },
  },
  {
    name: 'application down',
    expected: ['502', '503', 'stream ended'],
    at: ['both'],
    lasts: true,
    async begin({ application }) {
      await application.kill()
      return () => application.start()
    },
  },
]

/** Both workers have the configuration: many connections reach both. */
async function untilClosed({ watcherAt }: World, site: Site, revision: number): Promise<void> {
  const watcher = watcherAt(site)
  await until(async () => {
    const asked = Array.from({ length: 8 }, () => watcher.get(`/closed-${revision}`))
    const before = watcher.get(`/closed-${revision - 1}`)
    return (await Promise.all(asked)).every(({ status }) => status === 403) && (await before).status === 200
  })
}

export type Disk = ReturnType<typeof mountDisk>

/** A small disk in memory, which only root can make. It ends with this process. */
export function mountDisk() {
  const folder = mkdtempSync(join(tmpdir(), 'menshen-disk-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_SIZE}`, 'tmpfs', folder])
  process.once('exit', () => {
    // Processes that have just been killed may still have a file of it open.
    execFileSync('umount', ['--lazy', folder])
    rmdirSync(folder)
  })
  const file = join(folder, 'filled')
  return {
    folder,
    fill(): void {
      const handle = openSync(file, 'w')
      try {
        for (;;) writeSync(handle, Buffer.alloc(FILL_BYTES))
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
      } finally {
        closeSync(handle)
      }
    },
    empty: () => rmSync(file),
  }
}

export type RedisPair = ReturnType<typeof createRedisPair>

/** Takes turns: after a failover the one that was killed comes back as the replica of the other. */
export function createRedisPair({ primary, replica, sentinels }: Awaited<ReturnType<typeof startWithSentinels>>) {
  let [first, second]: [RedisServer, RedisServer] = [primary, replica]
  // A server that changes its part drops its connections.
  const ask = (server: RedisServer, ...words: string[]) => server.command(...words).catch(() => '')
  const replication = (server: RedisServer) => ask(server, 'INFO', 'replication')
  return {
    primary: () => first,

    async killPrimary(): Promise<void> {
      await first.kill()
    },

    /** Resolves when the sentinels would be ready for the next failover. */
    async restore(): Promise<void> {
      await until(async () => (await replication(second)).includes('role:master'))
      const known = () =>
        Promise.all(sentinels.map(one => ask(one, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', PRIMARY_NAME)))
      await until(async () => (await known()).every(address => address.endsWith(`${second.port}`)))
      await first.restart()
      ;[first, second] = [second, first]
      await until(async () => (await replication(second)).includes('master_link_status:up'))
      for (const one of sentinels)
        await until(async () => /status=ok,.*slaves=1,sentinels=3/.test(await ask(one, 'INFO', 'sentinel')))
    },

    pausePrimary: () => void first.pause(),
    resumePrimary: () => void first.resume(),

    async size(): Promise<number> {
      const info = await ask(first, 'INFO', 'memory')
      return Number(/used_memory_dataset:(\d+)/.exec(info)?.[1] ?? Number.NaN)
    },
  }
}

export type Application = ReturnType<typeof createApplication>

export function createApplication(port: number, folder: string) {
  const script = fileURLToPath(new URL('./application.ts', import.meta.url))
  let child: ChildProcess | undefined
  return {
    url: `http://127.0.0.1:${port}`,
    async start(): Promise<void> {
      child = fork(script, [String(port), folder])
      await once(child, 'message')
    },
    async kill(): Promise<void> {
      if (!child || child.signalCode) return
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    },
  }
}
