// The console's audit trail: found by user, event, time, request and session, page by page, and as files.

import assert from 'node:assert/strict'
import test from 'node:test'
import type { ConsoleContext } from '../../src/console/context.ts'
import { findDisplayNames } from '../../src/console/display-names.ts'
import { csvLine } from '../../src/observe/audit-trail.ts'
import { type Client, cookieOf } from '../kit/client.ts'
import { type Scene, setUp } from '../kit/set-up.ts'
import { until } from '../kit/until.ts'

const PATH = '/_menshen/console/audit'
const HOSTILE = "=cmd|'/c calc'!A1\"<script>alert(1)</script>\u202e"

const rowsOf = (text: string) => text.match(/<tr role="row"><th scope="row"[\s\S]*?<\/tr>/g) ?? []
const url = (query: Record<string, string>) => `${PATH}?${new URLSearchParams(query)}`

/** An administrator, and the page once it has so many rows. */
async function openTrail(t: Parameters<typeof setUp>[0], env: Record<string, string> = {}) {
  const scene = await setUp(t, { env, config: { rules: [{ path: '/finance', roles: ['developer'] }] } })
  const admin = await scene.user('admin')
  return { scene, admin }
}

/** Events are written a moment after they happen. */
async function rows(client: Client, address: string, count: number): Promise<string[]> {
  let found: string[] = []
  await until(async () => {
    found = rowsOf((await client.get(address)).text)
    return found.length === count
  })
  return found
}

async function refusedOnce(scene: Scene, user: string): Promise<{ client: Client; requestId: string }> {
  const client = await scene.user(user)
  const { status, headers } = await client.get('/finance/secret', { headers: { 'user-agent': HOSTILE.slice(0, -1) } })
  assert.equal(status, 403)
  return { client, requestId: String(headers['x-request-id']) }
}

test('the audit page lists the newest event first and filters by request, user, event, session and time', async t => {
  const { scene, admin } = await openTrail(t)
  scene.passSeconds(60)
  const { requestId } = await refusedOnce(scene, 'zhangsan')
  const [first = '', second = '', third = ''] = await rows(admin, PATH, 3)
  assert.match(first, /没有权限，访问被拒绝[\s\S]*<dd><code>\/finance\/secret/)
  assert.match(second, /登录成功[\s\S]*zhangsan/)
  assert.match(third, /登录成功[\s\S]*admin/)
  assert.match(first, new RegExp(`href="${PATH}\\?requestId=${requestId}"`))

  const [only = ''] = await rows(admin, url({ requestId }), 1)
  assert.match(only, new RegExp(requestId))
  const session = first.match(/session=([\w-]+)"/)?.[1] ?? ''
  assert.equal(rowsOf((await admin.get(url({ session }))).text).length, 2)
  assert.equal(rowsOf((await admin.get(url({ user: 'zhangsan' }))).text).length, 2)
  assert.equal(rowsOf((await admin.get(url({ user: 'zhangsan', event: 'sign_in' }))).text).length, 1)
  const { text } = await admin.get(url({ user: HOSTILE, requestId: HOSTILE }))
  assert.match(text, /没有找到记录/)
  assert.ok(!text.includes('<script>alert'))

  // The clock of the scene shows 08:00 UTC at first, and the reader is eight hours east of it.
  const at = (since: string, untilTime: string) => url({ since, until: untilTime, zone: '-480' })
  assert.equal(rowsOf((await admin.get(at('2026-03-01T16:01', ''))).text).length, 2)
  assert.equal(rowsOf((await admin.get(at('', '2026-03-01T16:00'))).text).length, 1)
  assert.equal(rowsOf((await admin.get(at('2026-03-01', '2026-03-01'))).text).length, 3)
  assert.equal(rowsOf((await admin.get(at('2026-03-02', ''))).text).length, 0)
  assert.equal(rowsOf((await admin.get(at('yesterday', '9999'))).text).length, 3)
})

test('the audit page escapes a hostile user agent', async t => {
  const { scene, admin } = await openTrail(t)
  await refusedOnce(scene, 'zhangsan')
  await rows(admin, PATH, 3)
  const { text } = await admin.get(PATH)
  assert.ok(!text.includes('<script>alert'))
  assert.match(text, /<code class="dim">=cmd\|&#39;\/c calc&#39;!A1&quot;&lt;script&gt;/)
})

test('an audit row has the time to the second in the page language, an outcome and the user’s display name', async t => {
  const { scene, admin } = await openTrail(t)
  scene.passSeconds(7)
  await refusedOnce(scene, 'zhangsan')
  const [refused = '', signedIn = ''] = await rows(admin, PATH, 3)
  assert.match(refused, /<time datetime="2026-03-01T08:00:07.000Z" class="exact">2026年3月1日 \d\d:00:07<\/time>/)
  assert.match(refused, /<span class="outcome failure" title="失败或被拒绝"><svg/)
  assert.match(signedIn, /<span class="outcome success" title="成功"><svg/)
  assert.match(signedIn, /<bdi>张三<\/bdi> <a href="[^"]*\?user=zhangsan"><code>zhangsan<\/code><\/a>/)
  await admin.post('/_menshen/language', { language: 'en' }, { headers: { origin: scene.baseUrl } })
  const [english = ''] = rowsOf((await admin.get(PATH)).text)
  assert.match(english, /class="exact">Mar 1, 2026, \d+:00:07\s[AP]M<\/time>/)
  assert.match(english, /title="Failed or denied"/)
})

test('a user of another provider with the same username has another display name', async () => {
  const session = (nickname: string, provider?: string) => ({
    summary: { username: 'lisi', nickname, ...(provider && { provider }) },
  })
  const sessions = {
    list: async () => ({ sessions: [session('Impostor', 'guests'), session('李四'), session('Former')] }),
  }
  const context = { auth: { sessions, providers: { main: { plan: { id: 'default' } } } } } as unknown as ConsoleContext
  const displayName = await findDisplayNames(context, [{ fields: { user: 'lisi' } }])
  assert.equal(displayName({ user: 'lisi', provider: 'guests' }), 'Impostor')
  assert.equal(displayName({ user: 'lisi', provider: 'default' }), '李四')
  assert.equal(displayName({ user: 'lisi', provider: 'elsewhere' }), '')
  assert.equal(displayName({ user: 'lisi' }), '李四')
  assert.equal(displayName({}), '')
})

test('quick ranges show the last 15 minutes, hour or day, keep other filters and are overridden by explicit times', async t => {
  const { scene, admin } = await openTrail(t)
  scene.passSeconds(3000)
  await refusedOnce(scene, 'zhangsan')
  await rows(admin, PATH, 3)
  const count = async (query: Record<string, string>) => rowsOf((await admin.get(url(query))).text).length
  assert.equal(await count({ range: '15m' }), 2)
  assert.equal(await count({ range: '1h' }), 3)
  scene.passSeconds(3000)
  assert.equal(await count({ range: '15m' }), 0)
  assert.equal(await count({ range: '1h' }), 2)
  assert.equal(await count({ range: '1d', user: 'zhangsan', event: 'refused' }), 1)
  for (const range of ['constructor', '99d', '<b>']) assert.equal(await count({ range }), 3, range)
  assert.equal(await count({ range: '15m', since: '2026-03-01 00:00', zone: '0' }), 3)
  const { text } = await admin.get(url({ range: '1h', user: 'zhangsan' }))
  assert.match(text, /href="[^"]*\?user=zhangsan&amp;range=15m" >最近 15 分钟/)
  assert.match(text, /href="[^"]*\?user=zhangsan&amp;range=1h" aria-current="true">最近 1 小时/)
  assert.match(text, /audit\.csv\?user=zhangsan&amp;range=1h"/)
  assert.equal((await admin.get(`${PATH}.jsonl?range=15m`)).text, '')
})

test('above the events of any time, the audit page says that a given time cannot be read', async t => {
  const { user } = await setUp(t, { env: { PAGE_LANGUAGE: 'en' }, application: false })
  const admin = await user('admin')
  const shown = async (query: string) => (await admin.get(`/_menshen/console/audit?${query}`)).text
  await until(async () => (await shown('event=sign_in')).includes('popover'))
  for (const query of [
    'since=16.11.2026',
    'until=yesterday',
    'since=2026-99-99+09:00',
    'since=2026-01-01&until=9:00',
  ]) {
    const page = await shown(query)
    assert.match(page, /role="alert">Enter a valid time, for example/, query)
    assert.match(page, /popover/, query)
  }
  assert.doesNotMatch(await shown('since=2026-01-01&until='), /role="alert"/)
})

test('an export of the audit trail with a time that cannot be read is refused', async t => {
  const { user } = await setUp(t, { application: false })
  const admin = await user('admin')
  for (const file of ['audit.csv', 'audit.jsonl']) {
    const statusOf = async (query: string) => (await admin.get(`/_menshen/console/${file}?${query}`)).status
    // A file with all events would look like one with those of the given time.
    assert.equal(await statusOf('since=2026-01-01T00:00:00Z'), 400)
    assert.equal(await statusOf('since=2026-01-01&until=9:00'), 400)
    assert.equal(await statusOf('since=2026-01-01T00:00&until='), 200)
  }
})

test('the details of an audit event are in a drawer that opens without scripts', async t => {
  const { scene, admin } = await openTrail(t)
  const { requestId } = await refusedOnce(scene, 'zhangsan')
  const [row = ''] = await rows(admin, PATH, 3)
  const id = /<button type="button"[^>]*popovertarget="(event-[\w-]+)" aria-haspopup="dialog">详情/.exec(row)?.[1]
  assert.match(row, new RegExp(`<div popover id="${id}" class="drawer" role="dialog" aria-labelledby="${id}-title">`))
  const drawer = row.slice(row.indexOf('<div popover'))
  for (const shown of [requestId, '<dt>角色</dt>', '<dt>路径</dt>', '<dt>会话</dt>', `popovertargetaction="hide"`])
    assert.ok(drawer.includes(shown), shown)
})

test('audit pages lead back to the first event without repeating one, and link to the newest again', async t => {
  const { scene, admin } = await openTrail(t)
  const user = await scene.user('lisi')
  for (let n = 0; n < 59; n++) await user.get(PATH)
  await until(async () => (await admin.get(`${PATH}.jsonl`)).text.split('\n').length === 62)
  const newest = await rows(admin, PATH, 50)
  const { text } = await admin.get(PATH)
  const next = text.match(/href="([^"]+)" rel="next"/)?.[1]?.replaceAll('&amp;', '&') ?? ''
  const older = await admin.get(next)
  assert.equal(rowsOf(older.text).length, 11)
  assert.ok(!rowsOf(older.text).some(row => newest.includes(row)))
  assert.match(older.text, /没有更早的记录了/)
  assert.match(older.text, /回到最新/)
})

test('audit exports apply the filters, list the oldest event first and contain no formula in a CSV cell', async t => {
  const { scene, admin } = await openTrail(t)
  await refusedOnce(scene, 'zhangsan')
  await rows(admin, PATH, 3)
  const csv = await fetch(`${scene.url}${PATH}.csv?event=refused`, { headers: { cookie: cookieOf(admin) } })
  assert.equal(csv.status, 200)
  assert.equal(csv.headers.get('content-type'), 'text/csv; charset=utf-8')
  assert.equal(csv.headers.get('content-disposition'), 'attachment; filename="audit-2026-03-01.csv"')
  const lines = Buffer.from(await csv.arrayBuffer())
    .toString()
    .split('\r\n')
  assert.equal(lines.length, 3)
  assert.match(lines[0] ?? '', /^\uFEFF"time","event","user"/)
  const [, row = ''] = lines
  assert.ok(row.includes(`"'=cmd|'/c calc'!A1""<script>`), row)
  assert.equal(lines[2], '')

  const jsonl = await admin.get(`${PATH}.jsonl`)
  const events = jsonl.text
    .trimEnd()
    .split('\n')
    .map(text => JSON.parse(text).event)
  assert.deepEqual(events, ['sign_in', 'sign_in', 'refused'])
  assert.match(String(jsonl.headers['content-disposition']), /\.jsonl"$/)
  assert.equal((await admin.get(`${PATH}.jsonl?user=nobody`)).text, '')
})

test('a flood of rate-limited requests adds one event and displaces no other from the audit trail', async t => {
  const { scene, admin } = await openTrail(t, { RATE_LIMIT_PER_MINUTE: '2' })
  for (let n = 0; n < 20; n++) await scene.visitor().get('/callback?error=access_denied')
  await rows(admin, PATH, 3)
  const { text } = await admin.get(`${PATH}.jsonl`)
  assert.deepEqual(
    text
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line).event),
    ['sign_in', 'sign_in_failed', 'rate_limited'],
  )
})

test('full-width formula characters of Chinese keyboards are escaped in a CSV export as well', () => {
  for (const user of ['＝1+1', '＋1', '－1', '＠SUM(A1)'])
    assert.ok(csvLine({ id: '1', time: 0, event: 'sign_in', fields: { user } }).includes(`"'${user}"`))
})

test('only developers can open the audit trail, its exports and its live stream (403 for users, 302 for visitors)', async t => {
  const { scene } = await openTrail(t)
  const user = await scene.user('zhangsan')
  for (const path of [PATH, `${PATH}.csv`, `${PATH}.jsonl`, `${PATH}/live`]) {
    assert.equal((await user.get(path)).status, 403, path)
    assert.equal((await scene.visitor().get(path)).status, 302, path)
  }
})
