// A name and a code that are the same text are shown once.

import assert from 'node:assert/strict'
import test from 'node:test'
import { setUp } from '../kit/set-up.ts'

const CONFIG = {
  roles: [
    { role: 'developer', username: ['admin'] },
    { role: 'Finance', username: ['zhangsan'] },
  ],
  rules: [
    { path: '/finance', roles: ['Finance'] },
    { path: '/closed', roles: ['developer'] },
  ],
}

/** As it is read. */
const textOf = (html: string) => html.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ')

test('a role, user or rule whose name is the same as its code is shown once on every page', async t => {
  const scene = await setUp(t, { env: { PAGE_LANGUAGE: 'en' }, config: CONFIG })
  const user = await scene.user('zhangsan', { ou_name: 'finance', nickname: 'zhangsan' })
  const developer = await scene.user('admin', { nickname: '' })
  const pages = [
    (await user.get('/_menshen/account')).text,
    (await user.get('/closed', { headers: { accept: 'text/html' } })).text,
    (await developer.get('/_menshen/account')).text,
    (await developer.get('/_menshen/console/sessions')).text,
    (await developer.get('/_menshen/console/rules?path=%2Ffinance&role=Finance')).text,
  ]
  for (const page of pages) {
    assert.doesNotMatch(textOf(page), /\b(finance|zhangsan|admin|developer) \1\b/i)
    assert.ok(page.includes('<code>'), 'the code is there')
  }
  assert.match(textOf(pages[0] ?? ''), /Role\s?Finance/)
})
