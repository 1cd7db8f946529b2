// Users share connections to an application that speaks HTTP/2: none of them can end one for others, and no request is lost
// when the application ends one.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { constants, createServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import { createServer as createTcpServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import test, { type TestContext } from 'node:test'
import type { Client } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import { ACK, END_HEADERS, END_STREAM, FRAME, frame, number } from '../kit/http2-frames.ts'
import { listen, listenHttp2 } from '../kit/listen.ts'
import { requireProgram } from '../kit/requirements.ts'
import { setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'
import { prepareNginx } from '../proxies/nginx.ts'

const { NGHTTP2_REFUSED_STREAM, NGHTTP2_NO_ERROR, NGHTTP2_ENHANCE_YOUR_CALM } = constants

type OnStream = (stream: ServerHttp2Stream, path: string, session: ServerHttp2Session) => void

/** An application by h2c, with what it has seen of its connections. */
async function startApplication(t: TestContext, onStream: OnStream, settings = {}) {
  const server = createServer({ settings })
  server.on('session', session =>
    session.on('stream', (stream, headers) => {
      stream.on('error', () => {})
      onStream(stream, String(headers[':path']), session)
    }),
  )
  return listenHttp2(t, server)
}

/** A request whose client can leave. */
function abandon(user: Client, path: string) {
  const abort = new AbortController()
  const left = user.get(path, { signal: abort.signal }).catch(() => {})
  return {
    async leave() {
      abort.abort()
      await left
    },
  }
}

const PIECES = 40

test('1,600 requests that one user abandons do not affect the responses of five others', {
  timeout: 120_000,
}, async t => {
  const MAX_RESETS = 100
  let asked = 0
  let mostResets = 0
  let broken = 0
  const resets = new WeakMap<ServerHttp2Session, number>()
  const slow = new Set<ServerHttp2Stream>()
  const application = await startApplication(t, (stream, path, session) => {
    if (path.startsWith('/abandoned')) {
      asked++
      stream.on('close', () => {
        if (session.destroyed || session.closed || stream.rstCode === NGHTTP2_NO_ERROR) return
        const count = (resets.get(session) ?? 0) + 1
        resets.set(session, count)
        mostResets = Math.max(mostResets, count)
        // As servers do that are protected against rapid resets.
        if (count < MAX_RESETS) return
        broken++
        session.destroy(undefined, NGHTTP2_ENHANCE_YOUR_CALM)
      })
      return
    }
    stream.respond({ ':status': 200 })
    slow.add(stream)
  })
  const scene = await setUp(t, { env: { UPSTREAM: application.url } })
  const attacker = await scene.user('attacker')
  const others = await Promise.all(
    Array.from({ length: 5 }, (_, n) => scene.user(`user${n}`, { sub: `sub-${n}`, username: `user${n}` })),
  )

  // Each of the others reads answers that take as long as the attack.
  const answers = others.map(other => other.get('/slow'))
  await until(() => slow.size === others.length)
  const BATCH = 40
  for (let sent = 0; sent < 1600; sent += BATCH) {
    const before = asked
    const batch = Array.from({ length: BATCH }, (_, n) => abandon(attacker, `/abandoned/${sent + n}`))
    await until(() => asked === before + BATCH)
    await Promise.all(batch.map(each => each.leave()))
    for (const stream of slow) stream.write(`piece ${sent / BATCH};`)
  }
  const whole = Array.from({ length: PIECES }, (_, n) => `piece ${n};`).join('')
  for (const stream of slow) stream.end()
  for (const answer of await Promise.all(answers)) assert.deepEqual([answer.status, answer.text], [200, whole])
  assert.equal(broken, 0)
  assert.ok(mostResets < MAX_RESETS / 1.5, `${mostResets} resets on one connection`)
  // What was left behind does not stay: each connection ends with the exchanges that others have on it.
  await until(() => application.sessions.size <= 2)
})

test('a user who abandons many requests gets connections that no other user shares', async t => {
  const seen = new Map<string, Set<ServerHttp2Session>>()
  let asked = 0
  const application = await startApplication(t, (stream, path, session) => {
    const user = path.split('/')[1] ?? ''
    seen.set(user, (seen.get(user) ?? new Set()).add(session))
    if (path.includes('abandoned')) return void asked++
    stream.respond({ ':status': 200 })
    stream.end('whole')
  })
  const scene = await setUp(t, { env: { UPSTREAM: application.url } })
  const attacker = await scene.user('attacker')
  const other = await scene.user('other', { sub: 'sub-other' })
  for (let n = 0; n < 10; n++) {
    const before = asked
    const left = abandon(attacker, `/attacker/abandoned/${n}`)
    await until(() => asked === before + 1)
    await left.leave()
  }
  seen.clear()
  // The last one that was abandoned may be on its way.
  await until(async () => {
    seen.clear()
    await Promise.all([attacker.get('/attacker/x'), other.get('/other/x')])
    return seen.get('attacker')?.isDisjointFrom(seen.get('other') ?? new Set()) === true
  })
  assert.equal((await other.get('/other/x')).text, 'whole')
})

test('a request left unprocessed by GOAWAY or REFUSED_STREAM is sent again with its body, and a processed one is not', async t => {
  const hits = new Map<string, number>()
  const bodies: string[] = []
  const application = await startApplication(t, (stream, path, session) => {
    const nth = (hits.get(path) ?? 0) + 1
    hits.set(path, nth)
    const isFirst = nth === 1
    if (path === '/refused' && isFirst) return void stream.close(NGHTTP2_REFUSED_STREAM)
    if (path === '/always-refused') return void stream.close(NGHTTP2_REFUSED_STREAM)
    if (path === '/beyond' && isFirst) return void session.goaway(NGHTTP2_NO_ERROR, (stream.id ?? 0) - 2)
    if (path === '/beyond-error' && isFirst) return void session.goaway(NGHTTP2_ENHANCE_YOUR_CALM, (stream.id ?? 0) - 2)
    if (path === '/processed') return void session.goaway(NGHTTP2_ENHANCE_YOUR_CALM, stream.id ?? 0)
    if (path === '/begun') {
      stream.respond({ ':status': 200, 'content-length': '10' })
      stream.write('begun')
      return void setImmediate(() => stream.close(NGHTTP2_REFUSED_STREAM))
    }
    void text(stream).then(
      body => {
        bodies.push(body)
        stream.respond({ ':status': 200 })
        stream.end(`${path} ${body.length}`)
      },
      () => {},
    )
  })
  const scene = await setUp(t, { env: { UPSTREAM: application.url } })
  const user = await scene.user()
  const body = 'x'.repeat(100_000)
  for (const path of ['/refused', '/beyond', '/beyond-error']) {
    assert.equal((await user.post(path, body)).text, `${path} ${body.length}`)
    assert.equal(hits.get(path), 2)
    assert.equal(bodies.at(-1), body)
  }
  assert.equal((await user.get('/always-refused')).status, 502)
  assert.equal(hits.get('/always-refused'), 4)
  assert.equal((await user.post('/processed', body)).status, 502)
  assert.equal(hits.get('/processed'), 1)
  await assert.rejects(user.get('/begun'))
  assert.equal(hits.get('/begun'), 1)
})

test('a request is not sent again if more of its body was sent than the gateway keeps', async t => {
  let hits = 0
  const application = await startApplication(
    t,
    stream => {
      hits++
      let size = 0
      stream.on('data', (chunk: Buffer) => {
        size += chunk.length
        if (size > 600_000) stream.close(NGHTTP2_REFUSED_STREAM)
      })
    },
    { initialWindowSize: 1_000_000 },
  )
  const scene = await setUp(t, { env: { UPSTREAM: application.url } })
  assert.equal((await (await scene.user()).post('/', 'x'.repeat(900_000))).status, 502)
  assert.equal(hits, 1)
})

const UNREAD = 'u'
/** The window of a connection that announces no larger one. */
const WINDOW = 65_535

/** A stream of an application that announces space for further bytes when its code reads a body, as Go and Java do. */
interface Upload {
  readonly connection: number
  readonly start: string
  readonly received: number
  /** Reads what it has not read, and answers. */
  read(): void
}

/** Reads no body that begins with `UNREAD`. */
async function startUnreading(t: TestContext) {
  const uploads: Upload[] = []
  /** The connection of each request. */
  const heads: number[] = []
  let connections = 0
  const server = createTcpServer(socket => serve(socket, ++connections))
  const { url } = await listen(t, server)
  return { url: url.replace('http:', 'h2c:'), server, uploads, heads, connections: () => connections }

  function serve(socket: Socket, connection: number): void {
    const open = new Map<
      number,
      Upload & { received: number; start: string; unread: number; hasEnded: boolean; isRead: boolean }
    >()
    let rest = Buffer.alloc(0)
    let isPrefaced = false
    socket.write(frame(FRAME.settings, 0, 0))
    socket.on('data', (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk])
      if (!isPrefaced && rest.length >= PREFACE_BYTES) {
        isPrefaced = true
        rest = rest.subarray(PREFACE_BYTES)
      }
      while (isPrefaced && rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
        const end = 9 + rest.readUIntBE(0, 3)
        onFrame(rest[3] ?? 0, rest[4] ?? 0, rest.readUInt32BE(5), rest.subarray(9, end))
        rest = rest.subarray(end)
      }
    })

    function onFrame(type: number, flags: number, id: number, payload: Buffer): void {
      if ((type === FRAME.settings || type === FRAME.ping) && !(flags & ACK)) {
        const echo = type === FRAME.ping ? payload : undefined
        socket.write(frame(type, ACK, 0, echo))
      }
      if (type === FRAME.headers) {
        heads.push(connection)
        if (flags & END_STREAM) return void answer(id)
        const upload = {
          connection,
          start: '',
          received: 0,
          unread: 0,
          hasEnded: false,
          isRead: false,
          read: () => take(id),
        }
        open.set(id, upload)
        uploads.push(upload)
      }
      if (type === FRAME.data) {
        const upload = open.get(id)
        if (!upload) return
        upload.start ||= payload.toString('latin1', 0, 1)
        upload.received += payload.length
        upload.unread += payload.length
        upload.hasEnded ||= (flags & END_STREAM) !== 0
        if (upload.isRead || upload.start !== UNREAD) take(id)
      }
      // As the specification demands, what is left of a stream that was reset leaves the window of the connection.
      if (type === FRAME.reset) {
        const { unread = 0 } = open.get(id) ?? {}
        if (unread > 0) socket.write(frame(FRAME.window, 0, 0, number(unread)))
        open.delete(id)
      }
    }

    function take(id: number): void {
      const upload = open.get(id)
      if (!upload) return
      upload.isRead = true
      const { unread, hasEnded } = upload
      upload.unread = 0
      if (unread > 0) socket.write(frame(FRAME.window, 0, 0, number(unread)))
      if (hasEnded) {
        open.delete(id)
        answer(id)
      } else if (unread > 0) socket.write(frame(FRAME.window, 0, id, number(unread)))
    }

    function answer(id: number): void {
      socket.write(frame(FRAME.headers, END_HEADERS, id, Buffer.from([STATUS_200])))
      socket.write(frame(FRAME.data, END_STREAM, id, Buffer.from('read')))
    }
  }
}

const PREFACE_BYTES = 24
/** `:status: 200` in HPACK. */
const STATUS_200 = 0x88

/** Sends a body that the application does not read, until it fills the window of a connection. */
async function fillWindow(application: Awaited<ReturnType<typeof startUnreading>>, user: Client) {
  const answer = user.post('/unread', UNREAD.repeat(300_000))
  answer.catch(() => {})
  const fills = ({ received }: Upload) => received === WINDOW
  const before = application.uploads.length
  await until(() => application.uploads.slice(before).some(fills))
  return { answer, upload: application.uploads.slice(before).find(fills) }
}

async function setUpUnreading(t: TestContext) {
  const application = await startUnreading(t)
  const scene = await setUp(t, { env: { UPSTREAM: application.url } })
  const [one, other] = [await scene.user('one'), await scene.user('other', { sub: 'sub-other' })]
  assert.equal((await other.get('/')).text, 'read')
  return { application, one, other }
}

test('a body that the application does not read delays no body of another user, however many there are', async t => {
  const { application, one, other } = await setUpUnreading(t)
  const unread: Awaited<ReturnType<typeof fillWindow>>[] = []
  for (let n = 1; n <= 4; n++) {
    unread.push(await fillWindow(application, one))
    const answers = await Promise.all([1, 2, 3].map(() => other.post('/', 'r'.repeat(n * 1000))))
    for (const { status, text } of answers) assert.deepEqual([status, text], [200, 'read'])
  }
  // Requests without bodies need no window.
  application.heads.length = 0
  assert.equal((await other.get('/')).text, 'read')
  assert.deepEqual(application.heads, [1])
  const most = application.connections()
  assert.ok(most <= 6, `${most} connections`)

  // What was left behind is available again, and further bodies need no further connection.
  for (const { upload, answer } of unread) {
    upload?.read()
    assert.equal((await answer).text, 'read')
  }
  application.heads.length = 0
  assert.equal((await other.post('/', 'r')).text, 'read')
  assert.deepEqual(application.heads, [1])
  assert.equal(application.connections(), most)
})

test('a user whose unread bodies fill a connection gets connections that no other user shares', async t => {
  const { application, one, other } = await setUpUnreading(t)
  const connectionOf = async (user: Client, body: string) => {
    assert.equal((await user.post('/', body)).text, 'read')
    return application.uploads.findLast(({ start }) => start === body)?.connection
  }
  const unread = await fillWindow(application, one)
  const shared = await connectionOf(other, 'o')
  await until(async () => (await connectionOf(one, 'n')) !== shared)
  assert.equal(await connectionOf(other, 'o'), shared)
  unread.upload?.read()
  assert.equal((await unread.answer).text, 'read')
})

test('a body waits for its turn on a full connection if the application accepts no other', async t => {
  const { application, one, other } = await setUpUnreading(t)
  const unread = await fillWindow(application, one)
  application.server.close()
  const answer = other.post('/', 'r'.repeat(100_000))
  await until(() => application.uploads.length === 2)
  assert.equal(application.uploads[1]?.received, 0)
  unread.upload?.read()
  assert.equal((await answer).text, 'read')
  assert.equal((await unread.answer).text, 'read')
})

test('an application’s limit of concurrent streams is respected, and all requests are answered', async t => {
  let open = 0
  let most = 0
  const application = await startApplication(
    t,
    (stream, _path, session) => {
      open++
      most = Math.max(most, open / application.sessions.size)
      stream.on('close', () => open--)
      stream.respond({ ':status': 200 })
      setImmediate(() => !session.destroyed && stream.end('served'))
    },
    { maxConcurrentStreams: 3 },
  )
  const scene = await setUp(t, { env: { UPSTREAM: application.url } })
  const user = await scene.user()
  const answers = await Promise.all(Array.from({ length: 30 }, () => user.get('/')))
  for (const answer of answers) assert.equal(answer.text, 'served')
  assert.ok(most <= 3)
})

test('none of 2,000 requests is lost when nginx closes each connection after 50', {
  timeout: 120_000,
}, async t => {
  const program = requireProgram('nginx')
  const folder = tempFolder(t)
  const port = await freePort()
  const file = join(folder, 'site.conf')
  writeFileSync(
    file,
    `server { listen 127.0.0.1:${port} http2; keepalive_requests 50; location / { return 200 page; } }`,
  )
  const nginx = spawn(program, prepareNginx(folder, file), { stdio: 'ignore' })
  t.after(() => void nginx.kill('SIGKILL'))
  const scene = await setUp(t, { env: { UPSTREAM: `h2c://127.0.0.1:${port}` } })
  const user: Client = await scene.user()
  await until(async () => (await user.get('/page')).status === 200)
  const failures: number[] = []
  const some = async (count: number, n: number) => {
    for (let i = 0; i < count; i++) {
      const answer = (n + i) % 2 === 0 ? await user.get('/page') : await user.post('/page', 'x'.repeat(3000))
      if (answer.status !== 200 || answer.text !== 'page') failures.push(answer.status)
    }
  }
  await Promise.all(Array.from({ length: 50 }, (_, n) => some(40, n)))
  assert.deepEqual(failures, [])
})
