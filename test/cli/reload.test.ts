// Files are read anew while it runs: on SIGHUP, and when they change. What cannot be used changes nothing.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import { createClient } from '../kit/client.ts'
import { type Environment, type Instance, type Line, runMenshen, setUpInstances, signedIn } from '../kit/instance.ts'
import { wholeFile } from '../kit/set-up.ts'
import { CLIENT_SECRET } from '../kit/strict-provider.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'

const OUTCOMES = ['config_reloaded', 'config_refused']

function outcomes({ lines }: Instance): Line[] {
  return lines.filter(({ event }) => OUTCOMES.includes(event))
}

/** Resolves with what became of the next reload. */
async function nextOutcome(instance: Instance, act: () => void): Promise<Line> {
  const before = outcomes(instance).length
  act()
  await until(() => outcomes(instance).length > before)
  return outcomes(instance).at(before) ?? assert.fail()
}

const hangUp = (instance: Instance) => nextOutcome(instance, () => process.kill(instance.pid, 'SIGHUP'))

/** A gateway with a configuration and secrets in files. */
async function openFiles(t: TestContext, env: Environment = {}) {
  const scene = await setUpInstances(t)
  // At once: a reload that is under way reads the old text or the new one, and never half of it.
  const write = (name: string, text: string) => {
    writeFileSync(join(scene.folder, 'being-written'), text)
    renameSync(join(scene.folder, 'being-written'), join(scene.folder, name))
  }
  const configure = (config: object) => write('menshen.config.ts', `export default ${JSON.stringify(config)}\n`)
  configure({})
  const { CLIENT_SECRET: _, ...settings } = scene.provider.settings
  write('client-secret', CLIENT_SECRET)
  const start = (more: Environment = {}) =>
    scene.start({ ...settings, CLIENT_SECRET: '', CLIENT_SECRET_FILE: './client-secret', ...env, ...more })
  return { ...scene, write, configure, start }
}

const whole = wholeFile()
let shared: Promise<Awaited<ReturnType<typeof openFiles>> & { readonly instance: Instance }> | undefined

/** One Menshen for tests that run one after the other. Each begins with a reload of its own configuration. */
async function reopenFiles(config: object) {
  shared ??= openFiles(whole).then(async files => ({ ...files, instance: await files.start() }))
  const files = await shared
  files.configure(config)
  assert.equal((await hangUp(files.instance)).event, 'config_reloaded')
  return files
}

suite('files that change while Menshen runs', { concurrency: 3 }, () => {
  suite('in one Menshen', { concurrency: 1 }, () => {
    test('a reload refuses an upstream that is Menshen itself', async () => {
      const { configure, instance } = await reopenFiles({})
      configure({ upstreams: { '/': instance.url.replace('localhost', '127.0.0.1') } })
      const line = await hangUp(instance)
      assert.equal(line.event, 'config_refused')
      assert.match(String(line.detail ?? line.reason), /^upstreams\.\/ is ".*", which is Menshen itself;/)
    })

    test('a reload leaves requests in flight on their upstream and closes streams that the new rules do not allow', async t => {
      const held = Promise.withResolvers<void>()
      const streams: IncomingMessage[] = []
      const first = await startUpstream(t, async (request, response) => {
        if (request.url === '/slow') {
          await held.promise
          response.end('of before')
        } else {
          response.writeHead(200, { 'content-type': 'text/event-stream' })
          response.write('data: 1\n\n')
          streams.push(request)
        }
      })
      const { provider, configure, instance } = await reopenFiles({
        upstreams: { '/': first.url },
        rules: [{ path: '/open', public: true }],
      })
      const user = await signedIn(instance, provider)
      const openStream = async (path: string, cookie: string) => {
        const request = get(instance.url + path, { headers: { cookie } })
        const [response] = (await once(request, 'response')) as [IncomingMessage]
        const ended = new Promise(resolve => response.on('error', () => {}).on('close', resolve))
        response.resume()
        return { response, ended }
      }
      const slow = user.get(instance, '/slow')
      const kept = await openStream('/kept', user.cookie)
      const closed = await openStream('/closed', user.cookie)
      const visitors = await openStream('/open', '')
      await until(() => first.received.some(({ target }) => target === '/slow'))

      const second = await startUpstream(t)
      configure({ upstreams: { '/': second.url }, rules: [{ path: '/closed', roles: ['developer'] }] })
      await hangUp(instance)
      await Promise.all([closed.ended, visitors.ended])
      assert.equal(kept.response.destroyed, false)
      assert.equal((await user.get(instance, '/now')).text, 'hello')
      held.resolve()
      assert.equal((await slow).text, 'of before')
      streams[0]?.socket.destroy()
      await kept.ended
    })

    test('a changed header file of an upstream applies after a reload, and a missing one changes nothing', async t => {
      const app = await startUpstream(t)
      const upstreams = (file: string) => ({
        rules: [{ path: '/', public: true }],
        upstreams: { '/': { url: app.url, headers: { 'X-Key': { file } } } },
      })
      const { configure, write, instance } = await reopenFiles({})
      write('key', 'first-CANARY\n')
      configure(upstreams('./key'))
      assert.equal((await hangUp(instance)).event, 'config_reloaded')
      const sent = async () => {
        await createClient(instance.url).get('/')
        return app.last().headers['x-key']
      }
      assert.equal(await sent(), 'first-CANARY')
      write('key', 'second-CANARY\n')
      const changed = await hangUp(instance)
      assert.deepEqual([changed.event, changed.changed], ['config_reloaded', 'content of upstreams./.headers.X-Key'])
      assert.equal(await sent(), 'second-CANARY')
      configure(upstreams('./none'))
      const refused = await hangUp(instance)
      assert.equal(refused.event, 'config_refused')
      assert.match(String(refused.detail), /upstreams\.\/\.headers\.X-Key: \.\/none cannot be read \(ENOENT\);/)
      assert.equal(await sent(), 'second-CANARY')
      // Nobody says that the file is there now.
      assert.equal((await nextOutcome(instance, () => write('none', 'third-CANARY\n'))).event, 'config_reloaded')
      assert.equal(await sent(), 'third-CANARY')
      assert.doesNotMatch(JSON.stringify(instance.lines), /-CANARY/)
    })

    test('after a reload that adds an upstream, a MOVE request between two upstreams is rejected with 400', async t => {
      const [files, other] = [await startUpstream(t), await startUpstream(t)]
      const rules = [{ path: '/', public: true }]
      const { configure, instance } = await reopenFiles({ rules, upstreams: { '/': files.url } })
      const move = async () => {
        const client = createClient(instance.url)
        return (await client.request({ method: 'MOVE', path: '/files/a', headers: { destination: '/other/b' } })).status
      }
      assert.equal(await move(), 200)
      configure({ rules, upstreams: { '/': files.url, '/other': other.url } })
      assert.equal((await hangUp(instance)).event, 'config_reloaded')
      assert.equal(await move(), 400)
      assert.equal(files.received.length, 1)
    })
  })

  test('on SIGHUP, changed rules, roles, upstreams and words apply immediately to signed-in users', async t => {
    const [first, second] = [await startUpstream(t), await startUpstream(t)]
    const { provider, folder, configure, write, start } = await openFiles(t)
    configure({ upstreams: { '/': first.url } })
    const instance = await start()
    const user = await signedIn(instance, provider)
    const boss = await signedIn(instance, provider, 'boss')
    assert.equal((await user.get(instance, '/reports')).status, 200)
    assert.equal(first.received.length, 1)
    assert.equal((await boss.get(instance, '/_menshen/console')).status, 403)

    configure({
      upstreams: { '/': second.url },
      roles: [{ role: 'developer', username: ['boss'] }],
      rules: [{ path: '/reports', roles: ['developer'] }],
      words: { 'login.title': '员工登录' },
    })
    const inUse = readFileSync(join(folder, 'menshen.config.ts'), 'utf8')
    const health = async () => (await boss.get(instance, '/_menshen/console/health')).text
    const line = await hangUp(instance)
    assert.deepEqual(
      [line.event, line.changed, line.rules, line.upstreams],
      ['config_reloaded', 'upstreams, roles, rules, words', 1, 1],
    )
    assert.equal((await user.get(instance, '/reports')).status, 403)
    assert.equal((await user.get(instance, '/other')).status, 200)
    assert.equal((await boss.get(instance, '/reports')).status, 200)
    assert.deepEqual([first.received.length, second.received.length], [1, 2])
    assert.match((await createClient(instance.url).get('/login')).text, /员工登录/)
    await until(async () => {
      const trail = await boss.get(instance, '/_menshen/console/audit?event=config_reloaded')
      return /<strong>重新加载了设置<[\s\S]*<code>upstreams, roles, rules, words</.test(trail.text)
    })

    await t.test('an invalid configuration changes nothing, and the log gives the reason', async () => {
      const bad: [text: string, reason: RegExp][] = [
        ['export default {', /cannot be loaded/],
        ["export default { rules: [{ path: 'reports', public: true }] }", /rules\.0\.path: expected a plain path/],
        [
          "export default { rules: [{ path: '/admin/*', roles: ['developer'] }] }",
          /rules\.0\.path: .*; a rule covers its path and everything below; write `\/admin`/,
        ],
        ["export default { words: { 'no.such': 'x' } }", /no\.such/],
        ["export default { upstreams: { '/': 'ftp://x' } }", /upstreams/],
        ["import './missing.ts'\nexport default {}", /missing\.ts/],
        ['\n', /is empty/],
      ]
      for (const [text, reason] of bad) {
        write('menshen.config.ts', text)
        const { event, file, detail } = await hangUp(instance)
        assert.equal(event, 'config_refused')
        assert.match(String(file), /menshen\.config\.ts$/)
        assert.match(String(detail), reason)
      }
      assert.equal((await user.get(instance, '/reports')).status, 403)
      assert.match(await health(), /文件与正在使用的配置不一致/)
    })

    await t.test(
      'restoring the file after a refused reload is reported and clears the problem on the health page',
      async () => {
        write('menshen.config.ts', inUse)
        await until(() => outcomes(instance).at(-1)?.event === 'config_reloaded')
        assert.equal(outcomes(instance).at(-1)?.changed, 'nothing')
        assert.doesNotMatch(await health(), /文件与正在使用的配置不一致/)
      },
    )

    await t.test(
      'a reload with a missing configuration or with settings that need a restart is refused and changes nothing',
      async () => {
        rmSync(join(folder, 'menshen.config.ts'))
        const gone = await hangUp(instance)
        assert.deepEqual([gone.event, /is gone/.test(String(gone.detail))], ['config_refused', true])
        configure({})
        write('.env', 'WORKERS=2\nAPP_NAME=采购平台\n')
        const { event, detail, file } = await hangUp(instance)
        assert.deepEqual([event, file], ['config_refused', '.env'])
        assert.match(String(detail), /^WORKERS: changed, but takes effect only after a restart/)
        assert.equal((await user.get(instance, '/reports')).status, 403)
      },
    )
  })

  test('a file that is written in place, replaced, or behind the symlinks of a mounted volume is reloaded without a signal', async t => {
    const { provider, folder, configure, start } = await openFiles(t, { CONFIG: 'volume/menshen.config.ts' })
    // As Kubernetes does: the file is a link into a folder that is a link.
    const put = (name: string, config: object) => {
      mkdirSync(join(folder, 'volume', name), { recursive: true })
      writeFileSync(join(folder, 'volume', name, 'menshen.config.ts'), `export default ${JSON.stringify(config)}\n`)
      symlinkSync(name, join(folder, 'volume', 'new'))
      renameSync(join(folder, 'volume', 'new'), join(folder, 'volume', '..data'))
    }
    configure({})
    put('one', {})
    symlinkSync('..data/menshen.config.ts', join(folder, 'volume', 'menshen.config.ts'))
    const instance = await start()
    const user = await signedIn(instance, provider)
    const line = await nextOutcome(instance, () => put('two', { rules: [{ path: '/', roles: ['developer'] }] }))
    assert.deepEqual([line.event, line.changed], ['config_reloaded', 'rules'])
    assert.equal((await user.get(instance)).status, 403)

    const secret = await nextOutcome(instance, () => {
      writeFileSync(join(folder, 'client-secret.new'), 'brand-new-secret')
      renameSync(join(folder, 'client-secret.new'), join(folder, 'client-secret'))
    })
    assert.deepEqual([secret.event, secret.changed], ['config_reloaded', 'content of CLIENT_SECRET_FILE'])
    const written = await nextOutcome(instance, () => {
      writeFileSync(join(folder, 'client-secret'), 'newer-secret')
    })
    assert.deepEqual([written.event, written.changed], ['config_reloaded', 'content of CLIENT_SECRET_FILE'])
    for (const text of ['brand-new-secret', 'newer-secret']) assert.ok(!JSON.stringify(instance.lines).includes(text))
  })

  test('a reload can replace secrets while users are signed in and during a sign-in, but refuses an empty one', async t => {
    const { write, start } = await openFiles(t, {
      SECRET_FILE: './secret',
      STATE_CHECK: 'bound',
      PKCE: 'S256',
    })
    const [old, fresh] = ['o'.repeat(40), 'n'.repeat(40)]
    write('secret', old)
    const instance = await start()
    const arrive = async () => {
      const client = createClient(instance.url)
      await client.get('/somewhere?x=1', { headers: { 'sec-fetch-dest': 'document' } })
      const leaving = await client.post('/login', {}, { headers: { origin: instance.url } })
      const back = await client.follow(leaving)
      return { client, back }
    }
    const before = await arrive()
    const early = (await before.client.follow(before.back)).headers.location
    assert.equal(early, '/somewhere?x=1')

    const middle = await arrive()
    write('secret', `${fresh}\n${old}\n`)
    assert.equal((await hangUp(instance)).changed, 'content of SECRET_FILE')
    assert.equal((await middle.client.follow(middle.back)).headers.location, '/somewhere?x=1')
    write('secret', fresh)
    assert.equal((await hangUp(instance)).event, 'config_reloaded')
    for (const { client } of [before, middle]) {
      assert.equal((await client.get('/_menshen/me')).status, 200)
      assert.match((await client.get('/_menshen/account')).text, /下线/)
    }
    // A start with the new one alone knows them, too: everything was sealed anew.
    await instance.killAll('SIGTERM')
    const restarted = await start()
    assert.ok(!restarted.lines.some(({ event }) => event === 'data_keys_closed'))

    write('client-secret', 'not-yet-known')
    const wrong = await hangUp(restarted)
    assert.equal(wrong.event, 'config_reloaded')
    write('client-secret', '')
    const empty = await hangUp(restarted)
    assert.deepEqual([empty.event, empty.file], ['config_refused', './client-secret'])
    write('client-secret', CLIENT_SECRET)
    await hangUp(restarted)
  })

  test('a reload also reads scripts that the configuration imports again, including a CommonJS one', async t => {
    const { folder, write, start } = await openFiles(t)
    const rules = (count: number) => Array.from({ length: count }, (_, n) => ({ path: `/${n}`, public: true }))
    write('more.cjs', `module.exports = ${JSON.stringify(rules(1))}\n`)
    write('menshen.config.ts', "import rules from './more.cjs'\nexport default { rules }\n")
    const instance = await start()
    write('more.cjs', `module.exports = ${JSON.stringify(rules(2))}\n`)
    assert.equal((await hangUp(instance)).rules, 2)

    await t.test(
      'fixing an imported script triggers a reload, even if the script was never loaded successfully',
      async () => {
        rmSync(join(folder, 'more.cjs'))
        write('menshen.config.ts', "import rules from './new.ts'\nexport default { rules }\n")
        assert.match(String((await hangUp(instance)).detail), /new\.ts/)
        const broken = await nextOutcome(instance, () => write('new.ts', 'export default [\n'))
        assert.equal(broken.event, 'config_refused')
        const mended = await nextOutcome(instance, () =>
          write('new.ts', `export default ${JSON.stringify(rules(4))}\n`),
        )
        assert.deepEqual([mended.event, mended.rules], ['config_reloaded', 4])
      },
    )
  })

  test('changes to the configuration and a secret file during startup trigger a reload', async t => {
    const { write, start } = await openFiles(t)
    // Once it was loaded, it and the secret are others.
    write(
      'menshen.config.ts',
      `import { existsSync, renameSync } from 'node:fs'
if (existsSync('next')) {
  renameSync('next', 'menshen.config.ts')
  renameSync('next-secret', 'client-secret')
}
export default {}
`,
    )
    write('next', "export default { rules: [{ path: '/x', public: true }] }\n")
    write('next-secret', 'brand-new-secret')
    const instance = await start()
    const { changed, rules } = await instance.said(({ event }) => event === 'config_reloaded')
    assert.deepEqual([changed, rules], ['content of CLIENT_SECRET_FILE, rules', 1])
  })

  test('SIGHUP signals during a reload are combined into one more reload', async t => {
    const { configure, write, start } = await openFiles(t)
    // It takes its time to be loaded.
    write('menshen.config.ts', 'await new Promise(done => setTimeout(done, 300))\nexport default {}\n')
    const instance = await start()
    await nextOutcome(instance, () => {
      for (let n = 0; n < 5; n++) process.kill(instance.pid, 'SIGHUP')
    })
    configure({ rules: [{ path: '/x', public: true }] })
    process.kill(instance.pid, 'SIGHUP')
    await until(() => outcomes(instance).at(-1)?.rules === 1)
    assert.ok(outcomes(instance).length <= 3, `${outcomes(instance).length} reloads`)

    await t.test(
      'a configuration that is still loading after 5 seconds is refused and does not block the next reload',
      async () => {
        write('menshen.config.ts', 'await new Promise(() => {})\nexport default {}\n')
        process.kill(instance.pid, 'SIGHUP')
        await instance.said(({ detail }) => /is not loaded after 5 seconds/.test(String(detail)))
        configure({})
        process.kill(instance.pid, 'SIGHUP')
        await until(() => outcomes(instance).at(-1)?.rules === 0)
      },
    )
  })

  test('a secret file that only a refused configuration names is watched, and a start names it in one sentence', async t => {
    const { folder, provider, configure, write, start } = await openFiles(t, { AUTH_URL: '', CLIENT_ID: '' })
    const { AUTH_URL, CLIENT_ID } = provider.settings
    const named = (clientSecretFile: string) => ({
      provider: { preset: 'idaas', vars: { auth_url: AUTH_URL }, clientId: CLIENT_ID, clientSecretFile },
    })
    const own = { CLIENT_SECRET_FILE: '' }
    configure(named('./client-secret'))
    const instance = await start(own)
    for (const [name, before] of [
      ['missing', undefined],
      ['empty', ''],
    ] as const) {
      if (before !== undefined) write(name, before)
      configure(named(`./${name}`))
      const refused = await hangUp(instance)
      assert.deepEqual([refused.event, refused.file], ['config_refused', join(folder, 'menshen.config.ts')])
      assert.match(String(refused.detail), new RegExp(`^provider\\.clientSecretFile is "\\./${name}", which`))
      assert.equal((await nextOutcome(instance, () => write(name, CLIENT_SECRET))).event, 'config_reloaded')
    }
    configure(named('./none'))
    const { code, output } = await runMenshen({ STORE: 'memory:' }, { cwd: folder })
    assert.equal(code, 1)
    assert.match(
      output,
      /^provider\.clientSecretFile is "\.\/none", which is missing; expected the path of a readable file\.$/,
    )
  })
})
