// Menshen as its operators run it, and the provider that it signs users in with: processes of their own.

import { performance } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import { freePort } from '../../test/kit/free-port.ts'
import { ask } from '../measure/answer.ts'
import { writeConfiguration } from './configuration.ts'
import type { Cores } from './cores.ts'
import { type Served, script, served, start, startScript } from './processes.ts'

export interface Menshen extends Served {
  /** From the start of the process to the first answer that says ready. */
  readonly startMs: number
}

export const CLIENT_SECRET = 'only-for-the-benchmarks'
const START_DEADLINE_MS = 30_000
const POLL_MS = 10

/** `expiresIn` is the lifetime of the tokens that a sign-in gives, in seconds. */
export async function startProvider(expiresIn: number): Promise<Served> {
  return startScript('provider.ts', [], expiresIn)
}

export async function startMenshen(
  store: string,
  provider: Served,
  cores: Cores,
  more: Readonly<Record<string, string>> = {},
): Promise<Menshen> {
  const port = await freePort()
  const startedAt = performance.now()
  const running = start(script('../../src/command/main.ts'), {
    on: cores.server,
    env: {
      BASE_URL: `http://127.0.0.1:${port}`,
      AUTH_URL: provider.url,
      CLIENT_ID: 'bench',
      CLIENT_SECRET,
      STORE: store,
      LOG_LEVEL: 'error',
      RATE_LIMIT_PER_MINUTE: '0',
      TRUSTED_PROXIES: '127.0.0.1',
      CONFIG: writeConfiguration(),
      ...more,
    },
  })
  const menshen = served(port, running)
  running.child.stdout?.pipe(process.stderr)
  while (!(await isReady(menshen))) {
    const { exitCode, signalCode } = running.child
    const ended = exitCode !== null || signalCode !== null
    if (ended || performance.now() - startedAt > START_DEADLINE_MS) {
      await running[Symbol.asyncDispose]()
      throw new Error(`Menshen did not get ready with STORE=${store}`)
    }
    await pause(POLL_MS)
  }
  return { ...menshen, startMs: performance.now() - startedAt }
}

/** The cookie of a new session. */
export async function signIn({ url }: Served, username: string): Promise<string> {
  const { headers } = await ask(`${url}/callback?code=${username}&state=bench_idp`)
  const [cookie] = /menshen_session=[^;]+/.exec(headers['set-cookie'] ?? '') ?? []
  if (!cookie) throw new Error(`${username} was not signed in but sent to ${headers.location}`)
  return cookie
}

async function isReady({ url }: Served): Promise<boolean> {
  return ask(`${url}/_menshen/ready`).then(
    ({ status }) => status === 200,
    () => false,
  )
}
