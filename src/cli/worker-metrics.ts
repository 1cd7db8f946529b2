// The metrics of all workers in the answer of any: it asks the first process, which asks every worker and sums up. What a worker
// that hangs or has died last told counts on, because a sum that goes down looks like a restart to Prometheus.
import cluster, { type Worker } from 'node:cluster'
import { z } from 'zod'
import { countersOf, type Exposition, type Gathering, gatherAlone, loadExposition } from '../observe/exposition.ts'

import { type MetricsSnapshot, metricsSnapshotSchema } from '../observe/metrics.ts'

/** For one that hangs. */
const WORKER_DEADLINE_MS = 1000
/** For a first process that hangs. */
const FIRST_DEADLINE_MS = 2000

const toFirst = z.discriminatedUnion('metrics', [
  z.object({ metrics: z.literal('wanted'), id: z.number() }),
  z.object({ metrics: z.literal('read'), id: z.number(), reading: metricsSnapshotSchema }),
])
const toWorker = z.discriminatedUnion('metrics', [
  z.object({ metrics: z.literal('asked'), id: z.number() }),
  z.object({ metrics: z.literal('written'), id: z.number(), text: z.string() }),
])

/** In a worker: answers the first process, and asks it. */
export const gatherFromWorkers: Gathering = read => {
  const waiting = new Map<number, (text: string) => void>()
  let asked = 0
  process.on('message', (received: unknown) => {
    const { data: message } = toWorker.safeParse(received)
    if (message?.metrics === 'written') waiting.get(message.id)?.(message.text)
    if (message?.metrics === 'asked')
      read().then(reading => tellFirst({ metrics: 'read', id: message.id, reading }), leaveUnanswered)
  })
  return async () => {
    const id = ++asked
    const { promise, resolve } = Promise.withResolvers<string>()
    const deadline = setTimeout(() => resolve(gatherAlone(read)()), FIRST_DEADLINE_MS)
    waiting.set(id, resolve)
    tellFirst({ metrics: 'wanted', id })
    return promise.finally(() => {
      clearTimeout(deadline)
      waiting.delete(id)
    })
  }
}

interface Question {
  readonly answered: Set<number>
  readonly unanswered: Set<number>
  /** Nobody else is waited for. */
  settle(): void
}

/** In the first process. */
export function sumUpWorkers(): void {
  const latest = new Map<number, MetricsSnapshot>()
  const questions = new Map<number, Question>()
  let asked = 0
  let ended: MetricsSnapshot = { counts: {}, gauges: {}, process: [] }
  let exposition: Exposition | undefined

  /** Gives those who have answered in time. */
  async function askAll(): Promise<ReadonlySet<number>> {
    const workers = Object.values(cluster.workers ?? {}).filter(worker => worker !== undefined)
    const id = ++asked
    const { promise: settled, resolve: settle } = Promise.withResolvers<void>()
    const question = { answered: new Set<number>(), unanswered: new Set(workers.map(({ id }) => id)), settle }
    const deadline = setTimeout(settle, WORKER_DEADLINE_MS)
    questions.set(id, question)
    for (const worker of workers) tell(worker, { metrics: 'asked', id })
    await settled
    clearTimeout(deadline)
    questions.delete(id)
    return question.answered
  }

  async function writeAll(): Promise<string> {
    exposition ??= await loadExposition()
    const answered = await askAll()
    const [here, silent] = [...latest].reduce<[MetricsSnapshot[], MetricsSnapshot[]]>(
      (both, [id, reading]) => {
        both[answered.has(id) ? 0 : 1].push(reading)
        return both
      },
      [[], []],
    )
    return exposition.writeMetrics(here, [ended, ...silent.map(countersOf)])
  }

  function waitNoMoreFor({ unanswered, settle }: Question, worker: number): void {
    if (unanswered.delete(worker) && unanswered.size === 0) settle()
  }

  cluster.on('message', (worker, received: unknown) => {
    const { data: message } = toFirst.safeParse(received)
    if (message?.metrics === 'wanted')
      writeAll().then(text => tell(worker, { metrics: 'written', id: message.id, text }), leaveUnanswered)
    const question = message?.metrics === 'read' && questions.get(message.id)
    if (!question) return
    latest.set(worker.id, message.reading)
    question.answered.add(worker.id)
    waitNoMoreFor(question, worker.id)
  })
  cluster.on('exit', ({ id }) => {
    for (const question of questions.values()) waitNoMoreFor(question, id)
    const last = latest.get(id)
    if (!last || !exposition) return
    ended = exposition.sumOf([ended, countersOf(last)])
    latest.delete(id)
  })
}

/** Whoever waits has a deadline, and its own numbers; no scrape may end a process. */
function leaveUnanswered(): void {}

/** Whoever has gone meanwhile is missed by nobody: there are deadlines. */
function tell(worker: Worker, message: z.infer<typeof toWorker>): void {
  worker.send(message, () => {})
}

function tellFirst(message: z.infer<typeof toFirst>): void {
  process.send?.(message, undefined, undefined, () => {})
}
