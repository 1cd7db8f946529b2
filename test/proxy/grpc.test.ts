// gRPC through the gateway: a real client and a real server.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import test, { type TestContext } from 'node:test'
import type {
  ClientDuplexStream,
  ClientReadableStream,
  ClientWritableStream,
  Metadata,
  ServiceError,
} from '@grpc/grpc-js'
import { cookieOf } from '../kit/client.ts'
import { createGrpcClient, metadataOf, startGrpcServer, status } from '../kit/grpc.ts'
import { startOidcServer } from '../kit/oidc-server.ts'
import { scrape } from '../kit/scrape.ts'
import { openGateway, setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'
import { filesOf, makeAuthority, makeCertificate } from '../proxies/certificates.ts'

interface Unary {
  readonly message?: Buffer | undefined
  readonly error?: ServiceError | undefined
  readonly metadata: Metadata
  readonly trailers: Metadata
}

interface UnaryCall {
  on(event: string, listener: (...args: never[]) => void): this
  cancel(): void
}

function makeFiles(t: TestContext) {
  const folder = tempFolder(t)
  const ca = makeAuthority(folder)
  const own = makeCertificate(folder, 'own', ca)
  return { folder, ca, env: { TLS_CERT_FILE: own.certFile, TLS_KEY_FILE: own.keyFile } }
}

/** Calls of one client, which ends with the test. */
function openCalls(t: TestContext, url: string, { certFile }: { certFile: string }) {
  const client = createGrpcClient(url, readFileSync(certFile))
  t.after(() => client.close())

  function call(name: string, message: string, metadata: Metadata, options: object = {}) {
    const { promise, resolve } = Promise.withResolvers<Unary>()
    let head: Metadata | undefined
    let trailers: Metadata | undefined
    let result: Pick<Unary, 'message' | 'error'> | undefined
    const done = () => {
      if (result && trailers) resolve({ ...result, metadata: head ?? trailers, trailers })
    }
    const start = client[name] as unknown as (...args: unknown[]) => UnaryCall
    const call = start.call(
      client,
      Buffer.from(message),
      metadata,
      options,
      (error: ServiceError | undefined, message?: Buffer) => {
        result = { error: error ?? undefined, message }
        done()
      },
    )
    call.on('metadata', (received: Metadata) => {
      head = received
    })
    call.on('status', ({ metadata }: { metadata: Metadata }) => {
      trailers = metadata
      done()
    })
    return Object.assign(promise, { cancel: () => call.cancel() })
  }

  function open<Stream>(name: string, ...args: unknown[]): Stream {
    return (client[name] as unknown as (...args: unknown[]) => Stream).call(client, ...args)
  }
  return { call, open }
}

/** A way to a server, on which bytes can get lost. */
async function openPath(t: TestContext, port: number) {
  const sockets = new Set<Socket>()
  const server = createServer(near => {
    const far = connect(port, '127.0.0.1')
    near.pipe(far).pipe(near)
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket)
      socket
        .on('error', () => {})
        .once('close', () => {
          sockets.delete(socket)
          other.destroy()
        })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const cut = () => {
    for (const socket of sockets) socket.destroy()
  }
  t.after(() => {
    cut()
    server.close()
  })
  return {
    port: (server.address() as AddressInfo).port,
    cut,
    /** Nothing passes any more, and nobody is told. */
    freeze() {
      for (const socket of sockets) socket.unpipe().pause()
    },
  }
}

async function prepare(t: TestContext) {
  const { ca, env } = makeFiles(t)
  const server = await startGrpcServer()
  t.after(() => server.close())
  const path = await openPath(t, server.port)
  const rules = [
    { path: '/menshen.Test/Fail', roles: ['admin' as const] },
    { path: '/', roles: ['common' as const, 'admin' as const] },
  ]
  const scene = await setUp(t, {
    env: {
      ...env,
      UPSTREAM: `h2c://127.0.0.1:${path.port}`,
      CLIENT_TIMEOUT_MS: '600',
      UPSTREAM_HEADERS_TIMEOUT_MS: '700',
      UPSTREAM_IDLE_TIMEOUT_MS: '700',
    },
    config: { rules, roles: [{ username: ['boss'], role: 'admin' }] },
  })
  return { scene, server, path, ...openCalls(t, scene.url, ca) }
}

test('all kinds of gRPC calls are forwarded with metadata both ways, and refusals have a gRPC status', async t => {
  const { scene, server, path, call, open } = await prepare(t)
  const user = await scene.user()
  const cookie = metadataOf({ cookie: cookieOf(user) })

  await t.test('a unary call is forwarded with its metadata and trailers', async () => {
    const metadata = metadataOf({ cookie: cookieOf(user), 'x-own': 'mine', 'x-own-bin': Buffer.from([1, 0, 254]) })
    const { message, metadata: received, trailers } = await call('echo', 'hello', metadata)
    assert.equal(String(message), 'hello')
    assert.deepEqual(received.get('answered'), ['yes'])
    assert.deepEqual(received.get('raw-bin'), [Buffer.from([0, 255, 7])])
    assert.deepEqual(trailers.get('at-the-end'), ['of it'])
    const sent = server.last()
    assert.deepEqual(sent.get('x-own'), ['mine'])
    assert.deepEqual(sent.get('x-own-bin'), [Buffer.from([1, 0, 254])])
    assert.deepEqual(sent.get('x-forwarded-user'), ['zhangsan'])
    assert.deepEqual(sent.get('cookie'), [])
  })

  await t.test('an error of the application reaches the client', async () => {
    const boss = metadataOf({ cookie: cookieOf(await scene.user('boss')) })
    const { error } = await call('fail', '', boss)
    assert.equal(error?.code, status.FAILED_PRECONDITION)
    assert.equal(error?.details, '门 is shut')
  })

  await t.test('a visitor gets status 16, and a user refused by the rules gets 7', async () => {
    const visitor = await call('echo', 'hello', metadataOf({}))
    assert.equal(visitor.error?.code, status.UNAUTHENTICATED)
    assert.notEqual(visitor.error?.details, '')
    const refused = await call('fail', '', cookie)
    assert.equal(refused.error?.code, status.PERMISSION_DENIED)
    assert.notEqual(refused.error?.details, '')
  })

  await t.test('a client stream is forwarded', async () => {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
    const stream = open<ClientWritableStream<Buffer>>('collect', cookie, (error: Error | null, message: Buffer) =>
      error ? reject(error) : resolve(message),
    )
    for (const word of ['one', 'two', 'three']) stream.write(Buffer.from(word))
    stream.end()
    assert.equal(String(await promise), 'onetwothree')
  })

  await t.test('a server stream is forwarded', async () => {
    const stream = open<ClientReadableStream<Buffer>>('count', Buffer.from('500'), cookie)
    const received: number[] = []
    for await (const message of stream) received.push(Number(message))
    assert.deepEqual(
      received,
      Array.from({ length: 500 }, (_, n) => n + 1),
    )
  })

  await t.test('bidirectional streams are forwarded, and outlast every deadline while silent', async () => {
    const stream = open<ClientDuplexStream<Buffer, Buffer>>('chat', cookie)
    const silent = open<ClientDuplexStream<Buffer, Buffer>>('chat', cookie)
    for (const word of ['one', 'two']) {
      stream.write(Buffer.from(word))
      assert.equal(String((await once(stream, 'data'))[0]), word)
    }
    await new Promise(resolve => setTimeout(resolve, 1500))
    for (const each of [stream, silent]) {
      each.write(Buffer.from('still here'))
      assert.equal(String((await once(each, 'data'))[0]), 'still here')
      each.end()
      await once(each.resume(), 'end')
    }
  })

  await t.test('a client’s deadline and a cancelled call reach the application', async () => {
    const late = await call('wait', '', cookie, { deadline: Date.now() + 300 })
    assert.equal(late.error?.code, status.DEADLINE_EXCEEDED)
    await until(() => server.open === 0)
    const cancelled = call('wait', '', cookie)
    await until(() => server.open === 1)
    cancelled.cancel()
    assert.equal((await cancelled).error?.code, status.CANCELLED)
    await until(() => server.open === 0)
  })

  await t.test('a message of 3 MB is forwarded both ways', async () => {
    const large = 'x'.repeat(3_000_000)
    assert.ok(String((await call('echo', large, cookie)).message) === large)
  })

  await t.test('a sign-out ends the user’s streams with status 16', async () => {
    const stream = open<ClientDuplexStream<Buffer, Buffer>>('chat', cookie)
    stream.write(Buffer.from('hello'))
    await once(stream, 'data')
    const ended = once(stream, 'error')
    await user.post('/logout', {}, { headers: { origin: scene.baseUrl } })
    const [error] = (await ended) as [ServiceError]
    assert.equal(error.code, status.UNAUTHENTICATED)
    await until(() => server.open === 0)
  })

  const again = metadataOf({ cookie: cookieOf(await scene.user()) })

  await t.test('an unanswered PING ends a stream with status 14, and the next call opens a new connection', async t => {
    // From here on: the next connection to the application begins with them.
    t.mock.timers.enable({ apis: ['setInterval', 'setTimeout'] })
    path.cut()
    while ((await call('echo', 'hello', again)).error);
    const stream = open<ClientDuplexStream<Buffer, Buffer>>('chat', again)
    stream.write(Buffer.from('hello'))
    await once(stream, 'data')
    path.freeze()
    const ended = once(stream, 'error')
    t.mock.timers.tick(20_000)
    t.mock.timers.tick(10_000)
    assert.equal(((await ended) as [ServiceError])[0].code, status.UNAVAILABLE)
    t.mock.timers.reset()
    assert.equal(String((await call('echo', 'again', again)).message), 'again')
  })

  await t.test('new calls and open streams get status 14 if the application is gone', async () => {
    const gone = open<ClientDuplexStream<Buffer, Buffer>>('chat', again)
    gone.write(Buffer.from('hello'))
    await once(gone, 'data')
    const lost = once(gone, 'error')
    server.close()
    assert.equal(((await lost) as [ServiceError])[0].code, status.UNAVAILABLE)
    assert.equal((await call('echo', 'hello', again)).error?.code, status.UNAVAILABLE)
  })
})

test('gRPC with bearer tokens, to an https application that negotiates HTTP/2', async t => {
  const { folder, ca, env } = makeFiles(t)
  const provider = await startOidcServer(t)
  const server = await startGrpcServer(filesOf(makeCertificate(folder, 'application', ca)))
  t.after(() => server.close())
  const gateway = await openGateway(
    t,
    {
      ...provider.settings,
      ...env,
      UPSTREAM: `https://127.0.0.1:${server.port}`,
      UPSTREAM_CA_FILE: ca.certFile,
    },
    {
      config: {
        roles: [{ role: 'robot', groups: ['robots'] }],
        rules: [{ path: '/menshen.Test', roles: ['robot'], bearer: true }],
      },
    },
  )
  provider.now = gateway.now
  const { call, open } = openCalls(t, gateway.url, ca)
  const bring = (token: string) => metadataOf({ authorization: `Bearer ${token}` })
  const robot = bring(await provider.sign({ sub: 'robot-1', groups: ['robots'] }, { typ: 'at+jwt' }))

  await t.test('a valid token is accepted, and the application receives the user but not the token', async () => {
    const { message, trailers } = await call('echo', 'hello', robot)
    assert.equal(String(message), 'hello')
    assert.deepEqual(trailers.get('at-the-end'), ['of it'])
    assert.deepEqual(server.last().get('x-forwarded-user'), ['robot-1'])
    assert.deepEqual(server.last().get('authorization'), [])
  })

  await t.test('an expired token gets status 16, and one refused by the rules gets 7', async () => {
    const expired = bring(await provider.sign({ sub: 'robot-1', groups: ['robots'], exp: 1 }, { typ: 'at+jwt' }))
    assert.equal((await call('echo', 'hello', expired)).error?.code, status.UNAUTHENTICATED)
    const other = bring(await provider.sign({ sub: 'other', groups: ['others'] }, { typ: 'at+jwt' }))
    assert.equal((await call('echo', 'hello', other)).error?.code, status.PERMISSION_DENIED)
  })

  await t.test('a token that cannot be checked gets status 14', async () => {
    provider.isAway = true
    const { error } = await call('echo', 'hello', bring('opaque'))
    assert.equal(error?.code, status.UNAVAILABLE)
    assert.notEqual(error?.details, '')
    provider.isAway = false
  })

  await t.test('a shutdown ends open streams with status 14, answered or not', async () => {
    const answered = open<ClientDuplexStream<Buffer, Buffer>>('chat', robot)
    answered.write(Buffer.from('hello'))
    await once(answered, 'data')
    const { promise, resolve } = Promise.withResolvers<ServiceError | null>()
    open<ClientWritableStream<Buffer>>('collect', robot, resolve).write(Buffer.from('hello'))
    await until(async () => (await scrape(gateway.url)).value('menshen_open_streams') === 2)
    const ended = once(answered, 'error')
    const closed = gateway.end(10_000)
    for (const error of [((await ended) as [ServiceError])[0], await promise])
      assert.deepEqual([error?.code, error?.details], [status.UNAVAILABLE, 'the server shuts down'])
    await closed
  })
})
