// The same small application, with sign-in by Menshen or by what is usual in its framework:
// `node bench/servers/application.ts PORT PROVIDER_URL KIND`. It greets the signed-in user.

import cookie from '@fastify/cookie'
import fastifySession from '@fastify/session'
import express from 'express'
import session from 'express-session'
import fastify from 'fastify'
import passport from 'passport'
import * as forExpress from '../../src/adapters/express.ts'
import * as forFastify from '../../src/adapters/fastify.ts'
import { createMenshen, type Session } from '../../src/index.ts'
import { CLIENT_SECRET } from './client-secret.ts'
import { userInfoOf } from './users.ts'

const SECRET = 'only-for-the-benchmarks-and-long-enough'

type Kind = 'express-menshen' | 'express-passport' | 'fastify-menshen' | 'fastify-session'
type Start = (port: number, provider: string) => Promise<unknown>

const STARTS: Readonly<Record<Kind, Start>> = {
  async 'express-menshen'(port, provider) {
    const app = express()
    app.use(forExpress.menshen(await createAuth(port, provider)))
    await listen(app, port)
  },

  async 'express-passport'(port) {
    const users = new Map<string, Express.User>()
    passport.serializeUser<string>(({ userInfo }, done) => done(null, userInfo.username))
    passport.deserializeUser<string>((username, done) => done(null, users.get(username)))
    const app = express()
    app.use(session({ secret: SECRET, resave: false, saveUninitialized: false }), passport.session())
    app.get('/sign-in', (request, response) => {
      const user = userOf(String(request.query.user))
      users.set(user.userInfo.username, user)
      request.login(user, () => response.end())
    })
    await listen(app, port)
  },

  async 'fastify-menshen'(port, provider) {
    const app = fastify()
    app.register(forFastify.menshen, { auth: await createAuth(port, provider) })
    app.get('/', async ({ user }) => `Hello ${user?.userInfo.username}`)
    await app.listen({ port, host: '127.0.0.1' })
  },

  async 'fastify-session'(port) {
    const app = fastify()
    app.register(cookie)
    app.register(fastifySession, {
      secret: SECRET,
      cookie: { secure: false },
      saveUninitialized: false,
      rolling: false,
    })
    app.get<{ Querystring: { user: string } }>('/sign-in', async request => {
      request.session.set('user', userOf(request.query.user))
    })
    app.get('/', async (request, reply) => {
      const user = request.session.get('user')
      return user ? `Hello ${user.userInfo.username}` : reply.code(401).send()
    })
    await app.listen({ port, host: '127.0.0.1' })
  },
}

declare module 'fastify' {
  interface Session {
    user: ReturnType<typeof userOf>
  }
}

function createAuth(port: number, authUrl: string) {
  const baseUrl = `http://127.0.0.1:${port}`
  return createMenshen({ baseUrl, authUrl, clientId: 'bench', clientSecret: CLIENT_SECRET, store: 'memory:' })
}

function listen(app: express.Express, port: number): Promise<void> {
  app.get('/', (request, response) => {
    if (request.user) response.send(`Hello ${request.user.userInfo.username}`)
    else response.status(401).end()
  })
  return new Promise(resolve => app.listen(port, '127.0.0.1', () => resolve()))
}

/** The session that Menshen would have for this user. */
function userOf(username: string): Session {
  return { userInfo: { ...userInfoOf(username) }, userRole: 'common', groups: [], expiresAt: 0 }
}

const [port, provider = '', kind] = process.argv.slice(2)
await STARTS[kind as Kind](Number(port), provider)
process.stdout.write('ready\n')
