// This process, as the others see it.
import cluster from 'node:cluster'
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { z } from 'zod'
import type { Instance } from './instance-record.ts'

const packageSchema = z.object({ version: z.string() })

export function thisInstance(startedAt: number): Instance {
  const { version } = packageSchema.parse(
    JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')),
  )
  return { host: hostname(), pid: process.pid, worker: cluster.worker?.id, version, startedAt }
}
