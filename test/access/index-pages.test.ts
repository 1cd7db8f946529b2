// S60: a rule for an index page holds for the folder that is served by it.
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import test from 'node:test'
import express from 'express'
import { admits, createRules } from '../../src/access/rules.ts'
import type { Rule } from '../../src/index.ts'
import { setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'

const EVERYBODY = ['developer', 'common'] as const

const COMMON = { role: 'common', username: 'zhangsan', groups: [] }

function isAdmitted(rules: Rule[], path: string, method = 'GET'): boolean {
  return admits(createRules(rules).ruleFor(method, path, COMMON), COMMON)
}

const guarded = (path: string): Rule => ({ path, roles: ['developer'] })

test('in front of a static file server, a rule for an index page also protects its folder', async t => {
  const folder = tempFolder(t)
  for (const page of ['index.html', 'secret/index.html', 'open/index.html', 'deep/er/index.html']) {
    mkdirSync(dirname(join(folder, page)), { recursive: true })
    writeFileSync(join(folder, page), `the page ${page}`)
  }
  const answer = express().use(express.static(folder, { extensions: ['html'] }))
  const rules = [guarded('/secret/index.html'), guarded('/deep/er/index.html'), guarded('/index.html')]
  const scene = await setUp(t, { config: { rules }, answer })
  const [user, admin] = [await scene.user(), await scene.user('admin')]
  const spellings = [
    '/secret/',
    '/secret',
    '/SECRET/',
    '/secret/index.html',
    '/secret/index',
    '/secret/%20',
    '/secret/.',
  ]
  for (const path of [...spellings, '/deep/er/', '/deep/er', '/', '/index.html', '/?x']) {
    const { status, text } = await user.get(path)
    assert.ok(status === 403 || status === 400, `${path}: ${status}`)
    assert.doesNotMatch(text, /the page/, path)
  }
  for (const path of ['/secret/', '/deep/er/', '/']) assert.match((await admin.get(path)).text, /the page/, path)
  assert.match((await user.get('/open/')).text, /the page open/)
})

test('a rule for any common index page name covers its folder, with or without a suffix, also at the root', () => {
  const names = ['index', 'Index.HTML', 'index.php', 'index.html.en', 'default.aspx', 'default', 'home.html']
  for (const name of [...names, 'welcome.jsp', 'iisstart.htm'])
    for (const folder of ['', '/secret', '/secret/deep']) {
      const rules = [guarded(`${folder}/${name}`)]
      assert.equal(isAdmitted(rules, `${folder}/`), false, `${folder}/ is ${name}`)
      assert.equal(isAdmitted(rules, folder || '/'), false, `${folder} is ${name}`)
    }
})

test('a rule for /default/index also covers /', () => {
  assert.equal(isAdmitted([guarded('/default/index')], '/'), false)
})

test('a rule for an index page leaves other pages open, and a name that only resembles one does not cover its folder', () => {
  const rules = [guarded('/secret/index.html'), guarded('/home-office'), guarded('/indexes'), guarded('/welcome')]
  for (const path of ['/', '/secret/other.html', '/secret/deep/', '/secrets/', '/home'])
    assert.equal(isAdmitted(rules, path), true, path)
})

test('an exact rule for a folder takes precedence over the rule for its index page', () => {
  const rules: Rule[] = [{ path: '/', exact: true, roles: EVERYBODY }, guarded('/index.html')]
  assert.equal(isAdmitted(rules, '/'), true)
  assert.equal(isAdmitted(rules, '/index.html'), false)
})

test('a rule with methods for an index page covers only those methods of its folder', () => {
  const rules: Rule[] = [{ path: '/secret/index.php', methods: ['POST'], roles: ['developer'] }]
  assert.equal(isAdmitted(rules, '/secret/', 'POST'), false)
  assert.equal(isAdmitted(rules, '/secret/', 'GET'), true)
})
