// `node scripts/outages.ts [NAME…]` records what Prometheus reads from a real instance during real outages, in
// test/observe/outages.json: two minutes before, eight minutes of the outage, three minutes after. The full disk needs root.

import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { type Client, createClient } from '../test/kit/client.ts'
import { type Environment, type Instance, startInstance } from '../test/kit/instance.ts'
import { answerOf, type OidcServer, startOidcServer } from '../test/kit/oidc-server.ts'
import { startRedis } from '../test/kit/redis-server.ts'
import { readMetrics } from '../test/kit/scrape.ts'
import { tempFolder } from '../test/kit/temp.ts'
import { compactValues } from '../test/observe/recorded-values.ts'

/** As in examples/prometheus/prometheus.yml. */
const SCRAPE_MS = 15_000
const [BEFORE, DURING, AFTER] = [8, 32, 12]
const USERS = 10
const REQUEST_EVERY_MS = 5000
const SIGN_IN_EVERY_MS = 15_000
/** Short, so that tokens are refreshed and expire within an outage. */
const TOKENS = { expiresIn: 120, env: { REFRESH_LEAD_SECONDS: '60' } }
const FILE = new URL('../test/observe/outages.json', import.meta.url)
/** The series that alerts.yml asks for; of histograms only the buckets at its bounds. Series that stay 0 show nothing. */
const RECORDED =
  /^menshen_((requests|sign_ins|refreshes)_total|upstream_queue|store_seconds_(count|bucket.*le="(0.1|0.25|\+Inf)")|provider_seconds_bucket.*le="(2.5|5|\+Inf)")/

interface Scene {
  readonly instance: Instance
  readonly provider: OidcServer
  readonly application: Awaited<ReturnType<typeof startApplication>>
}

interface Outage {
  /** Without users, only Prometheus notices anything. */
  readonly users?: 0
  prepare?(t: TestContext): Promise<{ env: Environment; begin(): unknown; end(): unknown }>
  begin?(scene: Scene): unknown
  end?(scene: Scene): unknown
}

const redisStops = async (t: TestContext) => {
  const redis = await startRedis()
  t.after(() => redis.stop())
  return { env: { STORE: `redis://${redis.host}` }, begin: redis.kill, end: redis.restart }
}

const diskFills = async (t: TestContext) => {
  const folder = mkdtempSync(join(tmpdir(), 'menshen-full-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', folder])
  t.after(() => {
    execFileSync('umount', [folder])
    rmdirSync(folder)
  })
  const filler = join(folder, 'filler')
  return {
    env: { STORE: `sqlite:${folder}/menshen.db` },
    begin() {
      try {
        for (;;) writeFileSync(filler, Buffer.alloc(4096), { flag: 'a' })
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
      }
    },
    end: () => rmSync(filler),
  }
}

const OUTAGES: Readonly<Record<string, Outage>> = {
  'nothing fails': {},
  'the application stops': {
    begin: ({ application }) => application.stop(),
    end: ({ application }) => application.start(),
  },
  'the provider stops': {
    begin: ({ provider }) => Object.assign(provider, { isAway: true }),
    end: ({ provider }) => Object.assign(provider, { isAway: false }),
  },
  'the token endpoint of the provider fails': {
    begin: ({ provider }) => {
      provider.intercept = ({ path }, response) => path === '/token' && response.writeHead(500).end()
    },
    end: ({ provider }) => Object.assign(provider, { intercept: undefined }),
  },
  'Redis stops': { prepare: redisStops },
  'Redis stops at night': { prepare: redisStops, users: 0 },
  'the disk is full': { prepare: diskFills },
  'the disk is full at night': { prepare: diskFills, users: 0 },
  'Menshen hangs': {
    begin: ({ instance }) => process.kill(-instance.pid, 'SIGSTOP'),
    end: ({ instance }) => process.kill(-instance.pid, 'SIGCONT'),
  },
}

const wanted = process.argv.slice(2)
const names = wanted.length > 0 ? wanted : Object.keys(OUTAGES)
const known = JSON.parse(await readFile(FILE, 'utf8').catch(() => '{}'))
const recorded = Object.fromEntries(await Promise.all(names.map(async name => [name, await record(OUTAGES[name])])))
const all = { ...known, ...recorded }
const sorted = Object.fromEntries(Object.keys(OUTAGES).flatMap(name => (all[name] ? [[name, all[name]]] : [])))
await writeFile(FILE, `${JSON.stringify(sorted, null, 1)}\n`)

/** The values of each series, one per scrape. */
async function record(outage: Outage | undefined): Promise<Record<string, string>> {
  if (!outage) throw new Error(`there are ${Object.keys(OUTAGES).join(', ')}`)
  await using opened = new AsyncDisposableStack()
  const t = {
    after: (close: () => unknown) => opened.defer(async () => void (await close())),
  } as unknown as TestContext
  const { env, begin, end } = (await outage.prepare?.(t)) ?? { env: {}, begin() {}, end() {} }
  const provider = await startOidcServer(t)
  Object.assign(provider, { now: Date.now, expiresIn: TOKENS.expiresIn })
  const application = await startApplication(t)
  const cwd = tempFolder(t)
  const instance = await startInstance(
    { ...provider.settings, UPSTREAM: application.url, HOST: '127.0.0.1', ...TOKENS.env, ...env },
    { cwd },
  )
  t.after(() => instance.killAll('SIGKILL'))
  const scene = { instance, provider, application }
  const users = new AbortController()
  const load = outage.users === 0 ? [] : useIt(scene, users.signal)
  const scrapes: (Map<string, number> | undefined)[] = []
  const started = performance.now()
  for (let n = 0; n < BEFORE + DURING + AFTER; n++) {
    await pause(Math.max(1, started + n * SCRAPE_MS - performance.now()))
    scrapes.push(await scrapeOnce(instance.url))
    if (n === BEFORE) await Promise.all([begin(), outage.begin?.(scene)])
    if (n === BEFORE + DURING) await Promise.all([end(), outage.end?.(scene)])
  }
  users.abort()
  await Promise.all(load)
  return asSeries(scrapes)
}

/** `undefined` if there was no answer in time. */
function scrapeOnce(url: string): Promise<Map<string, number> | undefined> {
  return createClient(url)
    .get('/_menshen/metrics', { signal: AbortSignal.timeout(10_000) })
    .then(
      ({ status, text }) => (status === 200 ? readMetrics(text).samples : undefined),
      () => undefined,
    )
}

function asSeries(scrapes: readonly (Map<string, number> | undefined)[]): Record<string, string> {
  const series = new Set(scrapes.flatMap(samples => [...(samples?.keys() ?? [])]).filter(name => RECORDED.test(name)))
  const up = ['up', scrapes.map(samples => (samples ? 1 : 0))] as const
  const values = [...series]
    .map(name => [name, scrapes.map(samples => samples?.get(name))] as const)
    .filter(([, values]) => values.some(Boolean))
  return Object.fromEntries([up, ...values].map(([name, values]) => [name, compactValues(values)]))
}

async function startApplication(t: TestContext) {
  const server = createServer((request, response) => {
    request.resume()
    response.end('hello')
  })
  const start = (port = 0) => once(server.listen(port, '127.0.0.1'), 'listening')
  await start()
  const { port } = server.address() as AddressInfo
  const stop = () => {
    server.close()
    server.closeAllConnections()
  }
  t.after(stop)
  return { url: `http://127.0.0.1:${port}`, stop, start: () => start(port) }
}

/** Users who load a page every few seconds, and others who sign in. Their errors are part of the recording. */
function useIt(scene: Scene, signal: AbortSignal): Promise<void>[] {
  const { instance } = scene
  const user = async (n: number): Promise<void> => {
    await pauseFor((n * REQUEST_EVERY_MS) / USERS, signal)
    const client = createClient(instance.url)
    await signIn(client).catch(() => {})
    for await (const _ of every(REQUEST_EVERY_MS, signal)) await client.get('/', { signal }).catch(() => {})
  }
  const newcomers = async (): Promise<void> => {
    for await (const _ of every(SIGN_IN_EVERY_MS, signal)) await signIn(createClient(instance.url)).catch(() => {})
  }
  return [...Array.from({ length: USERS }, (_, n) => user(n)), newcomers()]
}

/** Without the provider, a browser does not come back from it. */
async function signIn(client: Client): Promise<void> {
  await client.get(await answerOf(client))
}

async function* every(ms: number, signal: AbortSignal): AsyncGenerator<void> {
  for (let next = performance.now(); !signal.aborted; next += ms) {
    yield
    await pauseFor(next + ms - performance.now(), signal)
  }
}

function pauseFor(ms: number, signal: AbortSignal): Promise<void> {
  return pause(Math.max(1, ms), undefined, { signal }).catch(() => {})
}
