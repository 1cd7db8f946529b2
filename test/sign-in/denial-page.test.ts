// The page of somebody who is not allowed: what kind of permission is missing, and to a developer the rule that decided.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Config } from '../../src/index.ts'
import { setUp } from '../kit/set-up.ts'

const CONFIG: Config = {
  roles: [
    { role: 'developer', username: ['admin'] },
    { role: 'auditor', username: ['wangwu'] },
  ],
  rules: [
    { path: '/roles', roles: ['auditor'] },
    { path: '/groups', groups: ['CANARY-group'] },
    { path: '/users', users: ['CANARY-user'] },
    { path: '/all', roles: ['auditor'], groups: ['CANARY-group'], users: ['CANARY-user'] },
  ],
}

test('the 403 page says whether access is limited by role, group or user, and names none of them', async t => {
  const scene = await setUp(t, { config: CONFIG, env: { PAGE_LANGUAGE: 'auto' } })
  const user = await scene.user('zhangsan')
  const rows: [path: string, chinese: string, english: string][] = [
    ['/roles', '仅对特定的角色开放', 'Only certain roles have access'],
    ['/groups', '仅对特定的用户组开放', 'Only certain groups have access'],
    ['/users', '仅对特定的用户开放', 'Only certain users have access'],
    ['/all', '仅对特定的角色、用户组或用户开放', 'Only certain roles, groups, or users have access'],
    ['/_menshen/console', '仅对特定的角色开放', 'Only certain roles have access'],
  ]
  for (const [path, chinese, english] of rows) {
    const page = await user.get(path)
    assert.equal(page.status, 403, path)
    assert.ok(page.text.includes(`<dt>原因</dt><dd>${chinese}</dd>`), page.text)
    const translated = await user.get(path, { headers: { 'accept-language': 'en' } })
    assert.ok(translated.text.includes(`<dt>Reason</dt><dd>${english}</dd>`), translated.text)
    assert.doesNotMatch(page.text, /CANARY|auditor|生效的规则/)
  }
})

test('the 403 page shows a developer the rule that denied access, for every interpretation of the path', async t => {
  const scene = await setUp(t, { config: CONFIG })
  const admin = await scene.user('admin')
  for (const path of ['/all/x', '/All/x']) {
    const { status, text } = await admin.get(path)
    assert.equal(status, 403, path)
    const shown = text.replaceAll('&quot;', '"')
    assert.ok(shown.includes(`<code>${JSON.stringify(CONFIG.rules?.[3])}</code>`), shown)
    assert.ok(shown.includes('href="/_menshen/console/rules"'))
  }
})
