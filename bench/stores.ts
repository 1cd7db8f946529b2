// Menshen on each store in turn, empty at the start.

import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { readSettings } from '../src/settings/read.ts'
import { freePort } from '../test/kit/free-port.ts'
import { findProgram } from '../test/kit/packages.ts'
import { type Menshen, startMenshen } from './menshen.ts'
import type { Bench } from './part.ts'
import { folder, runToEnd, type Served, startUntil } from './processes.ts'

interface EmptyStore extends AsyncDisposable {
  /** For the setting STORE. */
  readonly address: string
  isUsed(): Promise<boolean>
}

const ALWAYS_THERE = { isUsed: async () => true, [Symbol.asyncDispose]: async () => {} }

const STORES = { lmdb: openLmdb, memory: openMemory, redis: startRedis } as const
export type StoreName = keyof typeof STORES

/** Says why one that cannot be measured here is left out. */
export async function* menshenOnEachStore(
  { cores, say }: Bench,
  provider: Served,
): AsyncGenerator<{ name: StoreName; menshen: Menshen }> {
  for (const name of Object.keys(STORES) as StoreName[]) {
    const obstacle = name === 'redis' ? redisObstacle() : undefined
    if (obstacle) {
      say(`${name} is left out: ${obstacle}`)
      continue
    }
    await using store = await STORES[name]()
    await using menshen = await startMenshen(store.address, provider, cores)
    if (await store.isUsed()) yield { name, menshen }
    else say(`${name} is left out: Menshen accepts its address but does not connect to it`)
  }
}

export async function openLmdb(): Promise<EmptyStore> {
  return { address: `lmdb:${mkdtempSync(join(folder, 'lmdb-'))}`, ...ALWAYS_THERE }
}

async function openMemory(): Promise<EmptyStore> {
  return { address: 'memory:', ...ALWAYS_THERE }
}

/** On loopback, without anything on the disk. */
async function startRedis(): Promise<EmptyStore> {
  const port = await freePort()
  const options = { port, bind: '127.0.0.1', save: '', appendonly: 'no', dir: folder }
  const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)])
  const running = await startUntil('Ready to accept connections', ['redis-server', ...args])
  return {
    address: `redis://127.0.0.1:${port}`,
    async isUsed() {
      const clients = await runToEnd(['redis-cli', '-p', String(port), 'client', 'list'])
      return clients.trim().split('\n').length > 1 // redis-cli is one itself
    },
    [Symbol.asyncDispose]: () => running[Symbol.asyncDispose](),
  }
}

function redisObstacle(): string | undefined {
  if (!findProgram('redis-server') || !findProgram('redis-cli')) return 'please install redis-server'
  try {
    readSettings({ STORE: 'redis://127.0.0.1' })
    return undefined
  } catch {
    return 'the setting STORE does not accept redis:// yet'
  }
}
