// menshen/fastify in real Fastify applications.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify'
import { menshen, requireRole, requireUser } from '../../src/adapters/fastify.ts'
import type { Menshen } from '../../src/index.ts'
import { adapterSuite, LIFE, openApplication, type ServeApplication, THEIRS } from './suite.ts'

function addRoutes(app: FastifyInstance): void {
  for (const path of ['/page', '/public/page', '/finance/page'])
    app.get(path, async request => ({ user: request.user ?? null }))
  app.get('/public/members', { preHandler: requireUser() }, async () => 'members')
  app.get('/public/reports', { preHandler: requireRole('developer') }, async () => 'reports')
  app.get('/cookies', async (_request, reply) => {
    reply.headers(THEIRS)
    return 'cookies'
  })
  app.get('/head', (_request, reply) => {
    reply.hijack()
    reply.raw.writeHead(200, THEIRS).end('cookies')
  })
  app.get('/throws', async () => {
    throw new Error('by the handler')
  })
  app.post('/public/echo', async request => request.body)
}

function createApp(options: FastifyServerOptions = {}): FastifyInstance {
  const app = fastify({ forceCloseConnections: true, ...options })
  app.setErrorHandler<Error>(({ message }, _request, reply) => reply.code(500).send({ failed: message }))
  return app
}

async function listen(app: FastifyInstance, port: number) {
  await app.listen({ port, host: '127.0.0.1' })
  return () => app.close()
}

const serve: ServeApplication = async (auth, port) => {
  const app = createApp()
  const tooEarly = requireUser()
  app.addHook('onRequest', async (request, reply) => {
    if (request.url === '/public/bare') await tooEarly.call(app, request, reply)
  })
  await app.register(menshen, { auth })
  addRoutes(app)
  return listen(app, port)
}

adapterSuite('Fastify', serve)

const NOBODY: Pick<Menshen, 'admit'> = { admit: () => Promise.reject(new Error('not asked')) }

suite('menshen/fastify', () => {
  test('menshen/fastify applies to the scope that registers it and its nested scopes, and to no other', async t => {
    const scoped: ServeApplication = async (auth, port) => {
      const app = createApp()
      app.register(async scope => {
        scope.register(menshen, { auth })
        scope.get('/page', async request => ({ user: request.user ?? null }))
        scope.register(
          async inner => void inner.get('/page', { onRequest: requireRole('developer') }, async () => 'admin'),
          { prefix: '/admin' },
        )
      })
      app.get('/elsewhere', async request => ({ known: 'user' in request }))
      return listen(app, port)
    }
    const { visitor, user } = await openApplication(t, scoped)
    const headers = { accept: 'text/html' }
    assert.equal((await visitor().get('/page', { headers })).headers.location, '/login')
    assert.equal((await visitor().get('/login')).status, 200)
    assert.equal((await visitor().get('/_menshen/health')).status, 200)
    assert.deepEqual((await visitor().get('/elsewhere')).json(), { known: false })
    assert.equal((await visitor().get('/nothing', { headers })).status, 404)
    const lisi = await user('lisi')
    assert.equal((await lisi.get('/page')).status, 200)
    assert.equal((await lisi.get('/admin/page')).status, 403)
  })

  test('menshen/fastify keeps its cookie and no-store if a later onSend hook of the application sets its own', async t => {
    const hooked: ServeApplication = async (auth, port) => {
      const app = createApp()
      await app.register(menshen, { auth })
      app.addHook('onSend', async (_request, reply) => void reply.headers(THEIRS))
      app.get('/page', async () => 'page')
      return listen(app, port)
    }
    const { user, clock } = await openApplication(t, hooked)
    const lisi = await user('lisi')
    clock.now += (LIFE - 60) * 1000
    const { setCookies, headers } = await lisi.get('/page')
    assert.equal(headers['cache-control'], 'no-store')
    assert.deepEqual(
      setCookies.map(cookie => cookie.split('=')[0]),
      ['theirs', 'menshen_session'],
    )
  })

  test('menshen/fastify also applies to routes and scopes that were registered before it', async t => {
    const late: ServeApplication = async (auth, port) => {
      const app = createApp()
      app.get('/page', async request => ({ user: request.user ?? null }))
      await app.register(async scope => void scope.get('/inner', async () => 'inner'))
      await app.register(menshen, { auth })
      return listen(app, port)
    }
    const { visitor, user } = await openApplication(t, late)
    for (const path of ['/page', '/inner'])
      assert.equal((await visitor().get(path, { headers: { accept: 'application/json' } })).status, 401, path)
    assert.equal((await (await user('lisi')).get('/page')).status, 200)
  })

  test('menshen/fastify does not start below a prefix, twice, without auth, or beside application routes at its addresses', async () => {
    const start = async (arrange: (app: FastifyInstance) => unknown) => {
      const app = createApp()
      await Promise.try(arrange, app)
      try {
        await app.ready()
      } finally {
        await app.close()
      }
    }
    const page = async () => 'page'
    const below = start(app => {
      app.register(async scope => void scope.register(menshen, { auth: NOBODY }), { prefix: '/admin' })
    })
    await assert.rejects(below, {
      code: 'bad_settings',
      message: /is mounted below "\/admin", where \/login would not be found/,
    })
    const before = start(app => {
      app.post('/login', page)
      app.register(menshen, { auth: NOBODY })
    })
    await assert.rejects(before, { message: /^menshen: the application has a route \/login, which is an address/ })
    for (const url of ['/callback', '/_menshen/mine', '/callback/staff']) {
      const after = start(async app => {
        await app.register(menshen, { auth: { ...NOBODY, callbackPaths: ['/callback/staff'] } })
        app.get(url, page)
      })
      await assert.rejects(after, { message: new RegExp(`has a route ${url}`) })
    }
    const twice = start(app => app.register(menshen, { auth: NOBODY }).register(menshen, { auth: NOBODY }))
    await assert.rejects(twice, { message: /request\.user already exists/ })
    await assert.rejects(
      start(app => app.register(menshen, {} as never)),
      { message: /expected app\.register/ },
    )
    await start(app => app.register(menshen, { auth: NOBODY }).get('/:page', page))
  })

  test('menshen/fastify ignores proxies that only `trustProxy` trusts and paths that only a case-insensitive router matches', async t => {
    const trusting: ServeApplication = async (auth, port) => {
      const app = createApp({ trustProxy: true, routerOptions: { caseSensitive: false } })
      await app.register(menshen, { auth })
      app.get('/public/page', async request => request.ip)
      return listen(app, port)
    }
    const { visitor, user } = await openApplication(t, trusting, { rateLimitPerMinute: 2 })
    const ask = (path: string, address: string) => visitor().get(path, { headers: { 'x-forwarded-for': address } })
    assert.equal((await ask('/public/page', '192.0.2.1')).text, '192.0.2.1')
    assert.equal((await (await user('lisi')).get('/LOGIN')).status, 404)
    assert.equal((await ask('/callback?code=x&state=abc_idp', '192.0.2.1')).status, 302)
    assert.equal((await ask('/callback?code=x&state=abc_idp', '192.0.2.2')).status, 429)
  })
})
