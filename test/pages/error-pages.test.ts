// Error pages: what happened, what to do now, and what to tell the people who help. Those of 502 and 503 try again.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Response } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import { setUp, setUpOidc } from '../kit/set-up.ts'

const PAGE = { accept: 'text/html', 'sec-fetch-dest': 'document', 'sec-fetch-mode': 'navigate' }
const RULES = [
  { path: '/secret', roles: ['developer'] },
  { path: '/office', roles: ['*'], networks: ['10.0.0.0/8'] },
  { path: '/night', roles: ['*'], hours: { from: '01:00', to: '01:01', zone: 'UTC' } },
]

const textOf = (html = '') => html.replaceAll(/<[^>]+>/g, '').trim()

test('every error page has one sentence about the next step, its code, its reference and a button to copy them', async t => {
  for (const [PAGE_LANGUAGE, code, reference, copy] of [
    ['zh-CN', '错误代码：', '请求编号：', '复制详细信息'],
    ['en', 'Code: ', 'Reference: ', 'Copy details'],
  ] as const) {
    const scene = await setUp(t, {
      env: { PAGE_LANGUAGE },
      config: { rules: RULES },
      answer: (_, response) => response.destroy(),
    })
    const [user, visitor] = [await scene.user(), scene.visitor()]
    const get = (path: string) => user.get(path, { headers: PAGE })
    const pages: [string, Response][] = [
      ['access_denied', await visitor.get('/login?error=access_denied', { headers: PAGE })],
      ['whatever', await visitor.get('/login?error=whatever', { headers: PAGE })],
      ['bad_request', await visitor.get('/x/../y', { headers: PAGE })],
      ['session_ended', await visitor.post('/form', 'a=b', { headers: PAGE })],
      ['foreign', await visitor.post('/login', '', { headers: { ...PAGE, origin: 'https://evil.example' } })],
      ['refused', await get('/secret')],
      ['outside_network', await get('/office')],
      ['outside_hours', await get('/night')],
      ['not_found', await get('/_menshen/no-such-page')],
      ['method_not_allowed', await user.post('/_menshen/account', 'a=b', { headers: { ...PAGE, origin: scene.url } })],
      ['bad_gateway', await get('/')],
    ]
    for (const [name, page] of pages) {
      const { text, headers } = page
      const id = String(headers['x-request-id'])
      assert.ok(text.includes(`${code}<code>${name}</code>`), `${name}: ${text}`)
      if (!name.startsWith('whatever')) assert.ok(text.includes(`${reference}<code>${id}</code>`), `${name}: ${text}`)
      assert.match(text, new RegExp(`<button [^>]*data-copy-of="details"[^>]* hidden>${copy}</button>`), name)
      assert.equal(text.split('id="details"').length, 2, name)
      const next = [...text.matchAll(/<p class="next">(.*?)<\/p>/gs)].map(([, sentence]) => textOf(sentence))
      // A form that was not sent has its steps in a list.
      if (name !== 'session_ended') assert.equal(next.length, 1, `${name}: ${next.join(' | ')}`)
      for (const sentence of next) assert.ok(sentence.length > 3, name)
    }
  }
})

test('a 403 page names the kind of permission but no role, group or user, and offers the support contact first', async t => {
  const scene = await setUp(t, {
    env: { SUPPORT_CONTACT: 'it@example.com' },
    config: {
      roles: [{ role: 'treasurer', groups: ['board-of-directors'] }],
      rules: [
        { path: '/secret', groups: ['board-of-directors'], users: ['ceo-only'] },
        { path: '/money', roles: ['treasurer'] },
      ],
    },
  })
  const user = await scene.user()
  const ofRole = await user.get('/money', { headers: PAGE })
  assert.equal(ofRole.status, 403)
  assert.match(ofRole.text, /仅对特定的角色开放/)
  assert.doesNotMatch(ofRole.text, /treasurer|board-of-directors/)
  const { status, text } = await user.get('/secret', { headers: PAGE })
  assert.equal(status, 403)
  assert.match(text, /仅对特定的用户组或用户开放/)
  assert.doesNotMatch(text, /board-of-directors|ceo-only/)
  const [contact, account] = [
    text.indexOf('class="button" href="mailto:it@example.com"'),
    text.indexOf('使用其他账号登录'),
  ]
  assert.ok(contact > 0)
  assert.ok(contact < account, 'the contact is the first thing to press')
  assert.equal(text.split('mailto:').length, 2)
})

test('the page for a sign-in that is too old states the maximum age', async t => {
  for (const [PAGE_LANGUAGE, words] of [
    ['zh-CN', '此页面要求 10 分钟内的身份验证'],
    ['en', 'This page requires a sign-in no older than 10 minutes'],
  ] as const) {
    const scene = await setUpOidc(t, {
      env: { PAGE_LANGUAGE },
      config: { rules: [{ path: '/pay', roles: ['*'], maxAge: 600 }] },
    })
    const user = await scene.user()
    scene.passSeconds(1000)
    // The provider confirms the old sign-in again.
    scene.provider.idClaims = { auth_time: Math.floor(scene.now() / 1000) - 1000 }
    let page = await user.get('/pay', { headers: PAGE })
    for (let n = 0; n < 6 && page.headers.location; n++) page = await user.follow(page, { headers: PAGE })
    assert.equal(page.status, 403)
    assert.ok(page.text.includes(words), page.text)
  }
})

test('a 502 or 503 page for a GET request counts down to a retry; one for a POST request and a 404 page do not', async t => {
  const scene = await setUp(t, { answer: (_, response) => response.destroy() })
  const user = await scene.user()
  const seconds = ({ text }: Response) => /class="retry small" data-seconds="(\d+)"/.exec(text)?.[1]
  const broken = await user.get('/report?x=1', { headers: PAGE })
  assert.equal(broken.status, 502)
  assert.equal(seconds(broken), '5')
  assert.match(broken.text, /<a class="button" href="\/report\?x=1">重试<\/a>/)
  assert.match(broken.text, /data-text="# 秒后自动重试"/)
  const posted = await user.post('/report', 'a=b', { headers: { ...PAGE, origin: scene.url } })
  assert.equal(posted.status, 502)
  assert.equal(seconds(posted), undefined, 'a form is never sent again by itself')
  assert.equal(seconds(await user.get('/_menshen/nowhere', { headers: PAGE })), undefined)
  const outage = await setUp(t, { env: { STORE: `redis://127.0.0.1:${await freePort()}` } })
  const headers = { ...PAGE, cookie: `menshen_session=${'A'.repeat(43)}`, origin: outage.url }
  const unavailable = await outage.visitor().get('/report?x=1', { headers })
  assert.deepEqual([unavailable.status, seconds(unavailable)], [503, '5'])
  assert.match(unavailable.text, /<a class="button" href="\/report\?x=1">重试<\/a>/)
  const refused = await outage.visitor().post('/report', 'a=b', { headers })
  assert.deepEqual([refused.status, seconds(refused)], [503, undefined])
})
