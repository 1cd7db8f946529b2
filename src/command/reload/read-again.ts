// Reads everything anew and says what has changed, or why that cannot be used in a process that runs.
import { existsSync } from 'node:fs'
import { MenshenError } from '../../errors.ts'
import { planProviders } from '../../provider/providers.ts'
import { refuseListenerAsUpstream } from '../../settings/own-upstream.ts'
import type { Environment } from '../../settings/read.ts'
import { demandAuthority, demandCertificate } from '../check/named-files.ts'
import { ENV_FILE, readSources, SourceProblem, type Sources } from './read-sources.ts'
import { changedParts, waitingForRestart } from './source-parts.ts'

export interface ReadAgain {
  readonly sources: Sources
  /** The names of what is not as it was. */
  readonly changed: readonly string[]
}

export interface Rereading {
  readonly readEnvironment: () => Environment
  /** What leads to the development provider, where that runs. */
  readonly development: Environment | undefined
  /** Whether there was a .env at the start. */
  readonly hadEnvFile: boolean
  /** Whether this process listens by HOST and PORT, and not on a socket that it was given. */
  readonly listens: boolean
}

/** What can be read and not used. */
function demandCertificates(sources: Sources): void {
  const { settings, config } = sources
  const { TLS_CERT_FILE: certificate = ENV_FILE, UPSTREAM_CA_FILE: authority = ENV_FILE } = settings
  blaming(certificate, () => demandCertificate(settings))
  blaming(authority, () => demandAuthority(settings))
  blamingWhole(sources, () => planProviders(config, settings))
}

export async function readAgain(before: Sources, rereading: Rereading): Promise<ReadAgain> {
  const { readEnvironment, development, hadEnvFile, listens } = rereading
  // A file that is just being replaced, or a volume that is not there for a moment, must not open every door.
  if (hadEnvFile && !existsSync(ENV_FILE)) throw refusal(ENV_FILE, `${ENV_FILE} is gone; expected it where it was.`)
  const sources = await inTime(readSources(readEnvironment, development), before.configFile ?? ENV_FILE)
  const { configFile } = sources
  if (before.configFile && !configFile)
    throw refusal(before.configFile, `${before.configFile} is gone; expected it where it was.`)
  const changed = changedParts(before.parts, sources.parts)
  const waiting = waitingForRestart(changed)
  if (waiting.length > 0)
    throw refusal(
      ENV_FILE,
      `${waiting.join(', ')}: changed, which counts only after a restart; nothing else was changed either.`,
    )
  if (sources.wantsDevelopment !== (development !== undefined))
    throw refusal(configFile ?? ENV_FILE, 'The development provider starts and ends only with a restart.')
  demandCertificates(sources)
  if (listens) blamingWhole(sources, () => refuseListenerAsUpstream(sources.settings, sources.config))
  return { sources, changed }
}

/** Less than a worker has for its answer. A script that waits for something must not hold up all reloads that follow. */
const READ_WITHIN_MS = 5000

async function inTime<T>(reading: Promise<T>, file: string): Promise<T> {
  const late = Promise.withResolvers<never>()
  const sentence = `${file} is not loaded after ${READ_WITHIN_MS / 1000} seconds; expected no await in it that takes so long.`
  const timer = setTimeout(() => late.reject(refusal(file, sentence)), READ_WITHIN_MS)
  try {
    return await Promise.race([reading, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

export function refusal(file: string, sentence: string): SourceProblem {
  return new SourceProblem(file, new MenshenError('bad_settings', sentence))
}

/** What is wrong stands in this file. */
export function blaming<T>(file: string, check: () => T): T {
  try {
    return check()
  } catch (error) {
    throw error instanceof MenshenError ? new SourceProblem(file, error) : error
  }
}

/** Looks at it as a whole: what is wrong then stands in the configuration, as a rule. */
export function blamingWhole<T>({ configFile = ENV_FILE }: Sources, check: () => T): T {
  return blaming(configFile, check)
}
