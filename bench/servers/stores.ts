// The stores that Menshen is measured on, each empty at the start.

import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../test/kit/free-port.ts'
import { findProgram } from '../../test/kit/packages.ts'
import type { Bench } from '../part.ts'
import { folder, startUntil } from './processes.ts'

export interface EmptyStore extends AsyncDisposable {
  /** For the setting STORE. */
  readonly address: string
}

const OPENERS = { sqlite: openSqlite, memory: openMemory, redis: startRedis } as const
export type StoreName = keyof typeof OPENERS
export const STORE_NAMES = Object.keys(OPENERS) as StoreName[]

export function openStore(name: StoreName): Promise<EmptyStore> {
  return OPENERS[name]()
}

/** The requested stores that are available; reports why one is left out. */
export function storesHere({ wants, say }: Pick<Bench, 'wants' | 'say'>): StoreName[] {
  const here = STORE_NAMES.filter(name => name !== 'redis' || hasRedis())
  if (here.length < STORE_NAMES.length) say('redis is left out: please install redis-server')
  return here.filter(wants)
}

export function hasRedis(): boolean {
  return findProgram('redis-server') !== undefined && findProgram('redis-cli') !== undefined
}

export async function openSqlite(): Promise<EmptyStore> {
  return {
    address: `sqlite:${join(mkdtempSync(join(folder, 'sqlite-')), 'menshen.db')}`,
    [Symbol.asyncDispose]: async () => {},
  }
}

async function openMemory(): Promise<EmptyStore> {
  return { address: 'memory:', [Symbol.asyncDispose]: async () => {} }
}

/** On loopback, without anything on the disk. */
export async function startRedis(): Promise<EmptyStore & { readonly pid: number; readonly port: number }> {
  const port = await freePort()
  const options = { port, bind: '127.0.0.1', save: '', appendonly: 'no', dir: folder }
  const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)])
  const running = await startUntil('Ready to accept connections', ['redis-server', ...args])
  const { pid = 0 } = running.child
  return {
    address: `redis://127.0.0.1:${port}`,
    pid,
    port,
    [Symbol.asyncDispose]: () => running[Symbol.asyncDispose](),
  }
}
