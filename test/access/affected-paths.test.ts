// The paths that a request acts on besides the one that it names: a Destination, and what is below a path.

import assert from 'node:assert/strict'
import test from 'node:test'
import { decideRequest } from '../../src/access/affected-paths.ts'
import type { Subject } from '../../src/access/roles.ts'
import { admits, createRules } from '../../src/access/rules.ts'
import { runRulesCommand } from '../../src/cli/commands/rules.ts'
import type { Rule } from '../../src/index.ts'
import { setUp } from '../kit/set-up.ts'

const COMMON: Subject = { role: 'common', groups: [], username: 'ann' }
const DEVELOPER: Subject = { role: 'developer', groups: [], username: 'admin' }
const BASE_URL = 'https://app.example.com'
const RULES: Rule[] = [
  { path: '/files', roles: ['*'] },
  { path: '/files/team/secret', roles: ['developer'] },
  { path: '/open', roles: ['*'] },
  { path: '/only', roles: ['*'], exact: true },
  { path: '/read', roles: ['*'] },
  { path: '/read/locked', methods: ['PUT', 'DELETE'], roles: ['developer'] },
]

type Headers = Record<string, string>

/** What happens to a request: admitted, refused, or why its Destination cannot be judged. */
function outcome(who: Subject | undefined, method: string, path: string, headers: Headers = {}, rules = RULES): string {
  const decision = decideRequest(createRules(rules), { method, path, headers }, who, BASE_URL)
  return decision.problem ?? (admits(decision.rule, who) ? 'admitted' : 'refused')
}

test('a method that acts on a tree needs the permission of every rule below the path', () => {
  for (const method of ['COPY', 'MOVE', 'DELETE', 'PROPFIND', 'LOCK', 'SEARCH', 'BIND', 'REBIND', 'UNBIND']) {
    for (const path of [
      '/files',
      '/files/',
      '/files/team',
      '/',
      '/FILES',
      '/files;v=1',
      '/files%2Fteam',
      '/files//team',
      '/files%3Fx/y',
    ])
      assert.equal(outcome(COMMON, method, path), 'refused', `${method} ${path}`)
    for (const path of ['/files', '/files/team/', '/FILES', '/files//team'])
      assert.equal(outcome(DEVELOPER, method, path), 'admitted', `${method} ${path}`)
    for (const path of ['/files/other', '/files/team/x', '/open', '/open/a/b', '/files/index.html'])
      assert.equal(outcome(COMMON, method, path), 'admitted', `${method} ${path}`)
  }
  for (const method of ['GET', 'HEAD', 'OPTIONS', 'PUT', 'PROPPATCH', 'MKCOL', 'UNLOCK', 'REPORT'])
    assert.equal(outcome(COMMON, method, '/files'), 'admitted', method)
})

test('Depth: 0 limits PROPFIND, LOCK and COPY to the path, and no other method', () => {
  for (const method of ['PROPFIND', 'LOCK', 'COPY'])
    assert.equal(outcome(COMMON, method, '/files', { depth: '0' }), 'admitted', method)
  for (const method of ['MOVE', 'DELETE', 'SEARCH', 'UNBIND'])
    assert.equal(outcome(COMMON, method, '/files', { depth: '0' }), 'refused', method)
  for (const depth of ['1', 'infinity', 'Infinity', '0, 0', '00', '', '0x'])
    assert.equal(outcome(COMMON, 'PROPFIND', '/files', { depth }), 'refused', depth)
  assert.equal(outcome(COMMON, 'REPORT', '/files', { depth: '1' }), 'refused')
  assert.equal(outcome(COMMON, 'REPORT', '/files', { depth: '0' }), 'admitted')
})

test('a Depth header that Connection names does not limit a request and does not reach the application', async t => {
  const headers = { depth: '0', connection: 'keep-alive, Depth' }
  assert.equal(outcome(COMMON, 'PROPFIND', '/files', headers), 'refused')
  const { user, upstream } = await setUp(t, { config: { rules: RULES } })
  const client = await user()
  for (const [more, depth] of [
    [{ depth: '0' }, '0'],
    [headers, undefined],
  ] as const) {
    assert.equal((await client.request({ method: 'PROPFIND', path: '/open', headers: more })).status, 200)
    assert.equal(upstream.last().headers.depth, depth)
  }
  const before = upstream.received.length
  assert.equal((await client.request({ method: 'PROPFIND', path: '/files', headers })).status, 403)
  assert.equal(upstream.received.length, before)
})

test('only rules below the path that cover the method are required, and an exact rule does not admit to paths below it', () => {
  assert.equal(outcome(COMMON, 'DELETE', '/read'), 'refused')
  assert.equal(outcome(COMMON, 'PROPFIND', '/read'), 'admitted')
  const exact: Rule[] = [
    { path: '/', roles: ['developer'] },
    { path: '/only', roles: ['*'], exact: true },
  ]
  assert.equal(outcome(COMMON, 'GET', '/only', {}, exact), 'admitted')
  assert.equal(outcome(COMMON, 'DELETE', '/only', {}, exact), 'refused')
  assert.equal(outcome(COMMON, 'PROPFIND', '/only', { depth: '0' }, exact), 'admitted')
  const narrower: Rule[] = [
    { path: '/a/b', roles: ['developer'] },
    { path: '/a/b', methods: ['COPY'], roles: ['*'] },
  ]
  assert.equal(outcome(COMMON, 'COPY', '/a', {}, narrower), 'admitted')
})

test('a method that acts on everything below / needs no permission for the pages of Menshen', () => {
  assert.equal(outcome(COMMON, 'PROPFIND', '/', {}, []), 'admitted')
  assert.equal(outcome(undefined, 'PROPFIND', '/', {}, [{ path: '/', public: true }]), 'admitted')
})

test('PROPFIND with Depth: 1 on a public folder is refused to a visitor if a path below it is protected', () => {
  const rules: Rule[] = [
    { path: '/dav', public: true },
    { path: '/dav/staff', roles: ['*'] },
  ]
  assert.equal(outcome(undefined, 'PROPFIND', '/dav', { depth: '0' }, rules), 'admitted')
  assert.equal(outcome(undefined, 'PROPFIND', '/dav', { depth: '1' }, rules), 'refused')
})

test('a Destination is judged like the path, whatever its form and encoding', () => {
  const secret = [
    '/files/team/secret',
    '/files/team/secret/x',
    '/files/team/%73ecret/x',
    '/files/team%2Fsecret',
    '/files/team//secret',
  ]
  const forms = ['', 'https://app.example.com', 'http://APP.example.com', 'https://app.example.com:443']
  for (const method of ['COPY', 'MOVE'])
    for (const form of forms) {
      for (const path of [...secret, '/files/team', '/files', '/'])
        assert.equal(outcome(COMMON, method, '/open/a', { destination: form + path }), 'refused', form + path)
      assert.equal(outcome(COMMON, method, '/open/a', { destination: `${form}/open/b` }), 'admitted', form)
      assert.equal(outcome(DEVELOPER, method, '/open/a', { destination: `${form}/files/team` }), 'admitted', form)
    }
})

test('a COPY with Depth: 0 needs permission for everything below its Destination unless Overwrite is F', () => {
  const onto = (more: Headers) => outcome(COMMON, 'COPY', '/open/a', { destination: '/files', depth: '0', ...more })
  assert.equal(onto({}), 'refused')
  assert.equal(onto({ overwrite: 'T' }), 'refused')
  assert.equal(onto({ overwrite: 'F', connection: 'overwrite' }), 'refused')
  assert.equal(onto({ overwrite: 'F' }), 'admitted')
})

test('a Destination that is malformed, at another host or upstream is refused before the application sees it, and so is New-uri', async t => {
  const rows: [destination: string, problem: string][] = [
    ['', 'not_an_address'],
    ['b', 'not_an_address'],
    ['/open/b, /open/c', 'forbidden_character'],
    ['https://app.example.com/open/b, https://app.example.com/x', 'forbidden_character'],
    ['/open/b?x=/files', 'not_an_address'],
    ['/open/b#x', 'forbidden_character'],
    ['//app.example.com/open/b', 'no_single_slash_at_start'],
    ['https:/open/b', 'not_an_address'],
    ['ftp://app.example.com/open/b', 'not_an_address'],
    ['https://user@app.example.com/open/b', 'not_an_address'],
    ['https://app.example.com\\open', 'not_an_address'],
    ['/open/../files/team/secret', 'dot_segment'],
    ['https://app.example.com/open/%2e%2e/files', 'dot_segment'],
    ['/open/%zz', 'broken_encoding'],
    [`/${'x'.repeat(4096)}`, 'too_long'],
    ['https://evil.example/open/b', 'other_host'],
    ['https://app.example.com:8443/open/b', 'other_host'],
    ['https://app.example.com.evil.example/open/b', 'other_host'],
    ['/_menshen/account', 'other_upstream'],
  ]
  for (const [destination, problem] of rows)
    assert.equal(outcome(DEVELOPER, 'MOVE', '/open/a', { destination }), problem, destination)
  assert.equal(outcome(COMMON, 'COPY', '/open/a', { 'new-uri': '/open/b' }), 'new_uri')
  assert.equal(outcome(COMMON, 'COPY', '/open/a', { destination: '/open/b', new_uri: '/files' }), 'new_uri')
  assert.equal(outcome(COMMON, 'POST', '/open/a', { destination: 'anything else' }), 'admitted')
  const decide = (destination: string) =>
    decideRequest(
      createRules([], ['/a', '/b']),
      { method: 'COPY', path: '/a/x', headers: { destination } },
      COMMON,
      BASE_URL,
    )
  assert.equal(decide('/b/x').problem, 'other_upstream')
  assert.equal(decide('/A/x').problem, undefined)

  const { user, upstream, baseUrl } = await setUp(t, { config: { rules: RULES } })
  const developer = await user('admin')
  const move = async (headers: Headers) =>
    (await developer.request({ method: 'MOVE', path: '/open/a', headers })).status
  const ours = (destination: string) => destination.replace(BASE_URL, baseUrl)
  for (const [destination] of rows) assert.equal(await move({ destination: ours(destination) }), 400, destination)
  assert.equal(await move({ 'new-uri': '/open/b' }), 400)
  assert.deepEqual(upstream.received, [])
  assert.equal(await move({ destination: ours(`${BASE_URL}/open/b`) }), 200)
  assert.equal(upstream.received.length, 1)
})

test('a request must meet the conditions of the rules for all paths that it acts on', () => {
  const rules: Rule[] = [
    { path: '/files/vault', roles: ['*'], maxAge: 60 },
    { path: '/inbox', roles: ['*'], networks: ['10.0.0.0/8'] },
  ]
  const decide = (headers: Headers) =>
    decideRequest(createRules(rules), { method: 'COPY', path: '/files', headers }, COMMON, BASE_URL)
  const paths = (headers: Headers) => decide(headers).conditions?.map(({ rule }) => rule.path)
  assert.deepEqual(paths({ destination: '/inbox/x' }), ['/files/vault', '/inbox'])
  assert.deepEqual(paths({ destination: '/x', depth: '0', overwrite: 'F' }), undefined)
})

test('menshen rules check explains its decision about methods that act on several paths', () => {
  const check = (...args: string[]) => runRulesCommand(['check', ...args], RULES).lines.join('\n')
  assert.match(
    check('/files', '--method', 'PROPFIND', '--role', 'common'),
    /^PROPFIND \/files as common: refused, by the rule \{"path":"\/files\/team\/secret".*\}, because the request also affects everything below the path$/,
  )
  assert.match(check('/files', '--method', 'propfind', '--depth', '0', '--role', 'common'), /: admitted, /)
  assert.match(
    check('/open/a', '--method', 'COPY', '--destination', '/files/team/secret/x', '--role', 'common'),
    /: refused, by the rule .*, for the destination \/files\/team\/secret\/x$/,
  )
  assert.match(
    check('/open/a', '--method', 'MOVE', '--destination', '/open/%2e%2e/x', '--role', 'common'),
    /: bad_request, because the destination cannot be checked: it contains a dot segment$/,
  )
  assert.throws(() => check('/files', '--depth', '2'), /"2" is not a depth; expected 0, 1 or infinity\./)
})
