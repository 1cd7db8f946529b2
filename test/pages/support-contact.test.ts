// SUPPORT_CONTACT: where users find help, on every error page.

import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import type { Environment } from '../kit/instance.ts'
import { setUp } from '../kit/set-up.ts'

const PAGE = { accept: 'text/html', 'sec-fetch-dest': 'document', 'sec-fetch-mode': 'navigate' }
const CONTACTS = [
  ['helpdesk+sso@example.com', 'href="mailto:helpdesk+sso@example.com">helpdesk+sso@example.com</a>'],
  ['https://help.example.com/?a=1&b="x"', 'href="https://help.example.com/?a=1&amp;b=&quot;x&quot;">'],
] as const

/** Error pages of each status, and pages that are not about an error. */
async function setUpPages(t: TestContext, env: Environment) {
  const scene = await setUp(t, {
    env,
    config: {
      rules: [
        { path: '/secret', roles: ['developer'] },
        { path: '/office', roles: ['*'], networks: ['10.0.0.0/8'] },
      ],
    },
    answer: (_, response) => response.destroy(),
  })
  const [user, visitor] = [await scene.user(), scene.visitor()]
  const errors = [
    [200, await visitor.get('/login?error=access_denied', { headers: PAGE })],
    [200, await visitor.get('/login?error=whatever', { headers: PAGE })],
    [400, await visitor.get('/x/../y', { headers: PAGE })],
    [401, await visitor.post('/form', 'a=b', { headers: PAGE })],
    [403, await user.get('/secret', { headers: PAGE })],
    [403, await user.get('/office', { headers: PAGE })],
    [404, await user.get('/_menshen/no-such-page', { headers: PAGE })],
    [502, await user.get('/', { headers: PAGE })],
  ] as const
  const others = await Promise.all(
    ['/login', '/_menshen/account'].map(async path => [200, await user.get(path, { headers: PAGE })] as const),
  )
  for (const [status, page] of [...errors, ...others]) assert.equal(page.status, status)
  return { errors: errors.map(([, page]) => page), others: others.map(([, page]) => page) }
}

test('every error page links to SUPPORT_CONTACT, in both languages, and no other page does', async t => {
  for (const [SUPPORT_CONTACT, link] of CONTACTS)
    for (const [PAGE_LANGUAGE, words] of [
      ['zh-CN', '需要帮助？请联系 <a '],
      ['en', 'Need help? <a '],
    ] as const) {
      const { errors, others } = await setUpPages(t, { SUPPORT_CONTACT, PAGE_LANGUAGE })
      for (const { text } of errors) {
        assert.equal(text.split('class="small support"').length, 2, `once: ${text}`)
        assert.ok(text.includes(link) && text.includes(words), text)
      }
      for (const { text, url } of others) assert.ok(!text.includes('support'), url)
    }
})

test('without SUPPORT_CONTACT no page has a support link, in both languages', async t => {
  for (const PAGE_LANGUAGE of ['zh-CN', 'en']) {
    const { errors, others } = await setUpPages(t, { PAGE_LANGUAGE })
    for (const { text, url } of [...errors, ...others])
      assert.doesNotMatch(text, /需要帮助|Need help|class="small support"|mailto:/, url)
  }
})
