// Users share connections to an application that speaks HTTP/2: none of them can end one for others, and no request is lost
// when the application ends one.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { constants, createServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import test, { type TestContext } from 'node:test'
import type { Client } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import { listenHttp2 } from '../kit/listen.ts'
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
  const MOST_RESETS = 100
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
        if (count < MOST_RESETS) return
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
  assert.ok(mostResets < MOST_RESETS / 1.5, `${mostResets} resets on one connection`)
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
