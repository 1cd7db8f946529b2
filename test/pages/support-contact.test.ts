// SUPPORT_CONTACT: where users find help, on every error page.

import assert from 'node:assert/strict'
import test from 'node:test'
import { setUp } from '../kit/set-up.ts'

const PAGE = { accept: 'text/html', 'sec-fetch-dest': 'document', 'sec-fetch-mode': 'navigate' }
const CONTACTS = [
  ['helpdesk+sso@example.com', 'href="mailto:helpdesk+sso@example.com">helpdesk+sso@example.com</a>'],
  ['https://help.example.com/?a=1&b="x"', 'href="https://help.example.com/?a=1&amp;b=&quot;x&quot;">'],
] as const

test('every error page links to SUPPORT_CONTACT, in both languages, and no other page does', async t => {
  for (const [SUPPORT_CONTACT, link] of CONTACTS)
    for (const [PAGE_LANGUAGE, words] of [
      ['zh-CN', '需要帮助？请联系 <a '],
      ['en', 'Need help? <a '],
    ] as const) {
      const scene = await setUp(t, {
        env: { SUPPORT_CONTACT, PAGE_LANGUAGE },
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
      for (const [status, page] of errors) {
        assert.equal(page.status, status)
        assert.equal(page.text.split('class="small support"').length, 2, `once: ${page.text}`)
        assert.ok(page.text.includes(link) && page.text.includes(words), page.text)
      }
      for (const path of ['/login', '/_menshen/account'])
        assert.ok(!(await user.get(path, { headers: PAGE })).text.includes('support'), path)
    }
})

test('without SUPPORT_CONTACT an error page has no support link', async t => {
  const { client } = await setUp(t)
  assert.doesNotMatch((await client.get('/login?error=x', { headers: PAGE })).text, /需要帮助/)
})
