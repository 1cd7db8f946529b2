// What /_menshen/metrics counts: every request once, by a fixed set of labels.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { suite, test } from 'node:test'
import { EVENTS } from '../../src/events.ts'
import { createMetricsReader, gatherAlone } from '../../src/observe/exposition.ts'
import { createMetrics, METRICS } from '../../src/observe/metrics.ts'
import { recordKey } from '../../src/session/ticket.ts'
import { cookieOf, createClient, signIn } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import { requireProgram } from '../kit/requirements.ts'
import { readMetrics, scrape } from '../kit/scrape.ts'
import { type Scene, setUp, setUpOidc } from '../kit/set-up.ts'
import { until } from '../kit/until.ts'
import { dial, setUpSockets } from '../kit/websocket.ts'
import { raw, request } from '../proxy/raw.ts'

/** What an act adds to the series. */
async function added(scene: Pick<Scene, 'url'>, series: string, act: () => Promise<unknown>): Promise<number> {
  const before = await scrape(scene.url)
  await act()
  const read = (scraped: typeof before) => (series.includes('{') ? scraped.value(series) : scraped.sum(series))
  return read(await scrape(scene.url)) - read(before)
}

const outcome = (name: string) => `menshen_requests_total{outcome="${name}"}`

/** The names and labels that DESIGN.md promises, with a value of each. */
const PROMISED = [
  'menshen_requests_total{outcome="admitted"}',
  'menshen_requests_total{outcome="visitor"}',
  'menshen_requests_total{outcome="refused"}',
  'menshen_requests_total{outcome="own"}',
  'menshen_requests_total{outcome="error"}',
  'menshen_request_seconds_count',
  'menshen_request_seconds_sum',
  'menshen_request_seconds_bucket{le="0.0001"}',
  'menshen_request_seconds_bucket{le="10"}',
  'menshen_request_seconds_bucket{le="+Inf"}',
  'menshen_sign_ins_total{result="ok"}',
  'menshen_sign_ins_total{result="token_error"}',
  'menshen_sign_ins_total{result="unknown_error"}',
  'menshen_sign_outs_total{by="user"}',
  'menshen_sign_outs_total{by="provider"}',
  'menshen_refreshes_total{result="ok"}',
  'menshen_refreshes_total{result="provider_refused"}',
  'menshen_provider_seconds_count{call="token",result="ok"}',
  'menshen_provider_seconds_count{call="refresh",result="provider_unreachable"}',
  'menshen_store_seconds_count{verb="read",result="ok"}',
  'menshen_store_seconds_count{verb="create",result="store_unavailable"}',
  'menshen_upstream_seconds_count{status="2xx"}',
  'menshen_upstream_seconds_count{status="error"}',
  'menshen_upstream_queue',
  'menshen_open_streams',
  'menshen_session_cache_total{result="hit"}',
  'menshen_session_cache_total{result="miss"}',
  'menshen_rate_limited_total',
  'menshen_events_total{event="upstream_failed",level="error"}',
  'menshen_events_total{event="refused",level="warn"}',
  'menshen_workers',
  'process_resident_memory_bytes',
  'process_start_time_seconds',
]

test('every series exists from the start, and promtool has no complaints', async t => {
  const scene = await setUp(t)
  const scraped = await scrape(scene.url)
  for (const series of PROMISED) assert.ok(scraped.samples.has(series), series)
  assert.equal(scraped.value('menshen_sign_ins_total{result="ok"}'), 0)
  assert.equal(scraped.value('menshen_workers'), 1)
  const { stdout, stderr, status } = spawnSync(requireProgram('promtool'), ['check', 'metrics'], {
    input: scraped.text,
  })
  assert.deepEqual([String(stdout), String(stderr), status], ['', '', 0])
})

test('each request is counted once, by its outcome', async t => {
  const scene = await setUp(t, {
    config: { rules: [{ path: '/secret', roles: ['developer'] }] },
    answer(request, response) {
      if (request.url === '/broken') request.socket.destroy()
      else if (request.url === '/500') response.writeHead(500).end()
      else response.end()
    },
  })
  const user = await scene.user()
  const cases: [name: string, counted: string, act: () => Promise<unknown>][] = [
    ['a page of the application', 'admitted', () => user.get('/')],
    ['its 500', 'admitted', () => user.get('/500')],
    ['our 502', 'error', () => user.get('/broken')],
    ['a refusal', 'refused', () => user.get('/secret')],
    ['a visitor', 'visitor', () => scene.visitor().get('/')],
    ['an unreadable path', 'refused', () => scene.visitor().get('/%00')],
    ['what the user is called', 'own', () => user.get('/_menshen/me')],
    ['a page of ours', 'own', () => scene.visitor().get('/login')],
    ['a check', 'admitted', () => user.get('/_menshen/check')],
    ['a page that we do not have', 'own', () => scene.visitor().get('/_menshen/nothing')],
    ['a socket without a session', 'visitor', () => upgrade(scene, '/')],
    ['a socket of an unreadable path', 'refused', () => upgrade(scene, '/%00')],
  ]
  for (const [name, counted, act] of cases) {
    const before = await scrape(scene.url)
    await act()
    const after = await scrape(scene.url)
    // The scrape before was one too.
    const expected = counted === 'own' ? { own: 2 } : { own: 1, [counted]: 1 }
    const seen = Object.entries(
      Object.fromEntries(
        METRICS.menshen_requests_total.labels.outcome.map(one => [
          one,
          after.value(outcome(one)) - before.value(outcome(one)),
        ]),
      ),
    ).filter(([, n]) => n !== 0)
    assert.deepEqual(Object.fromEntries(seen), expected, name)
  }
})

test('a request whose client has disconnected is counted with its outcome', async t => {
  const scene = await setUp(t, { answer: () => {} })
  const user = await scene.user()
  const before = (await scrape(scene.url)).value(outcome('admitted'))
  const leaving = httpRequest(`${scene.url}/hangs`, { headers: { cookie: cookieOf(user) } })
  leaving.on('error', () => {}).end()
  await until(() => scene.upstream.received.length > 0)
  leaving.destroy()
  await until(async () => (await scrape(scene.url)).value(outcome('admitted')) === before + 1)
})

test('streams and WebSockets are counted while they are open and are not in the request durations', async t => {
  const scene = await setUpSockets(t, {
    answer: (_request, response) =>
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n'),
  })
  const user = await scene.user()
  const timed = (await scrape(scene.url)).value('menshen_request_seconds_count')
  const socket = dial(scene, user)
  await once(socket, 'open')
  const stream = httpRequest(`${scene.url}/events`, { headers: { cookie: cookieOf(user) } }).end()
  await once(stream, 'response')
  const open = await scrape(scene.url)
  assert.equal(open.value('menshen_open_streams'), 2)
  assert.equal(open.value('menshen_upstream_seconds_count{status="1xx"}'), 1)
  assert.equal(open.value('menshen_upstream_seconds_count{status="2xx"}'), 1)
  socket.terminate()
  stream.on('error', () => {}).destroy()
  await until(async () => (await scrape(scene.url)).value('menshen_open_streams') === 0)
  await until(async () => (await scrape(scene.url)).value(outcome('admitted')) === 2)
  const after = await scrape(scene.url)
  // Every other request since then was a scrape, and so was each own one.
  assert.equal(
    after.value('menshen_request_seconds_count') - timed,
    after.value(outcome('own')) - open.value(outcome('own')) + 1,
  )
})

test('menshen_upstream_queue is the number of requests that wait for the application', async t => {
  const scene = await setUp(t, { env: { UPSTREAM_CONNECTIONS: '1' }, answer: () => {} })
  const user = await scene.user()
  const waiting = ['/1', '/2', '/3'].map(path =>
    httpRequest(scene.url + path, { headers: { cookie: cookieOf(user) } })
      .on('error', () => {})
      .end(),
  )
  await until(async () => (await scrape(scene.url)).value('menshen_upstream_queue') === 2)
  for (const one of waiting) one.destroy()
  await until(async () => (await scrape(scene.url)).value('menshen_upstream_queue') === 0)
})

suite('sign-ins, sign-outs, refreshes, calls', () => {
  test('a sign-in and a sign-out are counted', async t => {
    const scene = await setUp(t)
    const before = await scrape(scene.url)
    assert.equal(before.sum('menshen_sign_ins_total'), 0)
    const user = await scene.user()
    await user.get('/')
    await user.post('/logout', {}, { headers: { origin: scene.baseUrl } })
    const after = await scrape(scene.url)
    assert.equal(after.value('menshen_sign_ins_total{result="ok"}'), 1)
    assert.equal(after.sum('menshen_sign_ins_total'), 1)
    assert.equal(after.value('menshen_sign_outs_total{by="user"}'), 1)
    assert.equal(after.value('menshen_provider_seconds_count{call="token",result="ok"}'), 1)
    assert.equal(after.value('menshen_provider_seconds_count{call="user_info",result="ok"}'), 1)
    assert.equal(after.value('menshen_session_cache_total{result="hit"}'), 1)
    assert.ok(after.value('menshen_store_seconds_count{verb="read",result="ok"}') > 0)
    assert.equal(after.value('menshen_upstream_seconds_count{status="2xx"}'), 1)
  })

  test('a session that a developer ends twice is counted once', async t => {
    const scene = await setUp(t)
    const [admin, user] = [await scene.user('admin'), await scene.user()]
    const session = recordKey(user.cookies.get('menshen_session') ?? '')
    const act = async () => {
      for (let n = 0; n < 2; n++)
        await admin.post('/_menshen/console/end', { session }, { headers: { origin: scene.baseUrl } })
    }
    assert.equal(await added(scene, 'menshen_sign_outs_total{by="developer"}', act), 1)
  })

  test('an unknown ticket is counted as a miss of the session cache', async t => {
    const scene = await setUp(t)
    const act = () => scene.visitor().get('/', { headers: { cookie: `menshen_session=${'a'.repeat(43)}` } })
    assert.equal(await added(scene, 'menshen_session_cache_total{result="miss"}', act), 1)
  })

  test('error codes from the provider, user names and paths never become labels', async t => {
    const scene = await setUp(t)
    const visitor = scene.visitor()
    const hostile = ['13800138000', '"} 1\nmenshen_forged_total 7', 'admin', 'constructor', '__proto__']
    for (const error of hostile) await visitor.get(`/callback?${new URLSearchParams({ error })}`)
    await visitor.get('/callback?error=access_denied')
    await visitor.get('/callback?state=abc_idp')
    scene.provider.answer('token', { kind: 'json', status: 500, body: {} }, 'once')
    await signIn(visitor, scene.provider)
    const user = await scene.user('a"b\\n{x="1"} 2')
    await user.get('/path-of-a-page')
    const { value, text, samples } = await scrape(scene.url)
    assert.equal(value('menshen_sign_ins_total{result="unknown_error"}'), hostile.length)
    assert.equal(value('menshen_sign_ins_total{result="access_denied"}'), 1)
    assert.equal(value('menshen_sign_ins_total{result="missing_code"}'), 1)
    assert.equal(value('menshen_sign_ins_total{result="token_error"}'), 1)
    assert.equal(value('menshen_provider_seconds_count{call="token",result="provider_answer"}'), 1)
    for (const word of ['13800138000', 'forged', 'constructor', '__proto__', 'a"b', 'path-of-a-page'])
      assert.ok(!text.includes(word), word)
    const values = [...samples.keys()].flatMap(series => [...series.matchAll(/="([^"]*)"/g)].map(([, each]) => each))
    assert.deepEqual(
      [...new Set(values.filter(each => each?.includes('admin')))],
      ['admin_is_developer'],
      'the name of an event alone',
    )
  })

  test('refreshes are counted by success and by reason of failure', async t => {
    const scene = await setUp(t)
    const [one, other] = [await scene.user(), await scene.user('lisi')]
    scene.passSeconds(7000)
    await one.get('/')
    scene.provider.answer('refresh', { kind: 'json', status: 400, body: { error: 'invalid_grant' } }, 'once')
    await other.get('/')
    const { value, sum } = await scrape(scene.url)
    assert.equal(value('menshen_refreshes_total{result="ok"}'), 1)
    assert.equal(value('menshen_refreshes_total{result="provider_refused"}'), 1)
    assert.equal(sum('menshen_refreshes_total'), 2)
  })

  test('a refresh that returns another user is counted as failed with subject_changed', async t => {
    const scene = await setUpOidc(t, { application: false })
    const user = await scene.user()
    scene.provider.idClaims = { sub: 'another' }
    scene.passSeconds(3500)
    assert.equal((await user.get('/_menshen/me')).status, 401)
    const { value, sum } = await scrape(scene.url)
    assert.equal(value('menshen_refreshes_total{result="subject_changed"}'), 1)
    assert.equal(sum('menshen_refreshes_total'), 1)
    assert.equal(value('menshen_sessions_ended_total{reason="subject_changed"}'), 1)
  })

  test('an attempt that fails before the redirect to the provider is not counted as a sign-in', async t => {
    const scene = await setUpOidc(t, { application: false })
    scene.provider.isAway = true
    const { headers } = await scene.visitor().post('/login')
    assert.equal(headers.location, '/login?error=temporarily_unavailable')
    assert.equal((await scrape(scene.url)).sum('menshen_sign_ins_total'), 0)
  })

  test('requests beyond the rate limit are counted', async t => {
    const scene = await setUp(t, { env: { RATE_LIMIT_PER_MINUTE: '1' } })
    const act = async () => {
      for (let n = 0; n < 3; n++) await scene.visitor().get('/callback?error=x')
    }
    assert.equal(await added(scene, 'menshen_rate_limited_total', act), 2)
  })
})

suite('events', () => {
  test('warnings and errors are counted, also those that the log leaves out as repeats', async t => {
    const scene = await setUp(t, {
      env: { UPSTREAM: `http://127.0.0.1:${await freePort()}` },
      config: { rules: [{ path: '/secret', roles: ['developer'] }] },
    })
    const user = await scene.user()
    for (const [path, event, level] of [
      ['/secret', 'refused', 'warn'],
      ['/', 'upstream_failed', 'error'],
    ] as const) {
      const act = async () => {
        for (let n = 0; n < 15; n++) await user.get(path)
      }
      assert.equal(await added(scene, `menshen_events_total{event="${event}",level="${level}"}`, act), 15)
      assert.equal(scene.eventsOf(event).length, 10)
    }
  })

  test('every event of level warn or error has one series with its level, and no other event has a series', async t => {
    const scene = await setUp(t)
    const { samples } = await scrape(scene.url)
    const series = [...samples.keys()].filter(name => name.startsWith('menshen_events_total'))
    const expected = Object.entries(EVENTS).flatMap(([event, { level }]) =>
      level === 'info' ? [] : `menshen_events_total{event="${event}",level="${level}"}`,
    )
    assert.deepEqual(series.sort(), expected.sort())
  })
})

test('menshen_build_info has the versions of Menshen and Node', async t => {
  const scene = await setUp(t)
  const scraped = await scrape(scene.url)
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  assert.equal(scraped.value(`menshen_build_info{version="${version}",node="${process.versions.node}"}`), 1)
  assert.ok(!scraped.samples.has('menshen_certificate_expiry_timestamp_seconds'), 'there is no certificate')
})

test('menshen_sessions is the number of live sessions', async t => {
  const scene = await setUp(t)
  const [, leaving] = [await scene.user(), await scene.user('lisi')]
  await leaving.post('/logout', {}, { headers: { origin: scene.baseUrl } })
  assert.equal((await scrape(scene.url)).value('menshen_sessions'), 1)
})

for (const [name, countSessions] of [
  ['is away', () => Promise.reject(new Error('away'))],
  ['hangs', () => new Promise<number>(() => {})],
] as const)
  test(`if the store ${name}, menshen_sessions is absent and other metrics are present`, async () => {
    const read = createMetricsReader({ metrics: createMetrics(), upstreams: { waiting: 3, streams: 0 }, countSessions })
    const { samples, value } = readMetrics(await gatherAlone(read)())
    assert.ok(!samples.has('menshen_sessions'))
    assert.equal(value('menshen_upstream_queue'), 3)
  })

test('two gateways in one process have separate counters', async t => {
  const [one, other] = [await setUp(t), await setUp(t)]
  await one.user()
  assert.equal((await scrape(one.url)).value('menshen_sign_ins_total{result="ok"}'), 1)
  assert.equal((await scrape(other.url)).value('menshen_sign_ins_total{result="ok"}'), 0)
})

/** Asks for a socket, and reads the refusal. */
function upgrade({ url }: Pick<Scene, 'url'>, path: string): Promise<string> {
  const headers = ['upgrade: websocket', 'sec-websocket-version: 13', 'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==']
  return raw(url, request(`GET ${path} HTTP/1.1`, ...headers).replace('connection: close', 'connection: upgrade'))
}

test('a HEAD request for /_menshen/metrics returns the headers without a body', async t => {
  const scene = await setUp(t)
  const client = createClient(scene.url)
  const { status, headers, text } = await client.request({ method: 'HEAD', path: '/_menshen/metrics' })
  assert.equal(status, 200)
  assert.equal(headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8')
  assert.equal(headers['cache-control'], 'no-store')
  assert.equal(text, '')
})
