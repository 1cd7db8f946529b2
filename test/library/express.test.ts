// menshen/express in front of real Express applications.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { suite, test } from 'node:test'
import express, { type ErrorRequestHandler, type Express } from 'express'
import { menshen, requireRole, requireUser } from '../../src/adapters/express.ts'
import { adapterSuite, openApplication, type ServeApplication } from './adapter-suite.ts'

const onError: ErrorRequestHandler = (error, _request, response, _next) => {
  response.status(500).json({ failed: error.message })
}

function addRoutes(app: Express): void {
  for (const path of ['/page', '/public/page', '/finance/page'])
    app.get(path, (request, response) => void response.json({ user: request.user ?? null }))
  app.get('/public/members', requireUser(), (_request, response) => void response.send('members'))
  app.get('/public/reports', requireRole('developer'), (_request, response) => void response.send('reports'))
  app.get('/cookies', (_request, response) => {
    response.setHeader('set-cookie', 'theirs=1')
    response.setHeader('cache-control', 'public')
    response.end('cookies')
  })
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
  test('takes a form that a parser in front of it has read', async t => {
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

  test('does not take the word of a proxy that only `trust proxy` trusts', async t => {
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

  test('is asked before routes of the same address, and judges whole addresses below a path of its own', async t => {
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

  test('says at the start what is wrong with a role', () => {
    for (const roles of [[], [''], [['developer']], [undefined]])
      assert.throws(() => requireRole(...(roles as [string])), /^MenshenError: requireRole: expected names of roles/)
  })
})
