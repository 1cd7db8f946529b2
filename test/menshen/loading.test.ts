// What is loaded when: an application that imports the library does not load what it does not use.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'

const ROOT = new URL('../../', import.meta.url).href
const LIBRARY = new URL('src/index.ts', ROOT).href

/** Parts that are loaded when they are used: by import, and by a start with sessions in memory. */
const PARTS = {
  console: /\/src\/console\/(pages|.*-tab|overview|end-sessions)\.ts$/,
  doctor: /\/src\/doctor\/(examine|.*-probes)\.ts$/,
  'development provider': /\/src\/dev-provider\//,
  'Redis client': /\/node_modules\/(redis|@redis)\/|\/src\/stores\/redis\//,
}
/** What `import 'menshen'` does not load besides. */
const STARTED = {
  'anything of the console': /\/src\/console\//,
  'anything of the doctor': /\/src\/doctor\//,
  'the checks of a configuration': /\/src\/config\/file\.ts$/,
  gateway: /\/src\/(assembly|gateway|menshen|proxy|provider|session\/sessions|sign-in)\b/,
  packages: /\/node_modules\/(undici|jose|pino|rate-limiter-flexible|hono|bowser|uplot)\//,
}

suite('loading', () => {
  test("import 'menshen' loads neither console, doctor, development provider, Redis client, gateway nor the checks of a configuration", async t => {
    const [loaded] = await loadedAt(t, `await import('menshen'); step()`)
    assert.deepEqual(foundIn(loaded, { ...PARTS, ...STARTED }), [])
    assert.ok(loaded?.includes(LIBRARY))
  })

  test('a start with sessions in memory loads neither console, doctor, development provider nor a Redis client', async t => {
    const [loaded] = await loadedAt(t, `${START} step(); await menshen.close()`)
    assert.deepEqual(foundIn(loaded, PARTS), [])
    assert.deepEqual(foundIn(loaded, { gateway: STARTED.gateway }), ['gateway'])
  })

  test('a visitor who requests pages of the console does not cause its code to load', async t => {
    const script = `${START}
      for (const path of ['/_menshen/console', '/_menshen/console/health', '/_menshen/console/rules'])
        await menshen.fetch(new Request('http://localhost:3000' + path), { address: '127.0.0.1' })
      step(); await menshen.close()`
    const [loaded] = await loadedAt(t, script)
    assert.deepEqual(foundIn(loaded, PARTS), [])
  })

  test('console and doctor load on first use, also for several first requests at once and after a load that failed', async t => {
    let failure: Error | undefined = new Error('EMFILE: too many open files')
    const loaded = watchLoads(t, url => {
      if (failure && url.endsWith('/src/console/pages.ts')) throw failure
    })
    const scene = await setUp(t)
    const admin = await scene.user('admin')
    assert.deepEqual(foundIn(loaded, PARTS), [])

    assert.equal((await admin.get('/_menshen/console')).status, 500)
    assert.equal(scene.lines.filter(({ event }) => event === 'request_failed').length, 1)
    assert.equal((await admin.get('/')).text, 'hello')

    failure = undefined
    const pages = ['', '', '/sessions', '/rules', '/audit', '/health', '/health', '/settings']
    const answers = await Promise.all(pages.map(page => admin.get(`/_menshen/console${page}`)))
    assert.deepEqual(
      answers.map(({ status }) => status),
      pages.map(() => 200),
    )
    assert.match(answers[5]?.text ?? '', /title="store"/)
    assert.deepEqual(foundIn(loaded, PARTS), ['console', 'doctor'])
  })
})

/** The addresses of what this process loads from now on. `onLoad` can make it fail. */
function watchLoads(t: TestContext, onLoad: (url: string) => void): string[] {
  const loaded: string[] = []
  const hooks = registerHooks({
    load(url, context, next) {
      onLoad(url)
      loaded.push(url)
      return next(url, context)
    },
  })
  t.after(() => hooks.deregister())
  return loaded
}

const START = `
  const { createMenshen } = await import('menshen')
  const menshen = await createMenshen({ store: 'memory:', baseUrl: 'http://localhost:3000', provider: 'oidc',
    issuer: 'http://localhost:1', clientId: 'menshen', clientSecret: 'secret-of-the-test', secret: 's'.repeat(32) });`

/** The addresses of everything that a new process has loaded, at each `step()` of its script. */
async function loadedAt(t: TestContext, script: string): Promise<string[][]> {
  const file = join(tempFolder(t), 'application.mjs')
  writeFileSync(
    file,
    `import { registerHooks } from 'node:module'
    const loaded = []
    const steps = []
    const step = () => steps.push([...loaded])
    registerHooks({
      resolve: (name, context, next) => next(name === 'menshen' ? ${JSON.stringify(LIBRARY)} : name, context),
      load: (url, context, next) => { loaded.push(url); return next(url, context) },
    })
    ${script}
    console.log(JSON.stringify(steps))`,
  )
  const { stdout } = await promisify(execFile)(process.execPath, [file], { maxBuffer: 10 * 1024 * 1024 })
  return JSON.parse(stdout)
}

function foundIn(loaded: readonly string[] | undefined, parts: Record<string, RegExp>): string[] {
  assert.ok(loaded)
  return Object.keys(parts).filter(part => loaded.some(url => parts[part]?.test(url)))
}
