// A reload of all workers together: the first process checks, has every worker prepare, and only then tells them to change. One
// that does not answer is ended; the one that replaces it starts with the new files.
import cluster, { type Worker } from 'node:cluster'
import { setTimeout as pause } from 'node:timers/promises'
import { checkWhole } from '../../create/configuration.ts'
import { fingerprintOf } from '../../settings/reload/fingerprint.ts'
import { blamingWhole, type Rereading, readAgain, refusal } from './read-again.ts'
import type { Sources } from './read-sources.ts'
import type { PreparedReload, Reloading } from './reloader.ts'
import { type Reply, type ToWorker, toFirst } from './worker-messages.ts'

const ANSWER_WITHIN_MS = 10_000
/** Files that somebody writes just now look different to each worker; and at times there is none yet. */
const TRIES = 20
const TRY_AGAIN_MS = 300

export function reloadWorkers(before: Sources, rereading: Rereading): Reloading {
  let inUse = before
  let onDue = () => {}
  let count = 0
  /** Those that have started with what is in use, or have changed since. */
  const following = new Set<Worker>()

  cluster.on('message', (worker, received: unknown) => {
    const { data: message } = toFirst.safeParse(received)
    if (message?.reload !== 'started') return
    following.add(worker)
    // Somebody has changed files between two starts: all shall have the same.
    if (message.fingerprint !== fingerprintOf(inUse.parts)) onDue()
  })
  cluster.on('exit', worker => following.delete(worker))

  async function tryToPrepare(): Promise<PreparedReload | undefined> {
    const { sources, changed } = await readAgain(inUse, rereading)
    blamingWhole(sources, () => checkWhole(sources.settings, sources.config))
    const id = ++count
    const asked = [...following]
    const answers = await askAll(asked, { reload: 'prepare', id })
    for (const answer of answers) if (answer?.reload === 'refused') throw refusal(answer.file, answer.detail)
    // One that has started meanwhile has read the files by itself.
    const [teller, ...others] = asked.filter((_, n) => answers[n] !== undefined)
    const fingerprint = fingerprintOf(sources.parts)
    const isSame = answers.every(answer => !answer || ('fingerprint' in answer && answer.fingerprint === fingerprint))
    if (!teller || !isSame) return undefined
    return {
      sources,
      changed,
      async use(tells) {
        inUse = sources
        await Promise.all([
          askAll([teller], { reload: 'use', id, tells }),
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
function askAll(
  workers: readonly Worker[],
  question: Exclude<ToWorker, { reload: 'refused' }>,
): Promise<(Reply | undefined)[]> {
  return Promise.all(workers.map(worker => ask(worker, question)))
}

async function ask(worker: Worker, question: Exclude<ToWorker, { reload: 'refused' }>): Promise<Reply | undefined> {
  const { promise, resolve } = Promise.withResolvers<Reply | undefined>()
  const hear = (received: unknown) => {
    const { data: answer } = toFirst.safeParse(received)
    if (answer && answer.reload !== 'started' && answer.id === question.id) resolve(answer)
  }
  const leave = () => resolve(undefined)
  const deadline = setTimeout(() => worker.process.kill('SIGKILL'), ANSWER_WITHIN_MS)
  worker.on('message', hear)
  worker.once('exit', leave)
  tell(worker, question)
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
  if (worker.isConnected()) worker.send(message)
}
