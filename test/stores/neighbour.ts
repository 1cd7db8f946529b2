// The near end of neighbour-process.ts.

import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { Store } from '../../src/stores/store.ts'
import type { Trail } from '../../src/stores/trail.ts'

export type Verb = Exclude<keyof Store, 'trail'> | `trail.${keyof Trail}`
export type Calls = readonly (readonly [verb: Verb, ...args: readonly unknown[]])[]
export type Outcome =
  | { readonly result: unknown; readonly error?: undefined }
  | { readonly result?: undefined; readonly error: string }
export interface Order {
  readonly id: number
  readonly calls: Calls
  readonly thenDie: boolean
}

export interface Neighbour {
  readonly process: ChildProcess
  /** What it has written to stderr so far. */
  readonly printed: readonly string[]
  /** The outcomes of the calls, made in parallel. Rejects if the process ends before. */
  readonly call: (...calls: Calls) => Promise<Outcome[]>
  /** Lets the process kill itself the moment that the calls have resolved, and waits for its end. */
  readonly callAndDie: (...calls: Calls) => Promise<void>
  /** Its exit code once it has ended by itself. */
  readonly leave: () => Promise<number | null>
}

export async function startNeighbour(file: string): Promise<Neighbour> {
  const child = fork(new URL('neighbour-process.ts', import.meta.url), [file], {
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  const printed: string[] = []
  child.stderr?.setEncoding('utf8').on('data', text => printed.push(text))
  const ended = once(child, 'exit')
  await once(child, 'message')

  const waiting = new Map<number, PromiseWithResolvers<Outcome[]>>()
  child.on('message', ({ id, outcomes }: { id: number; outcomes: Outcome[] }) => {
    waiting.get(id)?.resolve(outcomes)
    waiting.delete(id)
  })
  child.on('exit', (code, signal) => {
    for (const { reject } of waiting.values()) reject(new Error(`The neighbour ended with ${code ?? signal}.`))
  })
  let id = 0
  const order = (calls: Calls, thenDie: boolean) => {
    const answer = Promise.withResolvers<Outcome[]>()
    waiting.set(++id, answer)
    child.send({ id, calls, thenDie } satisfies Order)
    return answer.promise
  }

  return {
    process: child,
    printed,
    call: (...calls) => order(calls, false),
    async callAndDie(...calls) {
      await assert.rejects(order(calls, true), /SIGKILL/)
    },
    async leave() {
      if (child.connected) child.disconnect()
      const [code] = await ended
      return code
    },
  }
}
