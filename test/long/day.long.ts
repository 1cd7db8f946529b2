// A day in the life, compressed: users work at two sites, one on the embedded store and one on Redis with sentinels, while one
// thing after the other goes wrong. `npm run test:long -- day --minutes 5 --seed 7`; `--keep` writes the plot into the docs.

import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createClient, signIn } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import { installPackages } from '../kit/packages.ts'
import { PRIMARY_NAME, startWithSentinels } from '../kit/redis-server.ts'
import { openScriptedProvider } from '../kit/scripted-provider.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'
import { createRandom } from '../security/random.ts'
import { createApplication, createRedisPair, mountDisk, type World } from './day/faults.ts'
import { type Occurrence, type Plan, planDay, readOptions } from './day/plan.ts'
import { drawDay } from './day/plot.ts'
import { createRecord, type DayRecord, type FaultRun } from './day/record.ts'
import { faultTable, judgeLevels, judgeLosses, judgePages, tellFault } from './day/report.ts'
import { type Site, startSite } from './day/site.ts'
import { checkPromises, createPromises, liveAs } from './day/users.ts'

const USERS_PER_SITE = 18
const TOKEN_SECONDS = 90
/** A token is refreshed when so much of its life is left: more than any fault lasts and any clock is stepped. */
const LEAD_SECONDS = 60
const SAMPLE_EVERY_MS = 2000
/** Without an error for so long, a fault is over. */
const SETTLE_SECONDS = 3
const RECOVERY_DEADLINE_MS = 60_000
const PLOT = fileURLToPath(new URL('../../docs/images/endurance.svg', import.meta.url))

const options = readOptions(process.env)

test(`a simulated day of ${options.minutes} minutes loses no data, signs no user out and keeps memory and response times stable`, {
  timeout: (options.minutes + 10) * 60_000,
}, async t => {
  assert.equal(installPackages(['faketime']), undefined)
  if (process.getuid?.() !== 0) return t.skip('only root can mount the small disk that is filled')
  const random = createRandom(options.seed)
  const plan = planDay(options, random)
  const uploads = join(tempFolder(t), 'uploads')
  mkdirSync(uploads)
  const world = await openWorld(t, uploads, createRandom(options.seed + 1))
  const sites = [world.embedded, world.redis]
  const promises = createPromises()
  const record = createRecord()
  let isOver = false
  const users = sites.flatMap((site, s) =>
    Array.from({ length: USERS_PER_SITE }, (_, n) => {
      const town = { record, provider: world.provider, random: createRandom(options.seed + 100 * s + n) }
      return liveAs(`user-${site.name}-${n}`, site, town, promises, () => isOver)
    }),
  )
  const sampler = setInterval(() => void sample(record, sites), SAMPLE_EVERY_MS)
  t.after(() => {
    isOver = true
    clearInterval(sampler)
  })

  await untilSecond(record, plan.firstFault)
  while (record.now() < plan.lastFault) {
    const next = plan.nextFaults(record.now() > plan.noon)
    const runs = await Promise.all(next.map(occurrence => goThrough(occurrence, world, record, plan)))
    for (const run of runs) process.stdout.write(`${tellFault(run)}\n`)
    for (const sentence of await checkPromises(promises, uploads)) record.violated(sentence)
    await pause(plan.pauseSeconds() * 1000)
  }
  await untilSecond(record, plan.end)
  isOver = true
  clearInterval(sampler)
  await Promise.all(users)
  for (const sentence of await checkPromises(promises, uploads)) record.violated(sentence)

  const pages = judgePages(record, plan)
  const levels = judgeLevels(record, plan)
  const losses = judgeLosses({ record, promises, sites, provider: world.provider })
  const file = options.keeps ? PLOT : join(mkdtempSync(join(tmpdir(), 'menshen-day-')), 'endurance.svg')
  writeFileSync(file, drawDay(record, plan))
  const report = [faultTable(record), pages.table, levels.table, losses.table].join('\n\n')
  for (const line of [...report.split('\n'), `plot: ${file}`]) t.diagnostic(line)
  assert.deepEqual([...record.violations, ...pages.problems, ...levels.problems, ...losses.problems], [])
})

async function openWorld(t: TestContext, uploads: string, random: World['random']): Promise<World> {
  const provider = await openScriptedProvider(t, { expiresIn: TOKEN_SECONDS })
  const application = createApplication(await freePort(), uploads)
  t.after(() => application.kill())
  await application.start()
  const password = 'day'
  const sentinels = await startWithSentinels(password)
  t.after(() => sentinels.stop())
  const servers = createRedisPair(sentinels)
  const settings = {
    ...provider.settings,
    HOST: '127.0.0.1',
    UPSTREAM: application.url,
    RATE_LIMIT_PER_MINUTE: '0',
    REFRESH_LEAD_SECONDS: String(LEAD_SECONDS),
    REFRESH_FAILURE: 'keep',
    // Sessions that their users have left go.
    SESSION_IDLE_MINUTES: '5',
    // So few that the trail has its full size when the day has warmed up.
    AUDIT_KEEP: '200',
  }
  const hosts = sentinels.sentinels.map(({ host }) => host).join(',')
  const STORE = `redis+sentinel://:${password}@${hosts}/${PRIMARY_NAME}`
  const disk = mountDisk()
  const data = join(disk.folder, 'data')
  const [embedded, redis] = await Promise.all([
    startSite(t, {
      name: 'sqlite',
      env: { ...settings, STORE: `sqlite:${data}/menshen.db` },
      tls: true,
      logs: disk.folder,
      storeSize: async () => statSync(join(data, 'menshen.db')).size,
    }),
    startSite(t, {
      name: 'Redis',
      env: { ...settings, STORE },
      tls: false,
      logs: tempFolder(t),
      storeSize: () => servers.size(),
    }),
  ])
  const watchers = new Map<Site, ReturnType<typeof createClient>>()
  for (const site of [embedded, redis]) {
    const client = createClient(site.url)
    await signIn(client, provider, { username: 'watcher' })
    watchers.set(site, client)
  }
  const watcherAt = (site: Site) => watchers.get(site) ?? assert.fail('there is no watcher')
  // Its tokens are refreshed as long as it looks.
  const looking = setInterval(() => {
    for (const client of watchers.values()) void client.get('/pages/watched').catch(() => {})
  }, 10_000)
  t.after(() => clearInterval(looking))
  return { embedded, redis, servers, disk, provider, application, random, watcherAt }
}

/** One fault from its beginning until all is well again. */
async function goThrough({ fault, where }: Occurrence, world: World, record: DayRecord, plan: Plan): Promise<FaultRun> {
  const site = where === 'redis' ? world.redis : world.embedded
  const run = record.beginFault(fault.name, where === 'both' ? 'both' : site.name, fault.expected)
  try {
    const undo = await fault.begin(world, site)
    if (fault.lasts) await pause(plan.faultSeconds() * 1000)
    run.causeGone = fault.lasts ? record.now() : run.began
    await undo()
    await until(async () => (await world.embedded.isWhole()) && (await world.redis.isWhole()), RECOVERY_DEADLINE_MS)
  } catch (error) {
    record.violated(`${fault.name} at ${run.site}: ${error instanceof Error ? error.stack : error}`)
  }
  const settling = record.now()
  const isSettled = () => record.now() - Math.max(run.lastError, settling) > SETTLE_SECONDS
  await until(isSettled, RECOVERY_DEADLINE_MS).catch(() => record.violated(`errors go on long after ${fault.name}`))
  run.over = record.now()
  return run
}

async function sample(record: DayRecord, sites: readonly Site[]): Promise<void> {
  for (const site of sites) {
    const at = record.now()
    // A process can end while it is measured.
    const measured = await site.measure().catch(() => undefined)
    if (measured) record.samples.push({ at, site: site.name, ...measured })
  }
}

async function untilSecond(record: DayRecord, second: number): Promise<void> {
  await pause(Math.max(0, second - record.now()) * 1000)
}
