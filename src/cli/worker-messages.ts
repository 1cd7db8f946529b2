// The messages between the primary process and its workers: one schema for all, and one way to ask and wait for the answer.

import cluster, { type Worker } from 'node:cluster'
import { z } from 'zod'
import { metricsSnapshotSchema } from '../observe/series.ts'

const refusal = { file: z.string(), detail: z.string() }

const workerMessage = z.discriminatedUnion('type', [
  // A worker asks whether it may serve with what it has read, and reports when it serves.
  z.object({ type: z.literal('may_start'), fingerprint: z.string() }),
  z.object({ type: z.literal('start'), isSame: z.boolean() }),
  z.object({ type: z.literal('started'), fingerprint: z.string() }),

  // The primary asks for a reload in two steps, and reports a refused one. `reload` is its number.
  z.object({ type: z.literal('prepare_reload'), reload: z.number() }),
  z.object({ type: z.literal('reload_prepared'), fingerprint: z.string() }),
  z.object({ type: z.literal('use_reload'), reload: z.number(), shouldReport: z.boolean() }),
  z.object({ type: z.literal('reload_used') }),
  z.object({ type: z.literal('reload_refused'), ...refusal }),

  // A worker asks for the metrics of all workers, and the primary asks each worker for its own.
  z.object({ type: z.literal('write_metrics') }),
  z.object({ type: z.literal('metrics_written'), text: z.string() }),
  z.object({ type: z.literal('read_metrics') }),
  z.object({ type: z.literal('metrics_read'), snapshot: metricsSnapshotSchema }),
])

export type WorkerMessage = z.infer<typeof workerMessage>

/** A question and its answer have the same number. */
const envelope = z.object({ kind: z.enum(['tell', 'ask', 'answer']), id: z.number(), message: workerMessage })

type Envelope = z.infer<typeof envelope>
/** Answers a message if it is a question; `undefined` leaves it unanswered. */
type Handler<From extends unknown[]> = (
  message: WorkerMessage,
  ...from: From
) => WorkerMessage | undefined | Promise<WorkerMessage | undefined>

/** The primary's side. */
export interface WorkerChannel {
  send(worker: Worker, message: WorkerMessage): void
  /** `undefined` if the worker does not answer in time or is no longer connected. */
  ask(worker: Worker, message: WorkerMessage, deadlineMs: number): Promise<WorkerMessage | undefined>
  handle(handler: Handler<[worker: Worker]>): void
}

export function createWorkerChannel(): WorkerChannel {
  const handlers: Handler<[Worker]>[] = []
  const waiting = createWaiting<Worker>()
  const send = (worker: Worker, sent: Envelope) => {
    // A worker that is exiting can no longer be told.
    if (worker.isConnected()) worker.send(sent, () => {})
  }
  cluster.on('message', (worker, received: unknown) => {
    const { data } = envelope.safeParse(received)
    if (data?.kind === 'answer') waiting.resolve(data)
    else if (data)
      void answer(data, handlers, [worker], message => send(worker, { kind: 'answer', id: data.id, message }))
  })
  cluster.on('disconnect', worker => waiting.abandon(worker))
  return {
    send: (worker, message) => send(worker, { kind: 'tell', id: 0, message }),
    async ask(worker, message, deadlineMs) {
      if (!worker.isConnected()) return undefined
      return waiting.add(worker, deadlineMs, id => send(worker, { kind: 'ask', id, message }))
    },
    handle: handler => void handlers.push(handler),
  }
}

/** A worker's side. */
export interface PrimaryChannel {
  send(message: WorkerMessage): void
  /** `undefined` if the primary does not answer in time. */
  ask(message: WorkerMessage, deadlineMs: number): Promise<WorkerMessage | undefined>
  handle(handler: Handler<[]>): void
}

export function createPrimaryChannel(): PrimaryChannel {
  const handlers: Handler<[]>[] = []
  const waiting = createWaiting<undefined>()
  const send = (sent: Envelope) => void process.send?.(sent, undefined, undefined, () => {})
  process.on('message', (received: unknown) => {
    const { data } = envelope.safeParse(received)
    if (data?.kind === 'answer') waiting.resolve(data)
    else if (data) void answer(data, handlers, [], message => send({ kind: 'answer', id: data.id, message }))
  })
  return {
    send: message => send({ kind: 'tell', id: 0, message }),
    ask: (message, deadlineMs) => waiting.add(undefined, deadlineMs, id => send({ kind: 'ask', id, message })),
    handle: handler => void handlers.push(handler),
  }
}

/** Questions that wait for their answers, keyed by number. */
function createWaiting<Peer>() {
  const waiting = new Map<number, { readonly peer: Peer; resolve(message: WorkerMessage | undefined): void }>()
  let count = 0
  return {
    async add(peer: Peer, deadlineMs: number, send: (id: number) => void): Promise<WorkerMessage | undefined> {
      const id = ++count
      const { promise, resolve } = Promise.withResolvers<WorkerMessage | undefined>()
      const deadline = setTimeout(() => resolve(undefined), deadlineMs)
      waiting.set(id, { peer, resolve })
      send(id)
      return promise.finally(() => {
        clearTimeout(deadline)
        waiting.delete(id)
      })
    },
    resolve: ({ id, message }: Envelope) => waiting.get(id)?.resolve(message),
    /** No answer will come from this peer. */
    abandon(gone: Peer) {
      for (const { peer, resolve } of waiting.values()) if (peer === gone) resolve(undefined)
    },
  }
}

/** Sends the first answer of a handler. A handler that fails leaves the question unanswered: the other side has a deadline. */
async function answer<From extends unknown[]>(
  { kind, message }: Envelope,
  handlers: readonly Handler<From>[],
  from: From,
  send: (message: WorkerMessage) => void,
): Promise<void> {
  for (const handle of handlers) {
    const given = await Promise.try(() => handle(message, ...from)).catch(() => undefined)
    if (given && kind === 'ask') return send(given)
  }
}
