// An embedded store that already has many sessions.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { CLIENT_SECRET } from './client-secret.ts'
import type { Cores } from './cores.ts'
import { folder, runToEnd, script } from './processes.ts'

interface Wanted {
  readonly directory: string
  readonly sessions: number
  /** How many of them are visited later. */
  readonly cookies?: number
  /** The lifetime of their tokens; below zero they have expired. */
  readonly lifeSeconds?: number
}

const DAY_SECONDS = 86_400

/** Returns the cookies that open them. */
export async function preload(cores: Cores, wanted: Wanted): Promise<string[]> {
  const { directory, sessions, cookies = sessions, lifeSeconds = DAY_SECONDS } = wanted
  const file = join(folder, 'cookies')
  const command = script('preload.ts', directory, sessions, lifeSeconds, file, cookies)
  await runToEnd(command, { on: cores.all, env: { CLIENT_SECRET } })
  return readFileSync(file, 'utf8').split('\n')
}
