// Whether the store keeps, finds and forgets what it is given, and how fast. What it is given is the doctor's own, under its
// own key and label, and removed again.
import { randomBytes } from 'node:crypto'
import { existsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { isProduction } from '../../settings/deployment.ts'
import { printable } from '../../settings/json-place.ts'
import type { Settings } from '../../settings/read.ts'
import { hidePassword } from '../../settings/secret.ts'
import { folderProblem, isEmptyStore } from '../../stores/lmdb/lmdb-files.ts'
import { openStore } from '../../stores/open-store.ts'
import type { Store } from '../../stores/store.ts'
import { codeOf, type Finding, failure, good, type Probe, warning, whatFailed } from './finding.ts'

const SLOW_MS = 50
const LIFETIME_MS = 60_000
const SHORT_LIFETIME_MS = 100
const OLDEST_REDIS = [6, 2] as const

interface Options {
  readonly settings: Pick<Settings, 'STORE' | 'NODE_ENV'>
  readonly now: () => number
  /** One that is open already. */
  readonly store?: Store | undefined
}

export function storeProbes(options: Options): Probe[] {
  const { STORE } = options.settings
  const probes = [{ name: 'store', run: () => probeStore(options) }]
  return STORE.startsWith('redis') ? [...probes, { name: 'redis', run: () => probeRedis(STORE) }] : probes
}

async function probeStore({ settings, now, store: open }: Options): Promise<Finding[]> {
  const { STORE } = settings
  if (open) return [...memory(settings), ...(await tryOut(open, now))]
  const directory = STORE.startsWith('lmdb:') ? STORE.slice('lmdb:'.length) : undefined
  // To open it would make it, or make its files for another account than the one that serves.
  if (directory !== undefined && (!existsSync(directory) || isForAnother(directory)))
    return [await judgeMissing(directory)]
  const reasons: unknown[] = []
  try {
    const store = await openStore(STORE, now, (_code, facts) => reasons.push(facts?.reason))
    try {
      return [...memory(settings), ...(await tryOut(store, now))]
    } finally {
      await store.close()
    }
  } catch (error) {
    const reason = reasons.length > 0 ? ` (${printable(hidePassword(String(reasons[0])), 200)})` : ''
    return [failure('store', whatFailed(error) + reason, remedyFor(STORE))]
  }
}

async function judgeMissing(directory: string): Promise<Finding> {
  const problem = await folderProblem(resolve(directory))
  if (problem) return failure('store', `lmdb:${directory} cannot be made: ${problem}`, remedyFor('lmdb:'))
  return good('store', `lmdb:${directory} is not there yet: the start will make it`)
}

/** An empty folder of another account, such as one that a service manager has made. */
function isForAnother(directory: string): boolean {
  const { uid } = statSync(directory)
  return isEmptyStore(directory) && uid !== (process.getuid?.() ?? uid)
}

function remedyFor(address: string): string {
  return address.startsWith('lmdb:')
    ? 'Make it a folder that this user can write to, on a disk with room, or name another one in STORE.'
    : 'Check that the server of STORE is running and can be reached, and the name and password in STORE.'
}

function memory({ STORE, NODE_ENV }: Options['settings']): Finding[] {
  if (STORE !== 'memory:') return []
  const remedy = 'STORE=lmdb:./data keeps them on this machine, redis://… for several machines.'
  const seen = 'memory: a restart signs everybody out'
  return [isProduction({ NODE_ENV }) ? warning('store kind', seen, remedy) : good('store kind', seen)]
}

async function tryOut(store: Store, now: () => number): Promise<Finding[]> {
  const name = `doctor:${randomBytes(16).toString('hex')}`
  const short = `${name}-short`
  const value = randomBytes(64)
  const entry = (ms: number) => ({ value, expiresAt: now() + ms, labels: [name] })
  const faults: string[] = []
  try {
    const shortEntry = entry(SHORT_LIFETIME_MS)
    await store.create(short, shortEntry)
    const written = await timed(() => store.create(name, entry(LIFETIME_MS)))
    const read = await timed(() => store.read(name))
    if (!read.result || !value.equals(read.result.value)) faults.push('what was written cannot be read')
    const listed = await store.list({ label: name, limit: 10 })
    if (!listed.entries.some(({ key }) => key === name)) faults.push('what was written cannot be found by its label')
    await pause(2 * SHORT_LIFETIME_MS)
    if (now() >= shortEntry.expiresAt && (await store.read(short))) faults.push('what has expired is still there')
    if (!(await store.remove(name))) faults.push('what was written cannot be removed')
    if (faults.length > 0)
      return [failure('store', faults.join('; '), 'Look at the log of the store; nobody else may write to it.')]
    return [good('store', 'writes, reads, lists, expires and removes'), latency(written.ms, read.ms)]
  } finally {
    await Promise.allSettled([store.remove(name), store.remove(short)])
  }
}

async function timed<T>(work: () => Promise<T>): Promise<{ result: T; ms: number }> {
  const start = performance.now()
  const result = await work()
  return { result, ms: performance.now() - start }
}

function latency(writeMs: number, readMs: number): Finding {
  const seen = `a write takes ${writeMs.toFixed(1)} ms, a read ${readMs.toFixed(1)} ms`
  const remedy = 'Every sign-in waits for it: bring the store nearer, or look at what keeps it busy.'
  return Math.max(writeMs, readMs) > SLOW_MS ? warning('store latency', seen, remedy) : good('store latency', seen)
}

async function probeRedis(address: string): Promise<Finding[]> {
  try {
    const { readServerFacts } = await import('../../stores/redis-facts.ts')
    return judgeServer(await readServerFacts(address))
  } catch (error) {
    return [warning('redis', `it does not tell about itself (${codeOf(error)})`, 'The line about the store says why.')]
  }
}

type ServerFacts = Awaited<ReturnType<typeof import('../../stores/redis-facts.ts').readServerFacts>>

function judgeServer(facts: ServerFacts): Finding[] {
  const { software, version, redisVersion, evictionPolicy, appendOnly, snapshots, lastWriteFailed } = facts
  const seen = `${software} ${printable(version)}`
  const [major = 0, minor = 0] = redisVersion.split('.').map(Number)
  const isOld = major < OLDEST_REDIS[0] || (major === OLDEST_REDIS[0] && minor < OLDEST_REDIS[1])
  return [
    isOld
      ? failure('redis version', seen, `Expected Redis ${OLDEST_REDIS.join('.')} or newer, or Valkey.`)
      : good('redis version', seen),
    judgeEviction(evictionPolicy),
    judgePersistence(appendOnly, snapshots, lastWriteFailed),
  ]
}

function judgeEviction(policy: string | undefined): Finding {
  const what = 'redis eviction policy'
  if (policy === undefined) return warning(what, 'it does not say', 'Make sure that maxmemory-policy is noeviction.')
  if (policy === 'noeviction') return good(what, policy)
  const seen = `${printable(policy)}: when its memory is full, it drops sessions and so signs users out`
  return failure(what, seen, 'Set maxmemory-policy to noeviction, and give it enough memory.')
}

function judgePersistence(appendOnly: boolean, snapshots: boolean | undefined, failed: boolean): Finding {
  const what = 'redis persistence'
  if (failed) return failure(what, 'its last write to the disk failed', 'Look at the log and the disk of Redis.')
  if (appendOnly) return good(what, 'appendonly')
  const remedy = 'Set appendonly to yes.'
  if (snapshots)
    return warning(what, 'snapshots only: a crash forgets the latest sign-ins, sign-outs and refreshes', remedy)
  const unsure = snapshots === undefined ? ', as far as it says' : ''
  return warning(what, `none${unsure}: a restart of Redis signs everybody out`, remedy)
}
