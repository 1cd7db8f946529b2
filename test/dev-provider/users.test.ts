// Who can be chosen: the provider's own users with their groups, or those of a configuration.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { start } from './harness.ts'

const ANN = {
  sub: 'dev-ann',
  username: 'ann',
  nickname: '',
  email: '',
  phone_number: '',
  ou_id: '',
  ou_name: '<b>Sales</b>',
  groups: ['finance', 'a & b'],
}

test('the card of each user shows the user’s groups', async t => {
  const { get, authorizePath } = await start(t)
  const page = await (await get(authorizePath())).text()
  const cards = page.match(/<li>.*?<\/li>/gs) ?? []
  const groups = cards.map(card => [...card.matchAll(/class="group">([^<]*)</g)].map(([, group]) => group))
  assert.deepEqual(groups, [['admins', 'staff'], ['marketing', 'staff'], ['finance', 'staff'], []])
})

test('configured users replace the built-in ones, and setUsers replaces or restores them', async t => {
  const { provider, get, authorizePath, tokensFor, userInfo, postForm } = await start(t, { users: [ANN] })
  assert.deepEqual(provider.users, ['ann'])
  const page = await (await get(authorizePath())).text()
  assert.doesNotMatch(page, /value="admin"|<b>/)
  assert.match(page, /<span class="name">ann <span class="username">ann</)
  assert.match(page, /class="group">a &amp; b</)
  const { data } = (await (await userInfo((await tokensFor('ann')).access_token)).json()) as { data: unknown }
  assert.deepEqual(data, ANN)
  assert.equal((await postForm(authorizePath(), { username: 'admin' })).status, 400)

  provider.setUsers([{ ...ANN, username: 'bob' }])
  assert.match(await (await get(authorizePath())).text(), /value="bob"/)
  assert.equal((await postForm(authorizePath(), { username: 'ann' })).status, 400)
  provider.setUsers(undefined)
  assert.match(await (await get(authorizePath())).text(), /value="admin"/)
})
