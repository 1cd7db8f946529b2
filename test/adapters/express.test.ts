// menshen/express in front of real Express applications.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { suite, test } from 'node:test'
import express, { type ErrorRequestHandler, type Express } from 'express'
import { menshen, requireRole, requireUser } from '../../src/adapters/express.ts'
import { adapterSuite, LIFE, openApplication, type ServeApplication, THEIRS } from './suite.ts'

const onError: ErrorRequestHandler = (error, _request, response, _next) => {
  response.status(500).json({ failed: error.message })
}

function addRoutes(app: Express): void {
  for (const path of ['/page', '/public/page', '/finance/page'])
    app.get(path, (request, response) => void response.json({ user: request.user ?? null }))
  app.get('/public/members', requireUser(), (_request, response) => void response.send('members'))
  app.get('/public/reports', requireRole('developer'), (_request, response) => void response.send('reports'))
  app.get('/cookies', (_request, response) => {
    response.set(THEIRS).end('cookies')
  })
  app.get('/head', (_request, response) => void response.writeHead(200, THEIRS).end('cookies'))
  app.get('/throws', () => {
    throw new Error('by the handler')
  })
  app.post('/public/echo', async (request, response) => void response.send(await text(request)))
}

async function listen(app: Express, port: number) {
  const server = createServer(app).listen(port, '127.0.0.1')
  await once(server, 'listening')
  return () => {
    server.close()
    server.closeAllConnections()
  }
}

const serve: ServeApplication = (auth, port) => {
  const app = express()
  app.get('/public/bare', requireUser())
  app.use(menshen(auth))
  addRoutes(app)
  app.use(onError)
  return listen(app, port)
}

adapterSuite('Express', serve)

suite('menshen/express', () => {
  test('menshen/express reports a missing await of createMenshen when it is mounted', () => {
    const forgotten: unknown = Promise.resolve({})
    assert.throws(() => menshen(forgotten as Parameters<typeof menshen>[0]), {
      code: 'bad_settings',
      message: 'menshen: expected app.use(menshen(auth)), with the result of createMenshen: await createMenshen(…).',
    })
  })

  test('menshen/express accepts a form that an earlier body parser has read', async t => {
    const behindParser: ServeApplication = (auth, port) => {
      const app = express()
      app.use(express.urlencoded({ extended: true }))
      app.use(menshen(auth))
      return listen(app, port)
    }
    const { visitor, url } = await openApplication(t, behindParser, { stateCheck: 'bound' })
    const headers = { origin: url }
    assert.equal((await visitor().post('/login', { provider: 'default' }, { headers })).status, 303)
  })

  test('menshen/express keeps its cookie and the handler’s headers, however the handler writes the response head', async t => {
    const list = ['set-cookie', 'theirs=1', 'set-cookie', 'more=1', 'Cache-Control', 'public', 'x-their', 'own']
    const pairs = [['Set-Cookie', ['theirs=1', 'more=1']] as const, ['cache-control', 'public'] as const]
    const ways: Record<string, (response: ServerResponse) => unknown> = {
      object: response => response.writeHead(200, { 'Set-Cookie': ['theirs=1', 'more=1'], 'x-their': 'own' }),
      message: response => response.writeHead(200, 'Fine', { 'set-cookie': ['theirs=1', 'more=1'], 'x-their': 'own' }),
      list: response => response.writeHead(200, list),
      pairs: response => response.setHeader('x-their', 'own').writeHead(200, pairs as never),
      before: response =>
        response.setHeader('x-their', 'own').setHeader('set-cookie', ['theirs=1', 'more=1']).writeHead(200),
      // What the first call set is gone, as without us.
      failed: response => {
        assert.throws(() => response.writeHead(200, { bad: '\n' }))
        response.writeHead(200, { 'set-cookie': ['theirs=1', 'more=1'], 'cache-control': 'public', 'x-their': 'own' })
      },
      flushed: response => {
        response.setHeader('x-their', 'own').setHeader('set-cookie', ['theirs=1', 'more=1'])
        response.setHeader('cache-control', 'public')
        response.flushHeaders()
      },
    }
    const byHand: ServeApplication = (auth, port) => {
      const app = express()
      app.use(menshen(auth))
      app.get('/:way', (request, response) => {
        ways[request.params.way]?.(response)
        response.end()
      })
      return listen(app, port)
    }
    const { user, clock } = await openApplication(t, byHand)
    const lisi = await user('lisi')
    clock.now += (LIFE - 60) * 1000
    for (const way of Object.keys(ways)) {
      const { setCookies, headers } = await lisi.get(`/${way}`)
      assert.deepEqual(
        setCookies.map(cookie => cookie.split('=')[0]),
        ['theirs', 'more', 'menshen_session'],
        way,
      )
      assert.deepEqual([headers['cache-control'], headers['x-their']], ['no-store', 'own'], way)
    }
  })

  test('menshen/express ignores the forwarded address of a proxy that only `trust proxy` trusts', async t => {
    const trusting: ServeApplication = (auth, port) => {
      const app = express()
      app.set('trust proxy', true)
      app.use(menshen(auth))
      app.get('/public/page', (request, response) => void response.send(request.ip))
      return listen(app, port)
    }
    const { visitor } = await openApplication(t, trusting, { rateLimitPerMinute: 1 })
    const ask = (path: string, address: string) =>
      visitor().get(path, { headers: { 'x-forwarded-for': address, 'x-forwarded-proto': 'https' } })
    assert.equal((await ask('/public/page', '192.0.2.1')).text, '192.0.2.1')
    assert.equal((await ask('/callback?code=x&state=abc_idp', '192.0.2.1')).status, 302)
    assert.equal((await ask('/callback?code=x&state=abc_idp', '192.0.2.2')).status, 429)
  })

  test('menshen/express runs before later routes of the same path, and judges the full path where it is mounted below one', async t => {
    const below: ServeApplication = (auth, port) => {
      const app = express()
      app.get('/elsewhere', (request, response) => void response.json({ user: request.user ?? null }))
      app.use(['/login', '/callback', '/logout', '/_menshen', '/finance'], menshen(auth))
      app.get('/login', (_request, response) => void response.send('shadow'))
      app.get('/finance/page', (request, response) => void response.json({ user: request.user ?? null }))
      return listen(app, port)
    }
    const { visitor, user } = await openApplication(t, below)
    assert.notEqual((await visitor().get('/login')).text, 'shadow')
    assert.deepEqual((await visitor().get('/elsewhere')).json(), { user: null })
    assert.equal((await (await user('lisi')).get('/finance/page')).status, 403)
    assert.equal((await (await user('admin')).get('/finance/page')).status, 200)
  })

  test('menshen/express refuses every request if it is mounted below a path where its own pages cannot be reached', async t => {
    const arrangements: Record<string, (app: Express, auth: Parameters<typeof menshen>[0]) => unknown> = {
      path: (app, auth) => app.use('/app', menshen(auth)),
      router: (app, auth) => app.use('/app', express.Router().use(menshen(auth))),
      some: (app, auth) => app.use(['/app', '/login', '/logout', '/callback'], menshen(auth)),
    }
    for (const [name, arrange] of Object.entries(arrangements)) {
      const { visitor } = await openApplication(t, (auth, port) => {
        const app = express()
        arrange(app, auth)
        app.get('/app/page', (_request, response) => void response.send('page'))
        app.use(onError)
        return listen(app, port)
      })
      const { status, text } = await visitor().get('/app/page')
      assert.equal(status, 500, name)
      assert.match(
        text,
        /is mounted below \\"\/app\\", and \/\w+(\/me)? does not reach it, so no user could sign in/,
        name,
      )
    }
    const { visitor } = await openApplication(t, (auth, port) => {
      const app = express()
      const inner = express.Router().use(menshen(auth))
      app.use('/', inner)
      inner.use('/app', (_request, response) => void response.send('page'))
      return listen(app, port)
    })
    assert.equal((await visitor().get('/app/page', { headers: { accept: 'text/html' } })).headers.location, '/login')
  })

  test('requireUser throws an error if it gets an argument, in each adapter', async () => {
    const { requireUser: ofFastify } = await import('../../src/adapters/fastify.ts')
    const { requireUser: ofHono } = await import('../../src/adapters/hono.ts')
    for (const given of [requireUser, ofFastify, ofHono]) {
      const call = given as unknown as (argument: unknown) => void
      assert.throws(() => call('developer'), /requireUser: expected no arguments; use requireRole\('developer'\)\.$/)
      assert.throws(() => call({ url: '/' }), /requireUser: expected no arguments; write requireUser\(\)\.$/)
    }
    // @ts-expect-error: without () it is not a handler
    const forgotten = (app: Express) => app.get('/', requireUser)
    assert.ok(forgotten)
  })

  test('menshen/express throws an error if requireRole is called without valid role names', () => {
    for (const roles of [[], [''], [['developer']], [undefined]])
      assert.throws(() => requireRole(...(roles as [string])), /^MenshenError: requireRole: expected names of roles/)
  })
})
