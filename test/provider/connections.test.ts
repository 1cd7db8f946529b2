// Which connections the calls of a sign-in take: one of its own, which nobody else's words pass over.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { before, type TestContext, test } from 'node:test'
import tls from 'node:tls'
import { createBoundedFetch } from '../../src/provider/fetch.ts'
import { planNamedProvider } from '../../src/provider/plan.ts'
import { createProvider, type Provider } from '../../src/provider/provider.ts'
import { listen } from '../kit/listen.ts'
import { tempFolder } from '../kit/temp.ts'
import { filesOf, makeAuthority, makeCertificate } from '../proxies/certificates.ts'

type Certificate = ReturnType<typeof filesOf>
let good: Certificate
let ofAnother: Certificate

before(async t => {
  const folder = await tempFolder(t as TestContext)
  const authority = makeAuthority(folder)
  good = filesOf(makeCertificate(folder, 'good', authority))
  ofAnother = filesOf(makeCertificate(folder, 'other', authority, 'other.test'))
  const trusted = tls.getCACertificates('default')
  tls.setDefaultCACertificates([...trusted, filesOf(authority).cert.toString()])
})

interface Call {
  readonly what: string
  readonly socket: Socket
  readonly text: string
}

interface Script {
  /** May answer by itself: then true. */
  intercept?(call: Call, response: ServerResponse): boolean
}

/** Whoever brings a code is that user. */
async function startTlsProvider(t: TestContext, certificate: Certificate, script: Script = {}) {
  const calls: Call[] = []
  let handshakes = 0
  const server = createServer(certificate, async (request: IncomingMessage, response: ServerResponse) => {
    const body = await text(request)
    const what = `${request.method} ${request.url}`
    const call = { what, socket: request.socket, text: `${request.headers.authorization ?? ''} ${body}` }
    calls.push(call)
    if (script.intercept?.(call, response)) return
    const user = /(?:^Bearer at-|code=|refresh_token=rt-)(\w+)/.exec(call.text.trim())?.[1]
    if (request.url === '/token')
      return response.end(
        JSON.stringify({
          access_token: `at-${user}`,
          token_type: 'bearer',
          refresh_token: `rt-${user}`,
          expires_in: 60,
        }),
      )
    response.end(JSON.stringify({ sub: user, username: user }))
  })
  server.on('secureConnection', () => handshakes++)
  const { port } = await listen(t, server)
  return {
    origin: `https://localhost:${port}`,
    calls,
    handshakes: () => handshakes,
    connections: () => new Set(calls.map(({ socket }) => socket)).size,
  }
}

function providerAt(t: TestContext, tokenAt: string, userInfoAt = tokenAt): Provider {
  const plan = planNamedProvider('p', {
    preset: 'oauth2',
    authorizationUrl: `${tokenAt}/authorize`,
    tokenUrl: `${tokenAt}/token`,
    userInfoUrl: `${userInfoAt}/me`,
    clientId: 'c',
    clientSecret: 's',
    fields: { sub: ['sub'], username: ['username'] },
  })
  const settings = {
    BASE_URL: 'https://app.test',
    LOGIN_PATH: '/login',
    PROVIDER_TIMEOUT_MS: 5000,
    PROVIDER_PARALLEL_CALLS: 50,
  }
  const provider = createProvider(plan, { settings, now: Date.now, report() {} })
  t.after(() => provider.close())
  return provider
}

async function signIn(provider: Provider, user: string): Promise<string> {
  return provider.withSlot(async calls => {
    const tokens = await calls.redeem({ code: user, state: 'state_idp' })
    return (await calls.fetchUser(tokens, user)).userInfo.username
  })
}

test('a sign-in takes one handshake: user info is requested on the connection of the token request', async t => {
  const server = await startTlsProvider(t, good)
  const provider = providerAt(t, server.origin)
  for (const user of ['li', 'wang', 'zhao']) assert.equal(await signIn(provider, user), user)
  assert.equal(server.handshakes(), 3)
  assert.equal(server.calls.length, 6)
})

test('each connection carries requests of one user only, even with 30 parallel sign-ins', async t => {
  const server = await startTlsProvider(t, good)
  const provider = providerAt(t, server.origin)
  const users = Array.from({ length: 30 }, (_, n) => `user${n}`)
  assert.deepEqual(await Promise.all(users.map(user => signIn(provider, user))), users)
  const usersBySocket = new Map<Socket, Set<string>>()
  for (const { socket, text: sent } of server.calls) {
    const [user = ''] = /user\d+/.exec(sent) ?? []
    usersBySocket.set(socket, (usersBySocket.get(socket) ?? new Set()).add(user))
  }
  assert.equal(usersBySocket.size, users.length)
  for (const [, seen] of usersBySocket) assert.equal(seen.size, 1)
})

test('surplus data after a provider’s response is not used as the response to another user’s request', async t => {
  // A second answer behind the first: whoever asked next on this connection would be taken for the evil one.
  const evil = JSON.stringify({ sub: 'evil', username: 'evil' })
  const surplus = `HTTP/1.1 200 OK\r\nContent-Length: ${evil.length}\r\n\r\n${evil}`
  let sends = true
  const server = await startTlsProvider(t, good, {
    intercept({ what, socket }, response) {
      if (what !== 'GET /me' || !sends) return false
      sends = false
      const body = JSON.stringify({ sub: 'li', username: 'li' })
      response.writeHead(200, { 'content-length': body.length }).end(body, () => socket.write(surplus))
      return true
    },
  })
  const provider = providerAt(t, server.origin)
  assert.equal(await signIn(provider, 'li'), 'li')
  assert.equal(await signIn(provider, 'wang'), 'wang')
})

test('each code and each refresh token is sent on a new connection', async t => {
  const server = await startTlsProvider(t, good)
  const provider = providerAt(t, server.origin)
  await provider.withSlot(async calls => {
    const tokens = await calls.redeem({ code: 'li', state: 'state_idp' })
    await calls.fetchUser(tokens, 'li')
    await calls.redeem({ code: 'li', state: 'state_idp' })
  })
  await provider.refresh({ accessToken: 'at-li', refreshToken: 'rt-li' })
  await provider.refresh({ accessToken: 'at-li', refreshToken: 'rt-li' })
  const posts = server.calls.filter(({ what }) => what === 'POST /token')
  assert.equal(posts.length, 4)
  for (const { socket } of posts) assert.equal(server.calls.find(call => call.socket === socket)?.what, 'POST /token')
  assert.equal(new Set(posts.map(({ socket }) => socket)).size, 4)
})

test('a connection closed after the token response, announced or not, is replaced and the sign-in succeeds', async t => {
  for (const announced of [true, false]) {
    const server = await startTlsProvider(t, good, {
      intercept({ what, socket, text: sent }, response) {
        if (what === 'POST /token') {
          const user = /code=(\w+)/.exec(sent)?.[1]
          const tokens = { access_token: `at-${user}`, token_type: 'bearer', expires_in: 60 }
          response.writeHead(200, announced ? { connection: 'close' } : {}).end(JSON.stringify(tokens))
          return true
        }
        // The first user info request meets a connection that is just being closed.
        if (announced || server.calls[0]?.socket !== socket) return false
        socket.destroy()
        return true
      },
    })
    const provider = providerAt(t, server.origin)
    assert.equal(await signIn(provider, 'li'), 'li')
    assert.equal(server.connections(), 2)
    assert.equal(server.calls.filter(({ what }) => what === 'POST /token').length, 1)
  }
})

test('a user info server at another address must present its own valid certificate, or receives no request', async t => {
  const tokens = await startTlsProvider(t, good)
  const users = await startTlsProvider(t, good)
  assert.equal(await signIn(providerAt(t, tokens.origin, users.origin), 'li'), 'li')
  assert.deepEqual([tokens.handshakes(), users.handshakes()], [1, 1])
  const impostor = await startTlsProvider(t, ofAnother)
  await assert.rejects(signIn(providerAt(t, tokens.origin, impostor.origin), 'li'), { code: 'provider_unreachable' })
  assert.deepEqual(impostor.calls, [])
})

test('no connection stays open after a sign-in, whether it succeeded or failed', async t => {
  const server = await startTlsProvider(t, good, {
    intercept({ what, text: sent }, response) {
      if (what !== 'GET /me' || !sent.includes('bad')) return false
      response.writeHead(500).end()
      return true
    },
  })
  const provider = providerAt(t, server.origin)
  await signIn(provider, 'li')
  await assert.rejects(signIn(provider, 'bad'))
  for (const { socket } of server.calls) if (!socket.destroyed) await once(socket, 'close')
})

test('connections are closed after a timeout if the provider does not answer the TLS handshake', async t => {
  const silent = createTcpServer().listen(0, '127.0.0.1')
  t.after(() => silent.close())
  await once(silent, 'listening')
  const closed: Promise<unknown>[] = []
  silent.on('connection', socket => closed.push(once(socket.on('error', () => {}).resume(), 'close')))
  const calls = createBoundedFetch(100)
  t.after(() => calls.close())
  const { port } = silent.address() as AddressInfo
  const call = () => calls.fetch(`https://127.0.0.1:${port}/token`, { method: 'POST', body: 'code=1' })
  for (const { status } of await Promise.allSettled([call(), call(), call()])) assert.equal(status, 'rejected')
  assert.equal(closed.length, 3)
  await Promise.all(closed)
})
