// Rules with networks, hours and origin, through the whole gateway.

import assert from 'node:assert/strict'
import test from 'node:test'
import type { Config, Rule } from '../../src/index.ts'
import type { Client } from '../kit/client.ts'
import { setUp } from '../kit/set-up.ts'
import { until } from '../kit/until.ts'

const BROWSER = { accept: 'text/html', 'sec-fetch-dest': 'document', 'sec-fetch-mode': 'navigate' }
const SCRIPT = { accept: 'application/json', 'sec-fetch-dest': 'empty' }
const FROM_OFFICE = { 'x-forwarded-for': '10.1.2.3' }
const FROM_HOME = { 'x-forwarded-for': '198.51.100.7' }
const PROXY = { TRUSTED_PROXIES: '127.0.0.1' }

test('a signed-in user outside the networks gets 403 outside_network, based on the address from trusted proxies', async t => {
  const rules: Rule[] = [{ path: '/office', roles: ['*'], networks: ['10.0.0.0/8'] }]
  const { user, lines } = await setUp(t, { config: { rules } as Config, env: { ...PROXY, PAGE_LANGUAGE: 'auto' } })
  const client = await user()
  assert.equal((await client.get('/office', { headers: { ...BROWSER, ...FROM_OFFICE } })).status, 200)
  const page = await client.get('/office', { headers: { ...BROWSER, ...FROM_HOME } })
  assert.equal(page.status, 403)
  assert.match(page.text, /此页面只能从指定的网络访问/)
  assert.match(page.text, /<code>outside_network<\/code>/)
  const english = await client.get('/office', { headers: { ...BROWSER, ...FROM_HOME, 'accept-language': 'en' } })
  assert.match(english.text, /only available on certain networks/)
  const script = await client.get('/office', { headers: { ...SCRIPT, ...FROM_HOME } })
  assert.deepEqual([script.status, script.json<{ error: string }>().error], [403, 'outside_network'])
  assert.equal((await client.get('/other', { headers: { ...BROWSER, ...FROM_HOME } })).status, 200)
  const refused = lines.find(({ event }) => event === 'refused')
  assert.deepEqual([refused?.fields.reason, refused?.fields.user], ['outside_network', 'zhangsan'])
  const headers = { 'x-original-uri': '/office', ...FROM_HOME }
  assert.equal((await client.get('/_menshen/check', { headers })).status, 403)
  assert.equal((await client.get('/_menshen/check', { headers: { ...headers, ...FROM_OFFICE } })).status, 200)
})

test('clients cannot choose their own address: without a trusted proxy X-Forwarded-For is ignored', async t => {
  const rules: Rule[] = [{ path: '/office', roles: ['*'], networks: ['10.0.0.0/8'] }]
  const { user } = await setUp(t, { config: { rules } as Config })
  const client = await user()
  assert.equal((await client.get('/office', { headers: { ...BROWSER, ...FROM_OFFICE } })).status, 403)
})

test('a public page with networks refuses visitors from elsewhere, logs them as visitor_refused and keeps them out of the audit trail', async t => {
  const rules: Rule[] = [{ path: '/status', public: true, networks: ['10.0.0.0/8'] }]
  const { client, user, lines } = await setUp(t, { config: { rules } as Config, env: PROXY })
  assert.equal((await client.get('/status', { headers: { ...BROWSER, ...FROM_OFFICE } })).status, 200)
  const page = await client.get('/status', { headers: { ...BROWSER, ...FROM_HOME } })
  assert.equal(page.status, 403)
  assert.doesNotMatch(page.text, /您已登录/)
  const script = await client.get('/status', { headers: { ...SCRIPT, ...FROM_HOME } })
  assert.equal(script.json<{ error: string }>().error, 'outside_network')
  assert.deepEqual(
    lines.filter(({ event }) => event.endsWith('refused')).map(({ event, fields }) => [event, fields.reason]),
    [
      ['visitor_refused', 'outside_network'],
      ['visitor_refused', 'outside_network'],
    ],
  )
  const signedIn = await user()
  assert.equal((await signedIn.get('/status', { headers: { ...BROWSER, ...FROM_HOME } })).status, 403)
  const admin = await user('admin')
  // In the order in which they happened: with the refusal of the user, those of the visitors would be there, too.
  await until(async () => (await auditedFrom(admin, FROM_HOME)).length > 0)
  const [refused = '', ...others] = await auditedFrom(admin, FROM_HOME)
  assert.match(refused, /user=zhangsan/)
  assert.deepEqual(others, [])
})

/** The rows of the audit trail with this address. */
async function auditedFrom(admin: Client, from: typeof FROM_HOME): Promise<string[]> {
  const { text } = await admin.get('/_menshen/console/audit')
  const rows = text.match(/<tr role="row"><th scope="row".*?<\/tr>/gs) ?? []
  return rows.filter(row => row.includes(from['x-forwarded-for']))
}

const HOURS = { days: ['mon', 'tue', 'wed', 'thu', 'fri'], from: '08:00', to: '20:00', zone: 'Asia/Shanghai' } as const
/** A Monday in Shanghai. */
const MONDAY_EVENING = Date.parse('2026-03-02T19:59:30+08:00')

test('outside the hours a page shows them in the user’s language, and a script gets 403 outside_hours', async t => {
  const rules: Rule[] = [
    { path: '/desk', roles: ['*'], hours: HOURS },
    { path: '/night', public: true, hours: { from: '22:00', to: '06:00', zone: 'Europe/Berlin' } },
  ]
  const {
    user,
    passSeconds,
    client: visitor,
  } = await setUp(t, {
    config: { rules } as Config,
    now: MONDAY_EVENING,
    env: { PAGE_LANGUAGE: 'auto' },
  })
  const client = await user()
  assert.equal((await client.get('/desk', { headers: BROWSER })).status, 200)
  passSeconds(30)
  const page = await client.get('/desk', { headers: BROWSER })
  assert.equal(page.status, 403)
  assert.match(page.text, /星期一至星期五 08:00 至 20:00（中国标准时间）/)
  const english = await client.get('/desk', { headers: { ...BROWSER, 'accept-language': 'en' } })
  assert.match(
    english.text,
    /Monday to Friday, 08:00 to 20:00 \(China Time|Monday to Friday, 08:00 to 20:00 \(China Standard Time/,
  )
  const script = await client.get('/desk', { headers: SCRIPT })
  assert.deepEqual([script.status, script.json<{ error: string }>().error], [403, 'outside_hours'])
  const night = await visitor.get('/night', { headers: { ...BROWSER, 'accept-language': 'en' } })
  assert.equal(night.status, 403)
  assert.match(night.text, /every day, 22:00 to 06:00 the next day \(Central European Time\)/)
  passSeconds(12 * 3600)
  assert.equal((await (await user()).get('/desk', { headers: BROWSER })).status, 200)
})

test('a stream ends when the hours of its rule end', async t => {
  const rules: Rule[] = [{ path: '/live', roles: ['*'], hours: HOURS }]
  const { user, passSeconds, upstream } = await setUp(t, {
    config: { rules } as Config,
    now: MONDAY_EVENING,
    answer(_request, response) {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: hello\n\n')
    },
  })
  const client = await user()
  let hasEnded = false
  const end = () => {
    hasEnded = true
  }
  void client.get('/live/1').then(end, end)
  await until(() => upstream.received.length === 1)
  assert.equal(hasEnded, false)
  passSeconds(30)
  await until(() => hasEnded)
})

test("with origin 'own' a write must come from the application's own pages, by Sec-Fetch-Site or else by Origin", async t => {
  const rules: Rule[] = [{ path: '/api', roles: ['*'], origin: 'own' }]
  const { user, baseUrl } = await setUp(t, { config: { rules } as Config })
  const client = await user()
  const status = async (method: string, headers: Record<string, string>) =>
    (await client.request({ method, path: '/api/x', headers: { ...SCRIPT, ...headers } })).status
  for (const method of ['GET', 'HEAD', 'OPTIONS'])
    assert.equal(await status(method, { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }), 200, method)
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
    for (const site of ['same-origin', 'none']) assert.equal(await status(method, { 'sec-fetch-site': site }), 200)
    for (const site of ['same-site', 'cross-site', '', 'same-origin, cross-site'])
      assert.equal(await status(method, { 'sec-fetch-site': site, origin: baseUrl }), 403, `${method} ${site}`)
    assert.equal(await status(method, { origin: baseUrl }), 200)
    for (const origin of ['null', 'https://evil.example', `${baseUrl}.evil.example`])
      assert.equal(await status(method, { origin }), 403, origin)
    assert.equal(await status(method, {}), 403)
  }
  const refused = await client.post('/api/x', '', { headers: { ...SCRIPT, origin: 'null' } })
  assert.equal(refused.json<{ error: string }>().error, 'foreign_origin')
})

test('a shadow rule with conditions refuses no request and logs the reason for each it would have refused', async t => {
  const rules: Rule[] = [
    { path: '/office', roles: ['*'] },
    { path: '/office', roles: ['*'], networks: ['10.0.0.0/8'], maxAge: 60, shadow: true },
  ]
  const { user, lines, passSeconds } = await setUp(t, { config: { rules } as Config, env: PROXY })
  const client = await user()
  for (const headers of [FROM_OFFICE, FROM_HOME])
    assert.equal((await client.get('/office', { headers: { ...BROWSER, ...headers } })).status, 200)
  passSeconds(100)
  assert.equal((await client.get('/office', { headers: { ...BROWSER, ...FROM_OFFICE } })).status, 200)
  assert.deepEqual(
    lines.filter(({ event }) => event === 'shadow_refused').map(({ fields }) => fields.reason),
    ['outside_network', 'step_up'],
  )
})

test('the conditions of a rule do not apply to Menshen’s own pages', async t => {
  const rules: Rule[] = [{ path: '/', roles: ['*'], networks: ['192.0.2.0/24'], maxAge: 1 }]
  const { user, passSeconds } = await setUp(t, { config: { rules } as Config })
  const client = await user()
  passSeconds(100)
  assert.equal((await client.get('/', { headers: BROWSER })).status, 403)
  assert.equal((await client.get('/_menshen/account', { headers: BROWSER })).status, 200)
  assert.equal((await client.get('/_menshen/me', { headers: SCRIPT })).status, 200)
})
