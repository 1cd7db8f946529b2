// `hosts` of the configuration: what is refused, with one sentence that says what to write.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { runRulesCommand } from '../../src/cli/commands/rules.ts'
import { type Config, createMenshen, type MenshenOptions } from '../../src/index.ts'
import { createCommandRunner } from '../kit/command-runner.ts'
import { runMenshen } from '../kit/instance.ts'
import { tempFolder } from '../kit/temp.ts'

const commands = createCommandRunner()
const BASE = {
  baseUrl: 'https://portal.example.com',
  store: 'memory:',
  authUrl: 'https://idp.example.com',
  clientId: 'a',
}

async function problemOf(hosts: unknown, more: object = {}): Promise<string> {
  const options = { ...BASE, clientSecret: 'b'.repeat(32), secret: 's'.repeat(40), hosts, ...more } as MenshenOptions
  try {
    const menshen = await createMenshen({ ...options, log: { info() {}, warn() {}, error() {} } })
    await menshen.close()
    return 'accepted'
  } catch (error) {
    return (error as Error).message
  }
}

test('hosts refuses names that browsers do not send as Host, with a suggestion where possible, and names already in use', async () => {
  for (const [name, sentence] of [
    ['https://wiki.example.com', /has a scheme.*did you mean "wiki\.example\.com"\?/],
    ['wiki.example.com/', /has a path.*did you mean "wiki\.example\.com"\?/],
    ['wiki.example.com/docs', /has a path/],
    ['user@wiki.example.com', /has a user/],
    ['Wiki.example.com', /has capitals.*did you mean "wiki\.example\.com"\?/],
    ['wiki.example.com.', /ends with a dot.*did you mean "wiki\.example\.com"\?/],
    ['*.example.com', /looks like a pattern/],
    ['维基.example.com', /is not in the form that browsers send.*did you mean "xn--[\w-]+\.example\.com"\?/],
    ['wiki example.com', /is not in the form that browsers send/],
    ['wiki..example.com', /is not the name of a host/],
    ['wiki.example.com:0', /is not the name of a host/],
    ['wiki.example.com:99999', /is not in the form that browsers send/],
    ['wiki.example.com:', /is not the name of a host/],
    ['', /is not the name of a host/],
    ['127.1', /is not in the form that browsers send.*did you mean "127\.0\.0\.1"\?/],
    ['portal.example.com', /^baseUrl: createMenshen: hosts\.portal\.example\.com.*: this is the host of BASE_URL/],
    ['portal.example.com:443', /^baseUrl: createMenshen: hosts\.portal\.example\.com.*: this is the host of BASE_URL/],
    ['portal.example.com:8443', /cookies are shared by all ports; expected another name/],
    ['wiki.example.com:443', /omit the default port of https; expected "wiki\.example\.com"/],
  ] as const) {
    const problem = await problemOf({ [name]: {} })
    assert.match(problem, sentence, name)
    assert.equal(problem.split('\n').length, 1, problem)
  }
  assert.match(
    await problemOf({ 'a.test': {}, 'a.test:8443': {} }),
    /hosts\.a\.test:8443: has the same name as hosts\.a\.test/,
  )
})

test('hosts accepts names in the form that browsers send', async () => {
  const names = [
    'wiki.example.com',
    'xn--fiqs8s.example.com',
    'wiki.example.com:8443',
    '10.0.0.7',
    'a',
    'under_score.test',
  ]
  for (const name of names) assert.equal(await problemOf({ [name]: {} }), 'accepted', name)
})

test('the error for a mistake in the upstream or rules of a host names the host', async () => {
  const at = (host: unknown) => problemOf({ 'wiki.example.com': host })
  assert.match(
    await at({ rules: [{ path: '/a*', public: true }] }),
    /hosts\.wiki\.example\.com\.rules\.0\.path: "\/a\*" looks like a pattern/,
  )
  assert.match(
    await at({ rules: [{ path: '/', roles: ['boss'] }] }),
    /hosts\.wiki\.example\.com\.rules\.0\.roles\.0: no row in roles/,
  )
  assert.match(
    await at({ rules: [{ path: '/login', public: true }] }),
    /hosts\.wiki\.example\.com\.rules\.0\.path: this path belongs to Menshen/,
  )
  assert.match(
    await at({ rules: [{ path: '/', roles: ['*'], bearer: true }] }),
    /hosts\.wiki\.example\.com\.rules\.0 has bearer/,
  )
  assert.match(
    await at({ upstreams: { '/logout': 'http://127.0.0.1:1' } }),
    /hosts\.wiki\.example\.com\.upstreams\.\/logout: this path belongs to Menshen/,
  )
  assert.match(await at({ upstream: 'ftp://x' }), /hosts\.wiki\.example\.com\.upstream: expected/)
  assert.match(
    await at({ upstream: 'https://portal.example.com' }),
    /hosts\.wiki\.example\.com\.upstream is .* which is Menshen itself/,
  )
  assert.match(
    await at({ upstream: 'https://wiki.example.com' }),
    /hosts\.wiki\.example\.com\.upstream is .* which is Menshen itself/,
  )
  assert.match(
    await at({ upstream: 'http://127.0.0.1:1', upstreams: { '/': 'http://127.0.0.1:2' } }),
    /expected one of them/,
  )
  assert.match(
    await at({ upstream: { url: 'http://127.0.0.1:1', stripPrefix: true } }),
    /hosts\.wiki\.example\.com\.upstream\.stripPrefix/,
  )
  assert.match(await at({ upsteam: 'http://127.0.0.1:1' }), /did you mean "?upstream"?/)
  assert.match(await at('http://127.0.0.1:1'), /hosts\.wiki\.example\.com: expected an object/)
  assert.match(await problemOf(['wiki.example.com']), /hosts: expected an object/)
})

test('menshen check and a start refuse a configuration that lists the host of BASE_URL in hosts', async t => {
  const cwd = tempFolder(t)
  writeFileSync(join(cwd, 'menshen.config.js'), `export default { hosts: { 'localhost:3000': {} } }`)
  const env = { BASE_URL: 'http://localhost:3000', PORT: '3000' }
  for (const { code, output } of [
    await commands.run(env, { args: ['check'], cwd }),
    await runMenshen({ ...env, STORE: 'memory:' }, { cwd }),
  ]) {
    assert.equal(code, 1)
    assert.match(output, /menshen\.config\.js: hosts\.localhost:3000: this is the host of BASE_URL/)
  }
})

test('rules check and rules test evaluate the rules of a host and reject an unknown host', t => {
  const hosts: Config['hosts'] = { 'wiki.test': { rules: [{ path: '/', groups: ['staff'] }] } }
  const run = (...args: string[]) =>
    runRulesCommand(args, [{ path: '/', public: true }], undefined, undefined, undefined, undefined, undefined, hosts)
  assert.match(run('check', '/x').lines.join(), /^GET \/x as visitor: admitted/)
  assert.match(
    run('check', '/x', '--host', 'wiki.test').lines.join(),
    /^GET wiki\.test\/x as visitor: login, by the rule .*staff/,
  )
  assert.match(run('check', '/x', '--host', 'wiki.test', '--group', 'staff').lines.join(), /admitted/)
  assert.throws(
    () => run('check', '/x', '--host', 'other.test'),
    /There is no host "other\.test"; expected one of wiki\.test\./,
  )
  const file = join(tempFolder(t), 'rules.test.json')
  writeFileSync(
    file,
    JSON.stringify([
      { path: '/x', expect: 'admitted' },
      { path: '/x', host: 'wiki.test', expect: 'login' },
    ]),
  )
  assert.deepEqual(run('test', file), { lines: ['2 passed, 0 failed'], ok: true })
  writeFileSync(file, JSON.stringify([{ path: '/x', host: 'wiki.tset', expect: 'login' }]))
  assert.throws(() => run('test', file), /There is no host "wiki\.tset"/)
})
