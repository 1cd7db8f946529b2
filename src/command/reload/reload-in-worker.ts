// A reload in a worker: it prepares when the first process asks it to, and changes when that says so.
import { setTimeout as pause } from 'node:timers/promises'
import { fingerprintOf } from '../../settings/reload/fingerprint.ts'
import { SourceProblem, type Sources } from './read-sources.ts'
import type { PreparedReload, Reloader, Reloading } from './reloader.ts'
import { type ToFirst, toWorker } from './worker-messages.ts'

const ASK_AGAIN_MS = 1000

/**
 * A worker that replaces another reads the files as they are, which may be what the others have refused. It serves nobody before
 * it has what they have.
 */
export async function readLikeOthers(read: () => Promise<Sources>): Promise<Sources> {
  let sources: Sources | undefined = await read()
  while (!(sources && (await isLikeOthers(sources)))) {
    await pause(ASK_AGAIN_MS)
    // They may just be written, in order to be mended.
    sources = await read().catch(() => undefined)
  }
  return sources
}

function isLikeOthers({ parts }: Sources): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const hear = (received: unknown) => {
    const { data: answer } = toWorker.safeParse(received)
    if (answer?.reload === 'start') resolve(answer.isSame)
  }
  process.on('message', hear)
  tellFirst({ reload: 'starting', fingerprint: fingerprintOf(parts) })
  return promise.finally(() => process.off('message', hear))
}

/** It does nothing by itself. */
export function followFirst(reloading: Reloading, { parts }: Sources): Reloader {
  let prepared: { readonly id: number; readonly reload: PreparedReload } | undefined

  async function prepare(id: number): Promise<ToFirst> {
    prepared = undefined
    try {
      const reload = await reloading.prepare()
      prepared = { id, reload }
      return { reload: 'prepared', id, fingerprint: fingerprintOf(reload.sources.parts) }
    } catch (error) {
      const file = error instanceof SourceProblem ? error.file : ''
      return { reload: 'refused', id, file, detail: error instanceof Error ? error.message : String(error) }
    }
  }

  async function use(id: number, tells: boolean): Promise<ToFirst | undefined> {
    if (prepared?.id !== id) return undefined
    try {
      await prepared.reload.use(tells)
      return { reload: 'used', id }
    } catch (error) {
      return { reload: 'refused', id, file: '', detail: error instanceof Error ? error.message : String(error) }
    }
  }

  process.on('message', async (received: unknown) => {
    const { data: message } = toWorker.safeParse(received)
    if (message?.reload === 'refused') reloading.noteRefused(message)
    if (message?.reload === 'prepare') tellFirst(await prepare(message.id))
    if (message?.reload === 'use') tellFirst(await use(message.id, message.tells))
  })
  tellFirst({ reload: 'started', fingerprint: fingerprintOf(parts) })
  return { reload() {}, async close() {} }
}

function tellFirst(message: ToFirst | undefined): void {
  if (message) process.send?.(message, undefined, undefined, () => {})
}
