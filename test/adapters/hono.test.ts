// menshen/hono in front of real Hono applications.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { cpSync } from 'node:fs'
import type { Server } from 'node:http'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { type HttpBindings, serve as serveOnNode } from '@hono/node-server'
import { Hono } from 'hono'
import { menshen, requireRole, requireUser } from '../../src/adapters/hono.ts'
import { keySha256, newKey } from '../../src/util/key-form.ts'
import { tempFolder } from '../kit/temp.ts'
import { adapterSuite, openApplication, type ServeApplication, THEIRS } from './suite.ts'

function addRoutes(app: Hono): void {
  for (const path of ['/page', '/public/page', '/finance/page'])
    app.get(path, c => c.json({ user: c.get('user') ?? null }))
  app.get('/public/members', requireUser(), c => c.text('members'))
  app.get('/public/reports', requireRole('developer'), c => c.text('reports'))
  app.get('/cookies', () => new Response('cookies', { headers: THEIRS }))
  app.get('/head', c => c.text('cookies'))
  app.get('/throws', () => {
    throw new Error('by the handler')
  })
  app.post('/public/echo', async c => c.text(await c.req.text()))
}

async function listen(app: Hono, port: number) {
  const server = serveOnNode({ fetch: app.fetch, port, hostname: '127.0.0.1' }) as Server
  if (!server.listening) await once(server, 'listening')
  return () => {
    server.close()
    server.closeAllConnections()
  }
}

const serve: ServeApplication = (auth, port) => {
  const app = new Hono()
  app.onError((error, c) => c.json({ failed: error.message }, 500))
  app.get('/public/bare', requireUser())
  // In front of ours, so that it has the last word.
  app.use('/head', async (c, next) => {
    await next()
    c.header('set-cookie', THEIRS['set-cookie'], { append: true })
    for (const name of ['cache-control', 'cdn-cache-control'] as const) c.header(name, THEIRS[name])
  })
  app.use(menshen(auth))
  addRoutes(app)
  return listen(app, port)
}

adapterSuite('Hono', serve)

suite('menshen/hono', () => {
  test('menshen/hono removes keys from the Hono request and from the Node request behind it', async t => {
    const key = newKey()
    const { visitor } = await openApplication(
      t,
      (auth, port) => {
        const app = new Hono<{ Bindings: HttpBindings }>()
        app.use(menshen(auth))
        app.get('/api', ({ req, env: { incoming }, get }) => {
          const { headers, headersDistinct, rawHeaders } = incoming
          const read = JSON.stringify([req.header(), headers, headersDistinct, rawHeaders])
          return new Response(`${get('user')?.userInfo.username} ${read}`)
        })
        return listen(app as unknown as Hono, port)
      },
      {
        machines: [{ name: 'backup', keySha256: keySha256(key) }],
        rules: [{ path: '/api', roles: ['*'], keys: true }],
      },
    )
    const headers = { authorization: `Bearer ${key}`, 'x-menshen-key': key }
    const { text } = await visitor().get('/api', { headers })
    assert.match(text, /^machine:backup /)
    assert.doesNotMatch(text, /mk_|authorization|x-menshen-key/)
  })

  test('menshen/hono reports a missing await of createMenshen when it is mounted', () => {
    const forgotten: unknown = Promise.resolve({})
    assert.throws(() => menshen(forgotten as Parameters<typeof menshen>[0]), {
      code: 'bad_settings',
      message: 'menshen: expected app.use(menshen(auth)), with the result of createMenshen: await createMenshen(…).',
    })
  })

  test('menshen/hono accepts a form that an earlier middleware has read, and keeps the cookies that it has set', async t => {
    const behindParser: ServeApplication = (auth, port) => {
      const app = new Hono()
      app.use(async (c, next) => {
        c.header('set-cookie', 'theirs=1')
        await c.req.parseBody()
        await next()
      })
      app.use(menshen(auth))
      return listen(app, port)
    }
    const { visitor, url } = await openApplication(t, behindParser, { stateCheck: 'bound' })
    const { status, setCookies } = await visitor().post('/login', { provider: 'default' }, { headers: { origin: url } })
    assert.equal(status, 303)
    assert.deepEqual(
      setCookies.map(cookie => cookie.split('=')[0]),
      ['theirs', 'menshen_attempt'],
    )
  })

  test('menshen/hono works in an application that uses another copy of Hono', async t => {
    const folder = tempFolder(t)
    cpSync(fileURLToPath(new URL('../../node_modules/hono', import.meta.url)), folder, { recursive: true })
    const other: typeof import('hono') = await import(pathToFileURL(join(folder, 'dist/index.js')).href)
    assert.notEqual(other.Hono, Hono)
    for (const path of ['*', '/app/*']) {
      const { user, visitor, url } = await openApplication(
        t,
        (auth, port) => {
          const app = new other.Hono()
          app.onError((error, c) => c.json({ failed: error.message }, 500))
          app.use(async (c, next) => {
            if (c.req.method === 'POST') await c.req.parseBody()
            await next()
          })
          app.use(path, menshen(auth))
          if (path !== '*') app.use('/login', menshen(auth))
          addRoutes(app)
          return listen(app, port)
        },
        { stateCheck: path === '*' ? 'suffix' : 'bound' },
      )
      if (path === '*') {
        const lisi = await user('lisi')
        assert.equal((await lisi.get('/page')).json<{ user: { userRole: string } }>().user.userRole, 'common')
        assert.equal((await lisi.get('/public/reports', { headers: { accept: 'text/html' } })).status, 403)
        assert.equal((await visitor().get('/public/page')).status, 200)
      } else {
        assert.match(
          (await visitor().get('/app/page')).text,
          /is mounted at .*\/app\/\*.*, where \/login would not be found/,
        )
        const { status } = await visitor().post('/login', { provider: 'default' }, { headers: { origin: url } })
        assert.equal(status, 303)
      }
    }
  })

  test('menshen/hono refuses every request if it is mounted below a path where its own pages cannot be reached', async t => {
    const arrangements: ((app: Hono, auth: Parameters<typeof menshen>[0]) => unknown)[] = [
      (app, auth) => app.use('/app/*', menshen(auth)),
      (app, auth) => app.route('/app', new Hono().use(menshen(auth))),
    ]
    for (const arrange of arrangements) {
      const { visitor } = await openApplication(t, (auth, port) => {
        const app = new Hono()
        app.onError((error, c) => c.json({ failed: error.message }, 500))
        arrange(app, auth)
        app.get('/app/page', c => c.text('page'))
        return listen(app, port)
      })
      const { status, text } = await visitor().get('/app/page')
      assert.equal(status, 500)
      assert.match(text, /is mounted at .*\/app\/\*.*, where \/login would not be found/)
    }
  })

  test('menshen/hono works without a server, with app.request, and in routes mounted with app.route', async t => {
    const apps: Hono[] = []
    const { user, url } = await openApplication(t, (auth, port) => {
      const app = new Hono()
      const admin = new Hono().get('/page', requireRole('developer'), c => c.json({ user: c.get('user') }))
      app.use(menshen(auth))
      app.route('/admin', admin)
      apps.push(app)
      return listen(app, port)
    })
    const [app = assert.fail()] = apps
    const cookie = `menshen_session=${(await user('admin')).cookies.get('menshen_session')}`
    const asked = await app.request(`${url}/admin/page`, { headers: { cookie } })
    assert.equal((await asked.json()).user.userInfo.username, 'admin')
    assert.equal(
      (await app.request(`${url}/admin/page`, { headers: { accept: 'text/html' } })).headers.get('location'),
      '/login',
    )
    assert.equal((await app.request(`${url}/login`)).status, 200)
  })
})
