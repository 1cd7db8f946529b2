// What a caller without a session gets who cannot be sent to the login page: a form, a program, a path that is refused.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { signIn } from '../kit/client.ts'
import { setUp } from '../kit/set-up.ts'
import { until } from '../kit/until.ts'

const NAVIGATION = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document', 'sec-fetch-site': 'same-origin' }
const HTML = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'

test('a form submitted without a session gets a 401 page that explains how to submit it again', async t => {
  const { visitor } = await setUp(t)
  for (const headers of [NAVIGATION, { accept: HTML }, { accept: 'text/html, application/json;q=0.5' }]) {
    const answer = await visitor().post('/orders', { item: '1' }, { headers })
    assert.equal(answer.status, 401)
    assert.match(String(answer.headers['content-type']), /^text\/html/)
    assert.match(answer.text, /<a class="button" href="\/login" target="_blank" rel="noopener">重新登录<\/a>/)
    assert.match(answer.text, /刷新页面/)
    assert.ok(answer.headers['www-authenticate'])
    assert.ok(
      !answer.setCookies.some(cookie => cookie.startsWith('menshen_return')),
      'a form is not a page to return to',
    )
  }
})

test('a script that posts without a session gets 401 in JSON', async t => {
  const { visitor } = await setUp(t)
  for (const headers of [
    {},
    { accept: '*/*' },
    { accept: 'application/json' },
    { accept: 'application/json, text/html;q=0.5' },
    { accept: HTML, 'x-requested-with': 'XMLHttpRequest' },
    { accept: HTML, 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' },
    { accept: HTML, authorization: 'Bearer x' },
  ]) {
    const answer = await visitor().post('/orders', { item: '1' }, { headers })
    assert.equal(answer.status, 401)
    assert.equal(answer.json<{ error: string }>().error, 'unauthenticated', JSON.stringify(headers))
  }
})

test('a program that sends an Authorization header of any scheme gets 401, never the login page', async t => {
  const { visitor, user } = await setUp(t)
  for (const authorization of [
    'Basic dTpw',
    'Bearer x',
    'Digest username="u"',
    'Token abc',
    'Negotiate YII',
    'AWS4-HMAC x',
  ])
    for (const accept of ['*/*', HTML, 'application/json']) {
      const answer = await visitor().get('/repo.git/info/refs', { headers: { authorization, accept } })
      assert.deepEqual([answer.status, answer.headers.location], [401, undefined], `${authorization} ${accept}`)
      assert.doesNotMatch(answer.text, /id="sign-in"/)
    }
  const signedIn = await user()
  assert.equal((await signedIn.get('/', { headers: { authorization: 'Basic dTpw' } })).text, 'hello', 'with a session')
})

test('a manifest or service worker fetched without cookies gets 401 and no redirect', async t => {
  const { visitor } = await setUp(t)
  for (const destination of ['manifest', 'serviceworker']) {
    const headers = { 'sec-fetch-dest': destination, 'sec-fetch-mode': 'cors', accept: '*/*' }
    const answer = await visitor().get('/app.webmanifest', { headers })
    assert.deepEqual([answer.status, answer.headers.location], [401, undefined], destination)
  }
})

test('a page that a service worker passes on leads to the login page and back, and its other requests get 401', async t => {
  const { provider, visitor } = await setUp(t)
  const accept = 'text/html,application/xhtml+xml,*/*;q=0.8'
  const passedOn = { 'sec-fetch-dest': 'empty', 'sec-fetch-mode': 'navigate', 'sec-fetch-site': 'same-origin', accept }
  const client = visitor()
  const answer = await client.get('/page?a=1', { headers: passedOn })
  assert.deepEqual([answer.status, answer.headers.location], [302, '/login'])
  assert.equal((await signIn(client, provider)).headers.location, '/page?a=1')
  for (const mode of ['cors', 'no-cors', 'same-origin']) {
    const script = await visitor().get('/page', { headers: { ...passedOn, 'sec-fetch-mode': mode } })
    assert.deepEqual([script.status, script.json<{ error: string }>().error], [401, 'unauthenticated'], mode)
  }
})

test('a refused path is logged undecoded and truncated, with the user, and counted in the metrics; scripts get JSON', async t => {
  const { visitor, user, lines, client } = await setUp(t, { env: { METRICS_FROM: '127.0.0.0/8' } })
  const refusals = () => lines.filter(({ event }) => event === 'path_refused').map(({ fields }) => fields)
  const script = await visitor().get('/a/%2e%2e/b?token=secret', { headers: { accept: 'application/json' } })
  assert.equal(script.status, 400)
  const { error, requestId } = script.json<{ error: string; requestId: string }>()
  assert.deepEqual([error, requestId], ['bad_request', script.headers['x-request-id']])
  const [first] = refusals()
  assert.deepEqual(
    [first?.method, first?.path, first?.reason, first?.user, first?.requestId],
    ['GET', '/a/%2e%2e/b', 'dot_segment', undefined, requestId],
  )
  const long = await visitor().get(`/${'a'.repeat(5000)}`)
  assert.equal(long.status, 414)
  const [, second] = refusals()
  assert.deepEqual([second?.reason, String(second?.path).length], ['too_long', 257])
  const signedIn = await user('lisi')
  const page = await signedIn.get('/x/..%2fadmin')
  assert.equal(page.status, 400)
  assert.match(String(page.headers['content-type']), /^text\/html/)
  await until(() => refusals().length === 3)
  assert.equal(refusals()[2]?.user, 'lisi')
  assert.doesNotMatch(JSON.stringify(lines), /secret/)
  const metrics = (await client.get('/_menshen/metrics')).text
  assert.match(metrics, /^menshen_requests_total\{.*outcome="refused".*\} 3$/m)
})

test('every response to a sign-out clears the browser cache with Clear-Site-Data', async t => {
  const { user, visitor } = await setUp(t)
  const navigation = { headers: { ...NAVIGATION } }
  const answers = [
    await (await user()).post('/logout'),
    await (await user()).get('/logout', navigation),
    await (await user()).post('/logout', { return: '/x' }),
    await (await user()).post('/_menshen/sign-out-everywhere'),
    await visitor().post('/logout'),
  ]
  const browser = await setUp(t, { env: { LOGOUT_STYLE: 'browser' } })
  answers.push(await (await browser.user()).post('/logout'))
  for (const { headers, status } of answers) {
    assert.ok(status === 302 || status === 303)
    assert.equal(headers['clear-site-data'], '"cache"', String(headers.location))
  }
})
