// A reload of all workers together: the first process checks, has every worker prepare, and only then tells them to change. One
// that does not answer is ended; the one that replaces it starts with the new files.

import cluster, { type Worker } from 'node:cluster'
import { setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'
import { checkWhole } from '../menshen.ts'
import { fingerprintOf } from '../util/fingerprint.ts'
import {
  blamingWhole,
  type Rereading,
  readAgain,
  readSources,
  refusal,
  SourceProblem,
  type Sources,
} from './reload-sources.ts'
import type { PreparedReload, Reloader, Reloading } from './reloader.ts'

const ANSWER_WITHIN_MS = 10_000
/** Files that somebody writes just now look different to each worker; and at times there is none yet. */
const TRIES = 20
const TRY_AGAIN_MS = 300
const TELL_AGAIN_MS = 60_000

export function reloadWorkers(before: Sources, rereading: Rereading): Reloading {
  let inUse = before
  let onDue = () => {}
  let count = 0
  /** Those that may serve: they have read what is in use. */
  const admitted = new Set<Worker>()
  /** Those of them that have started by now. */
  const following = new Set<Worker>()
  let dueFor = ''

  /** Files that one would start with have changed. It asks again and again: what is refused is told of once a minute. */
  function askForReload(fingerprint: string): void {
    if (fingerprint === dueFor) return
    dueFor = fingerprint
    setTimeout(() => {
      dueFor = ''
    }, TELL_AGAIN_MS).unref()
    onDue()
  }

  async function isLikeOthers(fingerprint: string): Promise<boolean> {
    // As at a start: there is nobody whom it could differ from.
    if (admitted.size === 0) inUse = await readSources(rereading.readEnvironment, rereading.development)
    return fingerprint === fingerprintOf(inUse.parts)
  }

  cluster.on('message', async (worker, received: unknown) => {
    const { data: message } = toFirst.safeParse(received)
    if (message?.reload === 'starting') {
      const isSame = await isLikeOthers(message.fingerprint).catch(() => false)
      if (isSame) admitted.add(worker)
      else askForReload(message.fingerprint)
      tell(worker, { reload: 'start', isSame })
    }
    if (message?.reload === 'started') {
      following.add(worker)
      // The others have changed while it started.
      if (message.fingerprint !== fingerprintOf(inUse.parts)) onDue()
    }
  })
  cluster.on('exit', worker => {
    admitted.delete(worker)
    following.delete(worker)
  })

  async function tryToPrepare(): Promise<PreparedReload | undefined> {
    const { sources, changed } = await readAgain(inUse, rereading)
    blamingWhole(sources, () => checkWhole(sources.settings, sources.config))
    const id = ++count
    const asked = [...following]
    const answers = await askAll(asked, { reload: 'prepare', id })
    for (const answer of answers) if (answer?.reload === 'refused') throw refusal(answer.file, answer.detail)
    // One that has started meanwhile has read the files by itself.
    const prepared = asked.filter((_, n) => answers[n] !== undefined)
    const fingerprint = fingerprintOf(sources.parts)
    const isSame = answers.every(answer => !answer || ('fingerprint' in answer && answer.fingerprint === fingerprint))
    if (prepared.length === 0 || !isSame) return undefined
    return {
      sources,
      changed,
      async use(tells) {
        inUse = sources
        // One that has died since then is replaced by one that starts with these files.
        const [teller, ...others] = prepared.filter(worker => !worker.isDead())
        await Promise.all([
          askAll(teller ? [teller] : [], { reload: 'use', id, tells }),
          askAll(others, { reload: 'use', id, tells: false }),
        ])
      },
    }
  }

  return {
    async prepare() {
      for (let tries = 0; tries < TRIES; tries++) {
        const prepared = await tryToPrepare()
        if (prepared) return prepared
        await pause(TRY_AGAIN_MS)
      }
      throw refusal(inUse.configFile ?? '', 'The files changed again and again while they were read.')
    },
    whenDue(reload) {
      onDue = reload
    },
    noteRefused(refused) {
      for (const worker of following) tell(worker, { reload: 'refused', ...refused })
    },
  }
}

/** In their order; `undefined` of those who do not answer. */
function askAll(workers: readonly Worker[], question: Question): Promise<(Reply | undefined)[]> {
  return Promise.all(workers.map(worker => ask(worker, question)))
}

/** `undefined` if it does not answer in time, has died, or dies meanwhile. */
export async function ask(worker: Worker, question: Question): Promise<Reply | undefined> {
  const { promise, resolve } = Promise.withResolvers<Reply | undefined>()
  const hear = (received: unknown) => {
    const { data: answer } = toFirst.safeParse(received)
    if (answer && 'id' in answer && answer.id === question.id) resolve(answer)
  }
  const leave = () => resolve(undefined)
  const deadline = setTimeout(() => {
    worker.process.kill('SIGKILL')
    leave()
  }, ANSWER_WITHIN_MS)
  worker.on('message', hear)
  worker.once('exit', leave)
  // Nobody tells a second time that it has ended.
  if (worker.isDead()) leave()
  else tell(worker, question)
  try {
    return await promise
  } finally {
    clearTimeout(deadline)
    worker.off('message', hear)
    worker.off('exit', leave)
  }
}

/** One that is just ending cannot be told any more. */
function tell(worker: Worker, message: ToWorker): void {
  if (worker.isConnected()) worker.send(message, () => {})
}

// A reload in a worker: it prepares when the first process asks it to, and changes when that says so.

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

// What the first process and its workers say to each other about a reload.

const refused = { file: z.string(), detail: z.string() }

export const toWorker = z.discriminatedUnion('reload', [
  /** What it has read is what all have, or not. */
  z.object({ reload: z.literal('start'), isSame: z.boolean() }),
  z.object({ reload: z.literal('prepare'), id: z.number() }),
  z.object({ reload: z.literal('use'), id: z.number(), tells: z.boolean() }),
  z.object({ reload: z.literal('refused'), ...refused }),
])

export const toFirst = z.discriminatedUnion('reload', [
  /** What it would start with. */
  z.object({ reload: z.literal('starting'), fingerprint: z.string() }),
  /** What it has started with. */
  z.object({ reload: z.literal('started'), fingerprint: z.string() }),
  z.object({ reload: z.literal('prepared'), id: z.number(), fingerprint: z.string() }),
  z.object({ reload: z.literal('refused'), id: z.number(), ...refused }),
  z.object({ reload: z.literal('used'), id: z.number() }),
])

export type ToWorker = z.infer<typeof toWorker>
export type ToFirst = z.infer<typeof toFirst>
/** What is to be answered. */
export type Question = Extract<ToWorker, { id: number }>
/** An answer to what has this number. */
export type Reply = Extract<ToFirst, { id: number }>
