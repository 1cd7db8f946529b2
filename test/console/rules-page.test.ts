// The console's page of rules: the table in effect, who may see what, and what rules on trial would have refused.
import assert from 'node:assert/strict'
import test from 'node:test'
import { setUp } from '../kit/set-up.ts'

const PATH = '/_menshen/console/rules'
const HOSTILE = '"><script>alert(1)</script>'

const config = {
  roles: [
    { role: 'developer', username: ['admin'] },
    { role: 'auditor', groups: ['audit'] },
  ],
  rules: [
    { path: '/', roles: ['*'] },
    { path: '/finance', roles: ['auditor'], groups: ['cfo'], users: ['lisi'] },
    { path: '/finance/open', public: true as const },
    { path: '/finance', exact: true, methods: ['GET'], roles: ['*'] },
    { path: '/labs', users: [HOSTILE], shadow: true },
  ],
}

test('the rules page lists rules in order of precedence, including those of Menshen, and is only for developers', async t => {
  const scene = await setUp(t, { config })
  const { text } = await (await scene.user('admin')).get(PATH)
  const paths = [...text.matchAll(/id="rule-\d+"[\s\S]*?<code>([^<]+)<\/code>/g)].map(([, path]) => path)
  assert.deepEqual(paths, ['/_menshen/console', '/_menshen', '/finance/open', '/finance', '/finance', '/labs', '/'])
  assert.match(text, /所有人，无需登录/)
  assert.match(text, /<code>cfo<\/code>/)
  assert.match(text, /角色：开发者（<code>developer<\/code>）/)
  assert.match(text, /<option value="common"[^>]*>普通用户（common）<\/option>/)
  assert.match(text, /<option value="auditor"[^>]*>auditor<\/option>/)
  assert.ok(!text.includes('<script>alert'))
  assert.equal((await (await scene.user('zhangsan')).get(PATH)).status, 403)
})

test('the rules page lists roles by code, and in Chinese with their names as well', async t => {
  const rules = [{ path: '/', roles: ['developer', 'common'] }]
  const scene = await setUp(t, { config: { rules }, env: { PAGE_LANGUAGE: 'auto' } })
  const admin = await scene.user('admin')
  const shown = async (language: string) => {
    const { text } = await admin.get(PATH, { headers: { 'accept-language': language } })
    return text.replace(/<[^>]*>/g, '')
  }
  assert.match(await shown('en'), /Roles: developer, common\b/)
  assert.doesNotMatch(await shown('en'), /user common/i)
  assert.match(await shown('zh-CN'), /角色：开发者（developer）、普通用户（common）/)
})

test('the filter on the rules page shows matching rules with their numbers in the whole table', async t => {
  const scene = await setUp(t, { config })
  const admin = await scene.user('admin')
  const shown = async (filter: string) => {
    const { text } = await admin.get(`${PATH}?${new URLSearchParams({ filter })}`)
    assert.ok(!text.includes('<script>alert'))
    const rows = text.match(/<tr role="row"( hidden)?><th scope="row" role="rowheader"><span id="rule-\d+"/g) ?? []
    return rows.filter(row => !row.includes('hidden')).map(row => Number(/rule-(\d+)/.exec(row)?.[1]))
  }
  assert.deepEqual(await shown(''), [1, 2, 3, 4, 5, 6, 7])
  assert.deepEqual(await shown('FINANCE'), [3, 4, 5])
  assert.deepEqual(await shown('cfo'), [5])
  assert.deepEqual(await shown('开发者'), [1])
  assert.deepEqual(await shown(HOSTILE), [6])
  assert.deepEqual(await shown('no such text'), [])
})

test('the access test on the rules page shows the decision for a request and the rule behind it', async t => {
  const scene = await setUp(t, { config })
  const admin = await scene.user('admin')
  const ask = async (query: Record<string, string>) => {
    const { status, text } = await admin.get(`${PATH}?${new URLSearchParams(query)}`)
    assert.equal(status, 200)
    return text.match(/<div role="status">([\s\S]*?)<\/div>\n<h2/)?.[1] ?? ''
  }
  const finance = { path: '/finance/2026?a=b', role: 'common' }
  assert.match(await ask(finance), /拒绝（403）[\s\S]*href="#rule-5"/)
  assert.match(await ask({ ...finance, role: 'auditor' }), /放行[\s\S]*href="#rule-5"/)
  assert.match(await ask({ ...finance, groups: 'staff，cfo' }), /放行/)
  assert.match(await ask({ ...finance, user: 'lisi' }), /放行/)
  assert.match(await ask({ path: 'finance', role: 'common' }), /放行[\s\S]*href="#rule-4"/)
  assert.match(await ask({ path: '/finance', role: 'common', method: 'post' }), /拒绝/)
  assert.match(await ask({ path: '/Finance/x', role: 'common' }), /拒绝[\s\S]*解读为 <code>\/finance/)
  assert.match(await ask({ path: '/x' }), /需要先登录/)
  assert.match(await ask({ path: '/a/..%2fb' }), /有歧义/)
  assert.match(await ask({ path: '/_menshen/account' }), /门神自身/)
  assert.match(await ask({ path: '/_menshen/console/audit', role: 'common' }), /拒绝/)
  assert.match(await ask({ path: '/labs', role: 'common' }), /放行[\s\S]*试行中的[\s\S]*拒绝/)
  assert.match(await ask({ path: '/报表', role: HOSTILE, user: HOSTILE, method: HOSTILE }), /放行|登录/)
  assert.equal(await ask({}), '')
})

test('the rules page shows how many requests a shadow rule would have refused, and the last 20 of them', async t => {
  const scene = await setUp(t, { config })
  const user = await scene.user('zhangsan')
  const admin = await scene.user('admin')
  assert.match((await admin.get(PATH)).text, /本来会拒绝 <strong>0<\/strong>/)
  for (let n = 0; n < 25; n++) assert.equal((await user.get(`/labs/${n}`)).status, 200)
  const { text } = await admin.get(PATH)
  assert.match(text, /本来会拒绝 <strong>25<\/strong>/)
  const shown = [...text.matchAll(/GET \/labs\/(\d+)</g)].map(([, n]) => Number(n))
  assert.deepEqual(
    shown,
    Array.from({ length: 20 }, (_, n) => 24 - n),
  )
  assert.match(text, /zhangsan/)
})

test('the rules page shows the conditions of rules, and its access test evaluates them', async t => {
  const hours = { days: ['mon' as const], from: '08:00', to: '20:00', zone: 'Asia/Shanghai' }
  const rules = [
    { path: '/office', roles: ['*' as const], networks: ['10.0.0.0/8'], hours, origin: 'own' as const },
    { path: '/pay', roles: ['*' as const], maxAge: 300 },
  ]
  const scene = await setUp(t, { config: { rules } })
  const admin = await scene.user('admin')
  const ask = async (query: Record<string, string>) =>
    (await admin.get(`${PATH}?${new URLSearchParams({ role: 'common', ...query })}`)).text
  const page = await ask({})
  for (const shown of [
    '仅限网络：<code>10.0.0.0/8</code>',
    '仅限时间：星期一 08:00 至 20:00',
    '修改类请求',
    '登录后 300 秒以内',
  ])
    assert.ok(page.includes(shown), shown)
  assert.match(await ask({ path: '/office' }), /放行[\s\S]*未填写的条件按满足处理：客户端地址、时间/)
  const outside = await ask({ path: '/office', from: '192.0.2.1', at: '2026-11-16T09:00' })
  assert.match(outside, /拒绝（403）[\s\S]*<code>outside_network<\/code>/)
  assert.match(outside, /name="from" value="192\.0\.2\.1"/)
  assert.match(await ask({ path: '/office', from: '10.0.0.1', at: '2026-11-16T21:00' }), /outside_hours/)
  assert.match(await ask({ path: '/pay', auth_age: '900' }), /需要重新登录/)
  assert.match(
    await ask({ path: '/office', from: HOSTILE, at: HOSTILE }),
    /请输入有效的 IP 地址。[\s\S]*时间格式不正确/,
  )
  assert.ok(!(await ask({ path: '/office', from: HOSTILE, at: HOSTILE, acr: HOSTILE })).includes('<script>alert'))
})
