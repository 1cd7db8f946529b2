// This process, as the others see it.
import cluster from 'node:cluster'
import { hostname } from 'node:os'
import { readVersion } from '../version.ts'
import type { Instance } from './instance-record.ts'

export function thisInstance(startedAt: number): Instance {
  return { host: hostname(), pid: process.pid, worker: cluster.worker?.id, version: readVersion(), startedAt }
}
