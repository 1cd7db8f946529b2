// gRPC through the gateway: a real client and a real server.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import test, { type TestContext } from 'node:test'
import type {
  ClientDuplexStream,
  ClientReadableStream,
  ClientWritableStream,
  Metadata,
  ServiceError,
} from '@grpc/grpc-js'
import { makeAuthority, makeCertificate } from '../gateway/certificates.ts'
import { cookieOf } from '../kit/client.ts'
import { createGrpcClient, metadataOf, startGrpcServer, status } from '../kit/grpc.ts'
import { setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'

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

async function prepare(t: TestContext, env: Record<string, string> = {}) {
  const folder = tempFolder(t)
  const ca = makeAuthority(folder)
  const own = makeCertificate(folder, 'own', ca)
  const server = await startGrpcServer()
  t.after(() => server.close())
  const rules = [
    { path: '/menshen.Test/Fail', roles: ['admin' as const] },
    { path: '/', roles: ['common' as const, 'admin' as const] },
  ]
  const scene = await setUp(t, {
    env: {
      TLS_CERT_FILE: own.certFile,
      TLS_KEY_FILE: own.keyFile,
      UPSTREAM: `h2c://127.0.0.1:${server.port}`,
      CLIENT_TIMEOUT_MS: '600',
      UPSTREAM_HEADERS_TIMEOUT_MS: '700',
      UPSTREAM_IDLE_TIMEOUT_MS: '700',
      ...env,
    },
    config: { rules, roles: [{ username: ['boss'], role: 'admin' }] },
  })
  const client = createGrpcClient(scene.url, readFileSync(ca.certFile))
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
  return { scene, server, client, call, open }
}

test('gRPC calls of every kind pass, with metadata both ways, and a refusal has a status of gRPC', async t => {
  const { scene, server, call, open } = await prepare(t)
  const user = await scene.user()
  const cookie = metadataOf({ cookie: cookieOf(user) })

  await t.test('unary', async () => {
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

  await t.test('an error of the application', async () => {
    const boss = metadataOf({ cookie: cookieOf(await scene.user('boss')) })
    const { error } = await call('fail', '', boss)
    assert.equal(error?.code, status.FAILED_PRECONDITION)
    assert.equal(error?.details, '门 is shut')
  })

  await t.test('a visitor: 16, and a user whom the rules refuse: 7', async () => {
    const visitor = await call('echo', 'hello', metadataOf({}))
    assert.equal(visitor.error?.code, status.UNAUTHENTICATED)
    assert.notEqual(visitor.error?.details, '')
    const refused = await call('fail', '', cookie)
    assert.equal(refused.error?.code, status.PERMISSION_DENIED)
    assert.notEqual(refused.error?.details, '')
  })

  await t.test('a stream of the client', async () => {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
    const stream = open<ClientWritableStream<Buffer>>('collect', cookie, (error: Error | null, message: Buffer) =>
      error ? reject(error) : resolve(message),
    )
    for (const word of ['one', 'two', 'three']) stream.write(Buffer.from(word))
    stream.end()
    assert.equal(String(await promise), 'onetwothree')
  })

  await t.test('a stream of the server', async () => {
    const stream = open<ClientReadableStream<Buffer>>('count', Buffer.from('500'), cookie)
    const received: number[] = []
    for await (const message of stream) received.push(Number(message))
    assert.deepEqual(
      received,
      Array.from({ length: 500 }, (_, n) => n + 1),
    )
  })

  await t.test('both at once; silent for longer than every deadline', async () => {
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

  await t.test('a deadline of the client, and a call that is cancelled, reach the application', async () => {
    const late = await call('wait', '', cookie, { deadline: Date.now() + 300 })
    assert.equal(late.error?.code, status.DEADLINE_EXCEEDED)
    await until(() => server.open === 0)
    const cancelled = call('wait', '', cookie)
    await until(() => server.open === 1)
    cancelled.cancel()
    assert.equal((await cancelled).error?.code, status.CANCELLED)
    await until(() => server.open === 0)
  })

  await t.test('large messages', async () => {
    const large = 'x'.repeat(3_000_000)
    assert.ok(String((await call('echo', large, cookie)).message) === large)
  })

  await t.test('the streams of a user end with a sign-out, with 16', async () => {
    const stream = open<ClientDuplexStream<Buffer, Buffer>>('chat', cookie)
    stream.write(Buffer.from('hello'))
    await once(stream, 'data')
    const ended = once(stream, 'error')
    await user.post('/logout', {}, { headers: { origin: scene.baseUrl } })
    const [error] = (await ended) as [ServiceError]
    assert.equal(error.code, status.UNAUTHENTICATED)
    await until(() => server.open === 0)
  })

  await t.test('an application that has gone: 14, for a stream that is open as well', async () => {
    const again = metadataOf({ cookie: cookieOf(await scene.user()) })
    const gone = open<ClientDuplexStream<Buffer, Buffer>>('chat', again)
    gone.write(Buffer.from('hello'))
    await once(gone, 'data')
    const lost = once(gone, 'error')
    server.close()
    assert.equal(((await lost) as [ServiceError])[0].code, status.UNAVAILABLE)
    assert.equal((await call('echo', 'hello', again)).error?.code, status.UNAVAILABLE)
  })
})
