// `menshen rules`, and a configuration file that stops the start with what is wrong and how to put it right.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { runRulesCommand } from '../../../src/cli/commands/rules.ts'
import { commandHelpText } from '../../../src/cli/usage.ts'
import { loadConfiguration } from '../../../src/config/load.ts'
import { MenshenError, type Rule } from '../../../src/index.ts'
import { createCommandRunner } from '../../kit/command-runner.ts'
import { freePort } from '../../kit/free-port.ts'
import { runMenshen } from '../../kit/instance.ts'
import { tempFolder } from '../../kit/temp.ts'

const commands = createCommandRunner()

const CONFIG = `import { defineConfig } from 'menshen'

export default defineConfig({
  rules: [
    { path: '/internal', roles: ['developer'] },
    { path: '/public', public: true },
    { path: '/forms', methods: ['POST'], roles: ['developer'] },
    { path: '/管理', roles: ['developer'] },
    { path: '/x/trial', roles: ['developer'], shadow: true },
  ],
})
`

const loadConfig = async (folder: string) => (await loadConfiguration({ environment: {}, folder })).config

function folderWith(t: TestContext, config: string): string {
  const folder = tempFolder(t)
  writeFileSync(join(folder, 'menshen.config.ts'), config)
  return folder
}

test('rules check prints the decision for a request and the rule behind it', async t => {
  const cwd = folderWith(t, CONFIG)
  const rows: [args: string, expected: RegExp][] = [
    ['/internal/x --role common', /^GET \/internal\/x as common: refused, by the rule \{"path":"\/internal"/],
    ['/internal?x=/public --role common', /: refused, by the rule \{"path":"\/internal"/],
    ['/internal --role developer', /: admitted, by the rule \{"path":"\/internal"/],
    ['/internal', /as visitor: login, /],
    ['/public', /as visitor: admitted, by the rule \{"path":"\/public","public":true\}/],
    ['/forms --role common', /: admitted, by the rule \{"path":"\/"/],
    ['/forms --role common --method post', /^POST .*: refused, by the rule \{"path":"\/forms"/],
    ['/管理 --role common', /: refused, by the rule \{"path":"\/管理"/],
    ['/x/%2e%2e/internal --role common', /: bad_request, because the path is ambiguous: it contains a dot segment$/],
    ['/x/%zz --role common', /: bad_request, because the path is ambiguous: its percent-encoding is broken$/],
    ['/x%2Fy;z//%5C%252F --role common', /: admitted, by the rule \{"path":"\/"/],
    [
      '/internal%2Fx --role common',
      /: refused, by the rule \{"path":"\/internal".*, because an application could read it as/,
    ],
    ['/public;v=1', /: login, by the rule \{"path":"\/","roles":\["\*"\]\}$/],
    ['/public/a%2Fb;v=1', /as visitor: admitted, by the rule \{"path":"\/public"/],
    ['/login', /: own, because Menshen handles it itself/],
    ['/_menshen/console --role common', /: refused, by the rule/],
    ['/x --role common', /^[^;]*: admitted, by the rule \{"path":"\/","roles":\["\*"\]\}$/],
    [
      '/internal.json --role common',
      /: refused, by the rule \{"path":"\/internal",.*\}, because an application could read it as \/internal$/,
    ],
    [
      '/x/%EF%BD%94rial --role common',
      /: admitted, .*; shadow: refused, by the rule \{"path":"\/x\/trial".*"shadow":true\}$/,
    ],
    ['/x/trial --role developer', /: admitted, .*; shadow: admitted, by the rule/],
  ]
  const { rules = [] } = await loadConfig(cwd)
  for (const [args, expected] of rows) {
    const { lines, ok } = runRulesCommand(['check', ...args.split(' ')], rules)
    assert.match(lines.join('\n'), expected, args)
    assert.ok(ok)
  }
  const args = ['rules', 'check', '/internal', '--role', 'common']
  const { code, output } = await commands.run({}, { cwd, args })
  assert.equal(output, 'GET /internal as common: refused, by the rule {"path":"/internal","roles":["developer"]}')
  assert.equal(code, 0)
})

test('rules check gives a machine the groups of its row in machines', () => {
  const rules: Rule[] = [{ path: '/api', groups: ['robots'], keys: true }]
  const machines = [{ name: 'backup', keySha256: 'a'.repeat(64), groups: ['robots'] }]
  const check = (user: string) =>
    runRulesCommand(
      ['check', '/api', '--user', user],
      ...([rules, undefined, undefined, undefined, undefined, undefined, undefined, machines] as const),
    ).lines.join()
  assert.match(check('machine:backup'), / user machine:backup, in robots: admitted, /)
  assert.match(check('machine:other'), /: refused, /)
})

test('without a role, rules check and rules test use the role that the configuration grants to the user or groups', async t => {
  const rules = [
    { path: '/admin', roles: ['developer'] },
    { path: '/money', roles: ['cashier'] },
  ]
  const roles = [{ role: 'cashier', groups: ['finance'] }]
  const check = (given: typeof roles | undefined, ...args: string[]) =>
    runRulesCommand(['check', ...args], rules, given).lines.join('\n')
  assert.match(
    check(undefined, '/admin/x', '--user', 'admin'),
    /^GET \/admin\/x as developer \(from roles\), user admin: admitted, /,
  )
  assert.match(check(undefined, '/admin/x', '--user', 'ann'), / as common \(from roles\), user ann: refused, /)
  assert.match(check(undefined, '/admin/x', '--user', 'admin', '--role', 'common'), / as common, user admin: refused, /)
  assert.match(check(roles, '/money', '--group', 'finance'), / as cashier \(from roles\), in finance: admitted, /)
  assert.match(check(roles, '/money'), / as visitor: login, /)
  const partners = [{ role: 'cashier', provider: ['partners'], groups: ['finance'] }]
  const { lines } = runRulesCommand(
    ['check', '/money', '--group', 'finance'],
    rules,
    partners,
    undefined,
    undefined,
    'staff',
  )
  assert.match(lines.join('\n'), / as common \(from roles\)/)
  const file = join(tempFolder(t), 'table.json')
  writeFileSync(
    file,
    JSON.stringify([
      { path: '/admin', user: 'admin', expect: 'admitted' },
      { path: '/admin', user: 'admin', role: 'common', expect: 'refused' },
      { path: '/admin', expect: 'login' },
    ]),
  )
  assert.deepEqual(runRulesCommand(['test', file], rules).lines, ['3 passed, 0 failed'])
})

test('rules test names every mistake in a table and suggests the name that was probably meant', t => {
  const file = join(tempFolder(t), 'table.json')
  const said = (table: unknown) => {
    writeFileSync(file, JSON.stringify(table))
    try {
      return runRulesCommand(['test', file], []).lines
    } catch (error) {
      return (error as Error).message.replaceAll(`${file} cannot be used: `, '').split('\n')
    }
  }
  assert.deepEqual(
    said([
      { path: '/x', expect: 'admited', usr: 'a', xyz: 1 },
      { expect: 'login', path: 7 },
    ]),
    [
      'case 1, expect: expected one of admitted, refused, login, step_up, bad_request, uri_too_long, own; did you mean admitted?',
      'case 1: there is no "usr"; did you mean user?',
      'case 1: there is no "xyz"; expected one of path, role, groups, user, method, from, at, destination, depth, authAge, acr, amr, host, expect.',
      'case 2, path: expected text, not a number.',
    ],
  )
  assert.deepEqual(said({ path: '/x' }), ['expected a list, not an object.'])
})

test('rules test lists the failing rows and exits with 1; invalid tables, roles, paths and methods are rejected', async t => {
  const cwd = folderWith(t, CONFIG)
  const table = [
    { path: '/internal', role: 'common', expect: 'refused' },
    { path: '/public', expect: 'admitted' },
    { path: '/anything', expect: 'login' },
  ]
  writeFileSync(join(cwd, 'good.json'), JSON.stringify(table))
  writeFileSync(
    join(cwd, 'bad.json'),
    JSON.stringify([...table, { path: '/internal', role: 'common', expect: 'admitted' }]),
  )
  writeFileSync(join(cwd, 'broken.json'), JSON.stringify([{ path: '/internal', role: 'boss', expect: 'admitted' }]))
  const { rules = [] } = await loadConfig(cwd)
  const run = (...args: string[]) => runRulesCommand(args, rules)
  assert.deepEqual(run('test', join(cwd, 'good.json')), { ok: true, lines: ['3 passed, 0 failed'] })
  const usage = /menshen rules check PATH/
  assert.throws(() => run('test', join(cwd, 'broken.json')), /broken\.json cannot be used: There is no role "boss"/)
  assert.throws(() => run('test', join(cwd, 'missing.json')), /missing\.json cannot be used: ENOENT/)
  writeFileSync(join(cwd, 'odd.json'), '[{"path":"/","expect":"admited"}]')
  assert.throws(() => run('test', join(cwd, 'odd.json')), /odd\.json cannot be used: case 1, expect: [^\n]*$/)
  assert.throws(() => run('check', '/x', '--role', 'boss'), /^UsageError: There is no role "boss"; expected one of/)
  for (const [args, sentence] of [
    [['check', 'fin'], /^UsageError: A path starts with \/, but "fin" does not; did you mean "\/fin"\?$/],
    [['check', 'https://app.example.com/fin?x'], /; did you mean "\/fin"\?$/],
    [['check', '/x', '--method', 'PSOT'], /^UsageError: There is no method "PSOT"; did you mean POST\?$/],
    [['check', '/x', '--method', 'fetch it'], /^UsageError: There is no method "FETCH IT"; expected an HTTP method/],
  ] as const)
    assert.throws(() => run(...args), sentence)
  assert.ok(run('check', '/x', '--method', 'propfind').ok)
  writeFileSync(join(cwd, 'no-path.json'), '[{"path":"fin","expect":"admitted"}]')
  assert.throws(() => run('test', join(cwd, 'no-path.json')), /case 1, path: A path starts with \/, but "fin" does not/)
  writeFileSync(join(cwd, 'no-method.json'), '[{"path":"/fin","method":"GTE","expect":"admitted"}]')
  assert.throws(
    () => run('test', join(cwd, 'no-method.json')),
    /case 1, method: There is no method "GTE"; did you mean GET\?/,
  )
  for (const expectation of ['admitted', 'refused', 'login', 'bad_request', 'own'])
    assert.ok(commandHelpText('rules').includes(`"${expectation}"`), expectation)
  assert.throws(() => run('chek', '/x'), /Unexpected argument "chek"; did you mean check\? Expected menshen rules/)
  assert.throws(() => run('check', '/x', '--colour'), usage)
  assert.throws(() => run('check'), usage)
  const { code, output } = await commands.run({}, { cwd, args: ['rules', 'test', 'bad.json'] })
  assert.equal(code, 1)
  assert.match(output, /^expected admitted: GET \/internal as common: refused, by the rule .*\n3 passed, 1 failed$/)
})

test('an invalid configuration stops the start with an error that names the file, the rule and the expected value', async t => {
  const rows: [config: string, expected: RegExp][] = [
    ["rules: [{ path: 'reports', public: true }]", /rules\.0\.path: expected a plain path that starts with \//],
    ["rules: [{ path: '/a%2fb', public: true }]", /rules\.0\.path: expected a plain path/],
    ["rules: [{ path: '/a/../b', public: true }]", /rules\.0\.path: expected a path without empty or dot segments/],
    ["rules: [{ path: '/login', public: true }]", /rules\.0\.path: this path belongs to Menshen; leave it out/],
    [
      "rules: [{ path: '/a', public: true }, { path: '/b', roles: ['boss'] }]",
      /rules\.1\.roles\.0: .*"developer", "common"/,
    ],
    ["rules: [{ path: '/a', roles: [] }]", /rules\.0\.roles: expected at least one role: developer, common/],
    ["rules: [{ path: '/a' }]", /rules\.0: expected either roles, groups or users, or public: true/],
    [
      "rules: [{ path: '/a', public: true, roles: ['common'] }]",
      /rules\.0: has both public: true and roles, groups or users; expected either roles, groups or users, or public: true/,
    ],
    ["rules: [{ path: '/a', public: true, methods: ['get'] }]", /rules\.0\.methods\.0: expected methods in capitals/],
    ["rules: [{ path: '/a', public: true, methods: ['HEAD'] }]", /rules\.0\.methods: HEAD is treated as GET; use GET/],
    [
      "rules: [{ path: '/a', public: true }, { path: '/b', public: true }, { path: '/a', roles: ['common'] }]",
      /rules\.2: rules\.0 already covers \/a; expected one rule, or different methods\.$/,
    ],
    [
      "rules: [{ path: '/a', public: true, methods: ['GET', 'PUT'] }, { path: '/a', roles: ['common'], methods: ['PUT'] }]",
      /rules\.1: rules\.0 already covers PUT on \/a; expected/,
    ],
    ["upstreams: { '/a': '127.0.0.1:8080' }", /upstreams\.\/a: expected an http, https or h2c address .*"http:\/\/127/],
    ["upstreams: { '/a/': 'http://127.0.0.1:1' }", /upstreams\.\/a\/: .*no trailing slash: a prefix covers/],
    ["rules: [{ path: '/a', public: true, role: 'x' }]", /rules\.0: there is no "role"; did you mean roles\?/],
    ['rule: []', /the default export: there is no "rule"; did you mean rules\?/],
    ["upstreams: { '/api': 'ftp://a' }", /upstreams\.\/api: /],
    ['rules: [', /cannot be loaded: /],
  ]
  for (const [inside, expected] of rows) {
    const cwd = folderWith(t, `export default { ${inside} }\n`)
    const error = await loadConfig(cwd).catch((error: MenshenError) => error)
    assert.ok(error instanceof MenshenError, inside)
    assert.match(error.message, expected)
    assert.ok(error.message.startsWith(join(cwd, 'menshen.config.ts')), error.message)
  }
  const cwd = folderWith(t, "export default { rules: [{ path: '/a' }] }\n")
  const ports = { PORT: String(await freePort()), DEV_PROVIDER_PORT: String(await freePort()) }
  const { code, output } = await runMenshen(ports, { cwd })
  assert.equal(code, 1)
  assert.equal(
    output,
    `${join(cwd, 'menshen.config.ts')}: rules.0: expected either roles, groups or users, or public: true.`,
  )
})

test('rules for the same path can coexist if they differ in exact, methods or shadow', async t => {
  const rules = `rules: [
    { path: '/a', public: true },
    { path: '/a', exact: true, public: true },
    { path: '/a', methods: ['GET'], public: true },
    { path: '/a', methods: ['PUT', 'POST'], public: true },
    { path: '/a', roles: ['common'], shadow: true },
  ]`
  assert.equal((await loadConfig(folderWith(t, `export default { ${rules} }\n`))).rules?.length, 5)
})

test('rules check and rules test evaluate groups, users and roles from the configuration', async t => {
  const cwd = folderWith(
    t,
    `export default {
      roles: [{ role: 'auditor', groups: ['audit'] }],
      rules: [{ path: '/finance', roles: ['auditor'], groups: ['cfo'], users: ['lisi'] }],
    }\n`,
  )
  const rule = 'by the rule {"path":"/finance","roles":["auditor"],"groups":["cfo"],"users":["lisi"]}'
  const rows: [args: string[], line: string][] = [
    [[], `as visitor: login, ${rule}`],
    [['--role', 'common'], `as common: refused, ${rule}`],
    [['--role', 'auditor'], `as auditor: admitted, ${rule}`],
    [['--group', 'x', '--group', 'cfo'], `as common (from roles), in x and cfo: admitted, ${rule}`],
    [['--group', 'x'], `as common (from roles), in x: refused, ${rule}`],
    [['--user', 'lisi'], `as common (from roles), user lisi: admitted, ${rule}`],
    [['--user', 'cfo', '--role', 'developer'], `as developer, user cfo: refused, ${rule}`],
  ]
  const { rules = [], roles } = await loadConfig(cwd)
  for (const [args, line] of rows)
    assert.deepEqual(runRulesCommand(['check', '/finance', ...args], rules, roles).lines, [`GET /finance ${line}`])
  const table = [
    { path: '/finance', groups: ['cfo'], expect: 'admitted' },
    { path: '/finance', user: 'lisi', expect: 'admitted' },
    { path: '/finance', role: 'auditor', expect: 'admitted' },
    { path: '/finance', user: 'wangwu', groups: ['x'], expect: 'refused' },
  ]
  writeFileSync(join(cwd, 'table.json'), JSON.stringify(table))
  const { code, output } = await commands.run({}, { cwd, args: ['rules', 'test', 'table.json'] })
  assert.deepEqual([code, output], [0, '4 passed, 0 failed'])
  const odd = await commands.run({}, { cwd, args: ['rules', 'check', '/finance', '--role', 'auditer'] })
  assert.equal(odd.code, 2)
  assert.match(odd.output, /^There is no role "auditer"; expected one of visitor, developer, common, auditor\./)
})

test('rules check reports a path that could belong to two upstreams as refused', () => {
  const check = (path: string) =>
    runRulesCommand(['check', path, '--role', 'developer'], [], undefined, undefined, undefined, undefined, ['/api'])
  const [line = ''] = check('/api%2Fx').lines
  assert.match(line, /: refused, because an application could read it as \/api\/x, which belongs to another upstream$/)
  assert.match(check('/api/a%2Fx').lines.join(), /: admitted, /)
})

const CONDITIONS: Rule[] = [
  { path: '/office', roles: ['*'], networks: ['10.0.0.0/8', '::1'] },
  { path: '/desk', roles: ['*'], hours: { days: ['mon'], from: '08:00', to: '20:00', zone: 'Asia/Shanghai' } },
  { path: '/pay', roles: ['*'], maxAge: 300 },
  { path: '/vault', roles: ['*'], acr: ['gold', 'platinum'], amr: ['mfa'] },
  { path: '/api', roles: ['*'], origin: 'own' },
]

test('rules check evaluates --from, --at, --auth-age, --acr and --amr, and names conditions that it assumes are met', () => {
  const rows: [args: string, expected: RegExp][] = [
    ['/office --from 10.1.2.3', /: admitted, by the rule \{"path":"\/office"[^;]*$/],
    ['/office --from ::1', /: admitted, /],
    ['/office --from 192.0.2.1', /: refused, by the rule \{.*\} \(outside_network\)$/],
    ['/office', /: admitted, by the rule .*; not specified, assumed met: networks \(--from\)$/],
    ['/desk --at 2026-11-16T09:00', /: admitted, by the rule \{.*\}$/],
    ['/desk --at 2026-11-16T20:00', /: refused, .* \(outside_hours\)$/],
    ['/desk --at 2026-11-16T12:30Z', /: refused, .* \(outside_hours\)$/],
    ['/desk --at 2026-11-16T19:30+08:00', /: admitted, /],
    ['/desk --at 2026-11-17T09:00', /: refused, .* \(outside_hours\)$/],
    ['/pay --auth-age 300', /: admitted, by the rule \{.*\}$/],
    ['/pay --auth-age 900', /: step_up, by the rule \{"path":"\/pay"/],
    ['/vault', /: step_up, /],
    ['/vault --acr gold', /: step_up, /],
    ['/vault --acr gold --amr pwd', /: step_up, /],
    ['/vault --acr bronze --acr gold --amr pwd --amr mfa', /: admitted, /],
    ['/api --method POST', /: admitted, .*assumed met: origin$/],
    ['/api', /: admitted, by the rule \{[^}]*\}$/],
  ]
  for (const [args, expected] of rows) {
    const { lines } = runRulesCommand(['check', ...args.split(' '), '--role', 'common'], CONDITIONS)
    assert.match(lines[0] ?? '', expected, args)
  }
  assert.match(
    runRulesCommand(['check', '/pay', '--auth-age', '900'], CONDITIONS).lines[0] ?? '',
    /as visitor: login, /,
  )
})

test('rules check rejects an invalid address, time or age', () => {
  const rows: [args: string[], expected: RegExp][] = [
    [['--from', 'office'], /"office" is not an address; expected one such as 192\.0\.2\.7/],
    [['--from', '10.0.0.0/8'], /is not an address/],
    [['--at', 'monday'], /"monday" is not a time; expected one such as 2026-11-16T09:00/],
    [['--at', '2026-02-30T09:00'], /is not a time/],
    [['--auth-age', '5m'], /"5m" is not an age; expected whole seconds/],
  ]
  for (const [args, expected] of rows)
    assert.throws(() => runRulesCommand(['check', '/x', ...args], CONDITIONS), expected, args.join(' '))
})

test('rules test accepts from, at, authAge, acr and amr (as text or list), and step_up as an expectation', t => {
  const file = join(tempFolder(t), 'table.json')
  const run = (table: unknown) => {
    writeFileSync(file, JSON.stringify(table))
    return runRulesCommand(['test', file], CONDITIONS)
  }
  const table = [
    { path: '/office', role: 'common', from: '10.0.0.1', expect: 'admitted' },
    { path: '/office', role: 'common', from: '192.0.2.1', expect: 'refused' },
    { path: '/desk', role: 'common', at: '2026-11-16T09:00', expect: 'admitted' },
    { path: '/desk', role: 'common', at: '2026-11-16T07:59', expect: 'refused' },
    { path: '/pay', role: 'common', authAge: 900, expect: 'step_up' },
    { path: '/vault', role: 'common', acr: 'gold', amr: 'mfa', expect: 'admitted' },
    { path: '/vault', role: 'common', acr: ['gold'], amr: ['otp', 'mfa'], expect: 'admitted' },
    { path: '/vault', role: 'common', acr: 'gold', expect: 'step_up' },
    { path: '/vault', expect: 'login' },
  ]
  assert.deepEqual(run(table), { lines: ['9 passed, 0 failed'], ok: true })
  assert.equal(run([{ path: '/pay', role: 'common', authAge: 1, expect: 'step_up' }]).ok, false)
  for (const odd of [{ from: 'x' }, { at: 'x' }, { authAge: -1 }, { acr: 7 }])
    assert.throws(() => run([{ path: '/x', expect: 'login', ...odd }]), /table\.json cannot be used: case 1, /)
})
