// Groups and users of one's own, tried with the development provider as the command starts it.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { createClient } from '../kit/client.ts'
import { startInstance } from '../kit/instance.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'

/** The command in a folder with this configuration, which `configure` replaces. */
async function startWithDevUsers(t: TestContext, config: object) {
  const cwd = tempFolder(t)
  const configure = (config: object) =>
    writeFileSync(join(cwd, 'menshen.config.mjs'), `export default ${JSON.stringify(config)}\n`)
  configure(config)
  const menshen = await startInstance({ STORE: 'memory:' }, { cwd })
  t.after(() => menshen.stop())

  async function signedIn(username: string) {
    const client = createClient(menshen.url)
    const { text } = await client.get('/login')
    const [, address = ''] = /data-authorize="([^"]*)"/.exec(text) ?? []
    const answer = await fetch(`${address.replaceAll('&amp;', '&')}&state=abc_idp`, {
      method: 'POST',
      body: new URLSearchParams({ username }),
      redirect: 'manual',
    })
    if (answer.status !== 303) return undefined
    const { pathname, search } = new URL(answer.headers.get('location') ?? '')
    await client.get(pathname + search)
    return client
  }
  const statusFor = async (username: string, path: string) => (await (await signedIn(username))?.get(path))?.status
  return { menshen, configure, statusFor, signedIn }
}

test('a rule for a group admits development users in that group and refuses others with 403', async t => {
  const { statusFor, signedIn } = await startWithDevUsers(t, { rules: [{ path: '/x', groups: ['admins'] }] })
  // There is no application behind: admitted is not found.
  assert.equal(await statusFor('admin', '/x'), 404)
  assert.equal(await statusFor('zhangsan', '/x'), 403)
  const home = await (await signedIn('admin'))?.get('/')
  assert.match(home?.text ?? '', /用户组<\/dt><dd><code>admins<\/code> <code>staff<\/code>/)
})

test('users in the configuration replace the default development users, also after a reload', async t => {
  const rules = [{ path: '/x', groups: ['审计'] }]
  const user = { username: 'ann', nickname: '安', groups: ['审计'] }
  const { menshen, configure, statusFor } = await startWithDevUsers(t, { rules, devProvider: { users: [user] } })
  assert.equal(await statusFor('ann', '/x'), 404)
  assert.equal(await statusFor('admin', '/x'), undefined)
  configure({
    rules,
    devProvider: {
      users: [
        { ...user, groups: [] },
        { username: 'bob', groups: ['审计'] },
      ],
    },
  })
  void menshen.kill('SIGHUP')
  await until(async () => (await statusFor('bob', '/x')) === 404)
  assert.equal(await statusFor('ann', '/x'), 403)
})
