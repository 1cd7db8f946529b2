// A reload of several workers under load: all of them change together, and no request is lost.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { join } from 'node:path'
import test from 'node:test'
import { isAlive, isReady, setUpInstances, signedIn } from '../kit/instance.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'
import { load } from './wrk.ts'

test('two workers reload as one process', async t => {
  const [first, second] = [await startUpstream(t), await startUpstream(t, (_, response) => response.end('second'))]
  const { provider, folder, start } = await setUpInstances(t, { WORKERS: '2' })
  /** At once: a file that is being written is seen empty by who watches it. */
  const configure = (config: object) => {
    writeFileSync(join(folder, 'next.ts'), `export default ${JSON.stringify(config)}\n`)
    renameSync(join(folder, 'next.ts'), join(folder, 'menshen.config.ts'))
  }
  configure({ upstreams: { '/': first.url } })
  const instance = await start()
  await until(() => instance.workers().length === 2)
  const user = await signedIn(instance, provider)
  const linesOf = (event: string) => instance.lines.filter(line => line.event === event)
  const hangUp = async (event: string) => {
    const before = linesOf(event).length
    process.kill(instance.pid, 'SIGHUP')
    await until(() => linesOf(event).length > before)
    return linesOf(event).at(-1) ?? assert.fail()
  }
  // The files are watched: the signal may find nothing left to change, and that line may come late.
  const changes = () => linesOf('config_reloaded').filter(({ changed }) => changed !== 'nothing').length
  const answers = async (path = '/') =>
    (await Promise.all(Array.from({ length: 30 }, () => user.get(instance, path)))).map(({ status, text }) =>
      status === 200 ? text : String(status),
    )

  await t.test('workers switch to a new configuration together under load, and no request is lost', async () => {
    const loading = load(`${instance.url}/`, 3, user.cookie)
    for (const [n, upstream] of [second, first, second].entries()) {
      configure({ upstreams: { '/': upstream.url }, rules: [{ path: '/closed', roles: ['developer'] }] })
      process.kill(instance.pid, 'SIGHUP')
      await until(() => changes() > n)
      assert.deepEqual([...new Set(await answers())], [upstream === first ? 'hello' : 'second'])
    }
    const { requests, failed } = await loading
    assert.equal(failed, 0)
    assert.ok(requests > 0)
    t.diagnostic(`${requests} requests`)
    assert.deepEqual([...new Set(await answers('/closed'))], ['403'])
    assert.equal(changes(), 3, 'each change is reported once, by one of them')
  })

  await t.test('workers keep their configuration if the new one is invalid', async () => {
    configure({ rules: [{ path: 'closed', public: true }] })
    const { file, detail } = await hangUp('config_refused')
    assert.match(String(file), /menshen\.config\.ts$/)
    assert.match(String(detail), /rules\.0\.path/)
    assert.deepEqual([...new Set(await answers('/closed'))], ['403'])
  })

  await t.test('a worker that starts later uses the configuration of the others', async () => {
    configure({ upstreams: { '/': first.url }, rules: [{ path: '/closed', roles: ['common'] }] })
    const [victim = 0] = instance.workers()
    process.kill(victim, 'SIGKILL')
    await until(() => !isAlive(victim) && instance.workers().length === 2)
    // A connection that the dead one had just taken breaks.
    await until(async () => (await answers('/closed').catch(() => ['broken'])).every(text => text === 'hello'))
    assert.ok(await isReady(instance.url))
  })

  await t.test('a worker that starts while the configuration files are rejected accepts no requests', async () => {
    const rules = [{ path: '/closed', roles: ['developer'] }]
    /** Whether this one accepts by itself. */
    const serves = async (worker: number) => {
      const others = instance.workers().filter(pid => pid !== worker)
      for (const pid of others) process.kill(pid, 'SIGSTOP')
      const request = get(`${instance.url}/_menshen/health`, { agent: false, timeout: 300 }).on('timeout', () =>
        request.destroy(),
      )
      const status = await once(request, 'response').then(
        ([{ statusCode }]) => statusCode,
        () => undefined,
      )
      for (const pid of others) process.kill(pid, 'SIGCONT')
      return status === 200
    }
    const allServe = async () => {
      for (const pid of instance.workers()) await until(() => serves(pid))
    }
    configure({ upstreams: { '/': first.url }, rules })
    await hangUp('config_reloaded')
    // That line may be about what the files were before.
    await until(async () => (await answers('/closed')).every(text => text === '403'))
    await allServe()
    // First what is refused: the files are watched, and the rules alone would be accepted. A reload that had read .env before
    // could still read the new rules, so its end is awaited.
    writeFileSync(join(folder, '.env'), 'REFRESH_LEAD_SECONDS=61\n')
    await hangUp('config_refused')
    configure({ upstreams: { '/': first.url }, rules: [{ path: '/closed', public: true }] })
    assert.match(String((await hangUp('config_refused')).detail), /^REFRESH_LEAD_SECONDS: .* restart/)
    const [victim = 0, other] = instance.workers()
    process.kill(victim, 'SIGKILL')
    const successor = () => instance.workers().find(pid => pid !== other && pid !== victim)
    await until(() => !isAlive(victim) && successor() !== undefined)
    const waiting = successor() ?? assert.fail()
    // It has read the files, and has asked.
    const refusals = linesOf('config_refused').length
    await until(() => linesOf('config_refused').length > refusals)
    assert.ok(!(await serves(waiting)))
    assert.deepEqual([...new Set(await answers('/closed'))], ['403'])

    rmSync(join(folder, '.env'))
    configure({ upstreams: { '/': first.url }, rules })
    await allServe()
    assert.ok(isAlive(waiting))
  })
})
