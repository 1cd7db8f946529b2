// A bare node:http server that answers everything as another server answered once: the same status, headers and bytes.

import { join } from 'node:path'
import { askAs } from '../measure/answer.ts'
import { folder, type Served, startScript } from './processes.ts'
import { weightOf, writeRecorded } from './recorded-answer.ts'

interface Twin {
  /** The bytes of the request whose answer is recorded, and the status that it should have. */
  readonly request: string
  readonly expected?: number
  /** The command that runs the bare server on its core. */
  readonly on: readonly string[]
  /** The script of the bare server, and its further arguments. */
  readonly script?: readonly [path: string, ...args: string[]]
}

export async function startTwin(url: string, twin: Twin): Promise<Served> {
  const { request, expected = 200, on, script: [path, ...args] = ['bare-server.ts'] } = twin
  const answer = await askAs(url, request)
  if (answer.status !== expected) throw new Error(`${url} answered ${answer.status} ${answer.body}`)
  const file = join(folder, `answer-${Date.now()}.json`)
  writeRecorded(file, answer)
  const bare = await startScript(path, on, file, ...args)
  if (weightOf(await askAs(bare.url, request)) !== weightOf(answer)) {
    throw new Error(`the bare server differs from ${url}`)
  }
  return bare
}
