// A site of the day: Menshen with two workers, its store, its folder and its clock, which the day can step.

import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { TestContext } from 'node:test'
import { connect } from 'node:tls'
import { memoryOf } from '../../../bench/process-memory.ts'
import { createClient } from '../../kit/client.ts'
import { freePort } from '../../kit/free-port.ts'
import { type Environment, type Instance, isAlive, isReady, runMenshen, startInstance } from '../../kit/instance.ts'
import { tempFolder } from '../../kit/temp.ts'
import { until } from '../../kit/until.ts'
import { makeAuthority, makeCertificate } from '../../proxies/certificates.ts'

const WORKERS = 2
/** A second host name of each site, in front of the same application. */
export const HOST = 'wiki.test'

export interface SiteOptions {
  readonly name: string
  readonly env: Environment
  /** Whether it speaks HTTPS, and so HTTP/2. */
  readonly tls: boolean
  /** The folder of its audit file. */
  readonly logs: string
  /** Bytes in its store. */
  storeSize(): Promise<number>
}

export type Site = Awaited<ReturnType<typeof startSite>>

export async function startSite(t: TestContext, { name, env, tls, logs, storeSize }: SiteOptions) {
  const folder = tempFolder(t)
  const clock = join(folder, 'clock')
  const auditFile = join(logs, 'audit.jsonl')
  const certificate = tls ? createCertificate(folder) : undefined
  const settings = {
    ...env,
    ...certificate?.settings,
    ...fakeTime(clock),
    PORT: String(await freePort()),
    AUDIT_FILE: auditFile,
    // Fewer than the first quarter of a day has: from then on, a store that grows is a leak.
    AUDIT_KEEP: '500',
  }
  let revision = 1
  let rotations = 0
  let deaths = 0
  setClock(0)
  configure(closedAt(revision))
  let instance = await start()

  async function start(): Promise<Instance> {
    const started = await startInstance({ ...settings, WORKERS: String(WORKERS) }, { cwd: folder })
    t.after(() => started.killAll('SIGKILL'))
    await until(() => started.workers().length === WORKERS)
    return started
  }

  /** Relative to the real one. */
  function setClock(seconds: number): void {
    writeFileSync(`${clock}.next`, `${seconds < 0 ? '' : '+'}${seconds}s\n`)
    renameSync(`${clock}.next`, clock)
  }

  /** By what it puts into its answers. */
  async function clockSeconds(): Promise<number> {
    const { headers } = await createClient(instance.url).get('/_menshen/health')
    return (Date.parse(headers.date ?? '') - Date.now()) / 1000
  }

  /** As a whole: a file that is being written is seen empty by who watches it. */
  function configure(rules: readonly object[]): void {
    const next = join(folder, 'next.ts')
    const hosts = { [HOST]: { upstream: env.UPSTREAM } }
    writeFileSync(next, `export default ${JSON.stringify({ rules, hosts })}\n`)
    renameSync(next, join(folder, 'menshen.config.ts'))
  }

  function countLines(event: string): number {
    return instance.lines.filter(line => line.event === event).length
  }

  async function hangUp(event: 'config_reloaded' | 'config_refused'): Promise<void> {
    const before = countLines(event)
    process.kill(instance.pid, 'SIGHUP')
    await until(() => countLines(event) > before)
  }

  function processes(): number[] {
    return isAlive(instance.pid) ? [instance.pid, ...instance.workers()] : []
  }

  return {
    name,
    url: instance.url,
    /** Resolves when it shows: the processes look at the file once a second. */
    async stepClock(seconds: number): Promise<void> {
      setClock(seconds)
      await until(async () => Math.abs((await clockSeconds()) - seconds) < 3)
    },

    processes,

    workers: () => instance.workers(),

    /** Closes `/closed-N` to everybody but developers, and opens the one before. Returns N. */
    async reload(): Promise<number> {
      revision += 1
      configure(closedAt(revision))
      await hangUp('config_reloaded')
      return revision
    },

    async reloadRefused(): Promise<number> {
      configure([{ path: 'no-slash', public: true }])
      await hangUp('config_refused')
      return revision
    },

    /** As logrotate does it. */
    async rotate(): Promise<void> {
      renameSync(auditFile, `${auditFile}.${++rotations}`)
      process.kill(instance.pid, 'SIGHUP')
      await until(() => existsSync(auditFile))
    },

    /** Resolves when new connections get the new one. */
    async replaceCertificate(): Promise<void> {
      const serial = certificate?.replace()
      await until(async () => (await serialAt(instance.url)) === serial)
    },

    /** Says what is wrong with the copy, or `ok`. */
    async backUp(): Promise<unknown> {
      const copy = join(folder, 'copy.db')
      const { code, errors } = await runMenshen({ STORE: env.STORE ?? '' }, { args: ['backup', copy], cwd: folder })
      assert.equal(code, 0, errors)
      const database = new DatabaseSync(copy, { readOnly: true })
      try {
        return Object(database.prepare('PRAGMA integrity_check').get()).integrity_check
      } finally {
        database.close()
        rmSync(copy)
      }
    },

    /** Who signed in, by the audit files of the whole day. */
    auditedUsers(): Set<string> {
      const names = readdirSync(logs).filter(name => name.startsWith('audit.jsonl'))
      const lines = names.flatMap(name => readFileSync(join(logs, name), 'utf8').split('\n').filter(Boolean))
      const events = lines.flatMap(eventIn)
      return new Set(events.filter(({ event }) => event === 'sign_in').map(({ user }) => user))
    },

    async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
      const exit = await (signal === 'SIGTERM' ? instance.stop() : instance.killAll(signal))
      if (signal === 'SIGTERM') assert.deepEqual(exit, { code: 0, signal: null })
    },

    async startAgain(): Promise<void> {
      deaths += countLines('worker_died')
      instance = await start()
    },

    /** Of workers, by what the log of all its instances says. */
    deaths: () => deaths + countLines('worker_died'),

    /** Not while its first process is being replaced. */
    isWhole: async () =>
      (await isReady(instance.url)) && isAlive(instance.pid) && instance.workers().length === WORKERS,

    async measure(): Promise<{ memory: number; descriptors: number; store: number }> {
      const alive = processes()
      return {
        memory: sum(alive, pid => memoryOf(pid).anonymous),
        descriptors: sum(alive, pid => readdirSync(`/proc/${pid}/fd`).length),
        store: await storeSize(),
      }
    },

    stop: () => instance.stop(),
  }
}

function closedAt(revision: number): object[] {
  return [
    { path: `/closed-${revision}`, roles: ['developer'] },
    { path: '/api', roles: ['*'], keys: 'personal' },
  ]
}

function createCertificate(folder: string) {
  const authority = makeAuthority(folder)
  const { certFile, keyFile } = makeCertificate(folder, 'used', authority)
  let made = 0
  return {
    settings: { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile },
    /** The serial number of the new one. */
    replace(): string {
      const next = makeCertificate(folder, `next-${++made}`, authority)
      const { serialNumber } = new X509Certificate(readFileSync(next.certFile))
      renameSync(next.keyFile, keyFile)
      renameSync(next.certFile, certFile)
      return serialNumber
    },
  }
}

function serialAt(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port: Number(new URL(url).port), rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().serialNumber)
      socket.destroy()
    })
    socket.on('error', reject)
  })
}

/** The time of day alone: timers go on as they are, as when an operator sets the clock. */
function fakeTime(clock: string): Environment {
  const library = `/usr/lib/${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu/faketime/libfaketimeMT.so.1`
  return {
    LD_PRELOAD: library,
    FAKETIME_TIMESTAMP_FILE: clock,
    FAKETIME_CACHE_DURATION: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
    NO_FAKE_STAT: '1',
  }
}

function sum(pids: readonly number[], of: (pid: number) => number): number {
  return pids.reduce((total, pid) => total + of(pid), 0)
}

/** None in a line that a full disk has cut off: it was written again as a whole. */
function eventIn(line: string): { event: string; user: string }[] {
  try {
    return [JSON.parse(line)]
  } catch {
    return []
  }
}
