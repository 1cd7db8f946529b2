// The request id: one for each request, in its answer, its log lines, its error page and what the application is told.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import test from 'node:test'
import type { Response } from '../kit/client.ts'
import { type Scene, setUp } from '../kit/set-up.ts'
import { dial, setUpSockets } from '../kit/websocket.ts'
import { raw, request } from '../proxy/raw.ts'

const MADE = /^[2-9a-km-np-z]{12}$/
const BEHIND_PROXY = { env: { TRUSTED_PROXIES: '127.0.0.1' } }
const named = (id: string, more: Record<string, string> = {}) => ({ headers: { 'x-request-id': id, ...more } })
const idOf = ({ headers }: Response) => String(headers['x-request-id'])

function idsOf({ lines }: Pick<Scene, 'lines'>, code: string): unknown[] {
  return lines.filter(({ event }) => event === code).map(({ fields }) => (fields as { requestId?: unknown }).requestId)
}

test('every response of Menshen and of the application has a unique request id', async t => {
  const scene = await setUp(t)
  const user = await scene.user()
  const answers = [
    await user.get('/'),
    await user.get('/'),
    await user.get('/_menshen/me'),
    await user.get('/_menshen/check'),
    await scene.visitor().get('/'),
    await scene.visitor().get('/login'),
    await scene.visitor().get('/_menshen/nothing'),
    await scene.visitor().get('/_menshen/health'),
    await scene.visitor().get('/%00'),
  ]
  for (const answer of answers) assert.match(idOf(answer), MADE)
  assert.equal(new Set(answers.map(idOf)).size, answers.length)
})

test('the application receives the request id, and an x-request-id in its response takes precedence', async t => {
  const scene = await setUp(t, {
    answer(request, response) {
      if (request.url === '/own') response.setHeader('x-request-id', 'of-the-application')
      response.end(String(request.headers['x-request-id']))
    },
  })
  const user = await scene.user()
  const answer = await user.get('/', named('made-up-by-the-browser'))
  assert.equal(answer.text, idOf(answer))
  assert.match(idOf(answer), MADE)
  const own = await user.get('/own')
  assert.equal(idOf(own), 'of-the-application')
  assert.match(own.text, MADE)
})

test('a trusted proxy can set the request id to 8 to 128 letters, digits, _ and -', async t => {
  const scene = await setUp(t, BEHIND_PROXY)
  const visitor = scene.visitor()
  for (const good of ['abcd-123', 'A_'.repeat(64)]) assert.equal(idOf(await visitor.get('/', named(good))), good)
  for (const bad of ['short', 'a'.repeat(129), 'with spaces', '<script>alert</script>', '编号编号编号'].map(encodeURI))
    assert.match(idOf(await visitor.get('/', named(bad))), /^(?!short)[2-9a-km-np-z]{12}$/)
})

test('a client that is not a trusted proxy cannot set the request id', async t => {
  const scene = await setUp(t)
  assert.match(idOf(await scene.visitor().get('/', named('abcd-1234'))), MADE)
})

test('an error page shows the request id as 请求编号, and a script gets it as requestId', async t => {
  const scene = await setUp(t)
  const page = await scene.visitor().get('/_menshen/nothing')
  assert.ok(page.text.includes(`请求编号：<code>${idOf(page)}</code>`))
  const unreadable = await scene.visitor().get('/%00')
  assert.ok(unreadable.text.includes(idOf(unreadable)))
  const script = await scene.visitor().get('/_menshen/nothing', { headers: { accept: 'application/json' } })
  assert.equal(JSON.parse(script.text).requestId, idOf(script))
  const visitor = await scene.visitor().get('/', { headers: { accept: 'application/json' } })
  assert.equal(JSON.parse(visitor.text).requestId, idOf(visitor))
})

test('the login page shows the request id of the failed sign-in, which is also in the log', async t => {
  const scene = await setUp(t)
  const visitor = scene.visitor()
  const failed = await visitor.get('/callback?error=access_denied')
  const page = await visitor.get('/login?error=access_denied')
  assert.ok(page.text.includes(`请求编号：<code>${idOf(failed)}</code>`))
  assert.deepEqual(idsOf(scene, 'sign_in_failed'), [idOf(failed)])
})

test('a login page with another error than the failed sign-in shows its own request id', async t => {
  const scene = await setUp(t)
  await scene.visitor().get('/callback?error=access_denied')
  const page = await scene.visitor().get('/login?error=server_error')
  assert.ok(page.text.includes(`请求编号：<code>${idOf(page)}</code>`))
})

test('a refreshed session is logged with the id of the request that caused the refresh', async t => {
  const scene = await setUp(t, { env: { REFRESH_LEAD_SECONDS: '300' } })
  const user = await scene.user()
  scene.passSeconds(7000)
  const answer = await user.get('/')
  assert.deepEqual(idsOf(scene, 'session_refreshed'), [idOf(answer)])
})

test('refused and opened WebSockets have a request id too', async t => {
  const scene = await setUpSockets(t)
  const words = [
    'connection: upgrade',
    'upgrade: websocket',
    'sec-websocket-version: 13',
    `sec-websocket-key: ${btoa('a')}`,
  ]
  const refused = await raw(scene.url, request('GET /socket HTTP/1.1', ...words))
  assert.match(refused, /\r\nx-request-id: [2-9a-z]{12}\r\n/)
  const socket = dial(scene, await scene.user())
  t.after(() => socket.terminate())
  const [opened] = await once(socket, 'upgrade')
  assert.match(opened.headers['x-request-id'], MADE)
})
