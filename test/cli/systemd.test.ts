// The service of docs/deploying.md: what systemd and logrotate themselves say of its files. test/docs-first-production-day.test.ts installs and starts it.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { readSettings } from '../../src/config/read.ts'
import { SETTINGS } from '../../src/config/settings.ts'
import { setUpInstances, signedIn } from '../kit/instance.ts'
import { requireProgram } from '../kit/requirements.ts'
import { readPage } from '../kit/snippets.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const UNITS = join(ROOT, 'examples/systemd')
const MAX_EXPOSED = 2
const read = (name: string) => readFileSync(join(UNITS, name), 'utf8')
/** As any user can look at a unit: nothing here needs a running systemd. */
const run = (program: string, ...args: string[]) => spawnSync(requireProgram(program), args, { encoding: 'utf8' })

test('systemd-analyze verify reports no problem in the units, including those of a second instance', t => {
  const folder = tempFolder(t)
  // It looks whether the program is there; /opt/menshen is not.
  const service = read('menshen.service').replace(/(?<=^ExecStart=)\S+/m, process.execPath)
  for (const name of ['menshen', 'menshen@3001']) writeFileSync(join(folder, `${name}.service`), service)
  copyFileSync(join(UNITS, 'menshen.socket'), join(folder, 'menshen.socket'))
  copyFileSync(join(UNITS, 'menshen@.socket'), join(folder, 'menshen@3001.socket'))
  const files = readdirSync(folder).map(name => join(folder, name))
  assert.equal(files.length, 4)
  const { status, stdout, stderr } = run('systemd-analyze', 'verify', '--man=no', ...files)
  assert.equal(stdout + stderr, '')
  assert.equal(status, 0)
})

test(`systemd-analyze security rates the service below ${MAX_EXPOSED}, and docs/deploying.md gives the same figure`, () => {
  const { stdout, stderr } = run(
    'systemd-analyze',
    'security',
    '--offline=true',
    '--no-pager',
    join(UNITS, 'menshen.service'),
  )
  const [, exposure = '10'] = /Overall exposure level for menshen\.service: ([\d.]+)/.exec(stdout) ?? []
  assert.ok(Number(exposure) < MAX_EXPOSED, stdout + stderr)
  assert.ok(readPage('docs/deploying.md').includes(`gives it ${exposure}`))
})

test('the settings in the systemd unit and its environment file exist, and Menshen accepts them together', t => {
  const folder = tempFolder(t)
  for (const name of ['client-secret', 'secret']) writeFileSync(join(folder, name), 'x'.repeat(48))
  mkdirSync(join(folder, 'menshen'))
  const unit = read('menshen.service').replaceAll(/%[dSLC]\b/g, folder)
  const given = [...`${unit}\n${read('menshen.env')}`.matchAll(/^(?:Environment=)?([A-Z_]+)=(\S+)$/gm)]
  const environment = Object.fromEntries(given.map(([, name = '', value = '']) => [name, value]))
  const { XDG_CACHE_HOME, ...settings } = environment
  assert.equal(XDG_CACHE_HOME, folder)
  assert.deepEqual(
    Object.keys(settings).filter(name => !Object.hasOwn(SETTINGS, name)),
    [],
  )
  assert.equal(readSettings(settings).SECRET?.length, 1)
  // Each credential is loaded before it is named.
  for (const [, name] of read('menshen.service').matchAll(/_FILE=%d\/(\S+)/g))
    assert.match(unit, new RegExp(`^LoadCredential=${name}:/etc/menshen/`, 'm'))
})

test('logrotate rotates the audit file, and no sign-in event is lost', async t => {
  const { provider, folder, start } = await setUpInstances(t, { AUDIT_FILE: 'audit.jsonl' })
  const instance = await start()
  await signedIn(instance, provider)
  const file = join(folder, 'audit.jsonl')
  await until(() => (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0)
  const configuration = join(folder, 'logrotate.conf')
  const reload = "systemctl reload 'menshen*.service'"
  const text = read('logrotate.conf')
  assert.ok(text.includes(reload))
  const own = text
    .replace('/var/log/menshen/audit.jsonl', file)
    .replace(reload, `kill -HUP ${instance.pid}`)
    .replace(/^ +su .*\n/m, '')
  writeFileSync(configuration, own, { mode: 0o644 })
  const { status, stderr } = run('logrotate', '--force', '--state', join(folder, 'state'), configuration)
  assert.equal(status, 0, stderr)
  const signInsOf = (path: string) => readFileSync(path, 'utf8').split('"event":"sign_in"').length - 1
  await until(async () => {
    await signedIn(instance, provider)
    return statSync(file, { throwIfNoEntry: false }) !== undefined
  })
  await instance.kill('SIGTERM')
  const signIns = instance.lines.filter(({ event }) => event === 'sign_in').length
  assert.equal(signInsOf(file) + signInsOf(`${file}.1`), signIns)
})

test('the installed menshen command uses the settings, secrets and store of the service, not the caller’s environment', async t => {
  const { provider, folder, start } = await setUpInstances(t)
  const instance = await start()
  await signedIn(instance, provider)
  const { CLIENT_SECRET: clientSecret = '', ...settings } = provider.settings
  mkdirSync(join(folder, 'etc/menshen'), { recursive: true })
  const write = (name: string, text: string) => writeFileSync(join(folder, 'etc/menshen', name), text)
  const given = {
    ...settings,
    STORE: `sqlite:${join(folder, 'data', 'menshen.db')}`,
    ALLOW_PLAIN_HTTP: 'true',
    BASE_URL: instance.url,
  }
  write(
    'menshen.env',
    Object.entries(given)
      .map(([name, value]) => `${name}=${value}\n`)
      .join('')
      .concat('# a comment\nAPP_NAME="a # b"\n\nPROVIDER_NAME=one#two # three'),
  )
  write('client-secret', clientSecret)
  write('secret', '')
  const script = read('menshen')
    .replaceAll('/etc/menshen', join(folder, 'etc/menshen'))
    .replaceAll('/var/log/menshen', folder)
    .replaceAll('/opt/menshen/node_modules/node/bin/node', process.execPath)
    .replaceAll('/opt/menshen/node_modules/menshen', ROOT)
    .replace('setpriv --reuid=menshen --regid=menshen --clear-groups', 'setpriv')
  writeFileSync(join(folder, 'menshen'), script, { mode: 0o755 })
  writeFileSync(join(folder, 'menshen-env'), script.replace(/^exec [\s\S]*/m, 'exec env\n'), { mode: 0o755 })
  const env = { PATH: process.env.PATH, STORE: 'memory:', CLIENT_ID: 'of the caller' }
  const menshen = (...args: string[]) => spawnSync(join(folder, 'menshen'), args, { env, encoding: 'utf8' })
  const { stdout, stderr } = menshen('sessions', '--json')
  assert.equal(stderr, '')
  assert.equal(JSON.parse(stdout).user, 'zhangsan')
  const environment = spawnSync(join(folder, 'menshen-env'), ['x'], { env, encoding: 'utf8' }).stdout.split('\n')
  for (const line of ['APP_NAME=a # b', 'PROVIDER_NAME=one#two # three', 'NODE_ENV=production', `STORE=${given.STORE}`])
    assert.ok(environment.includes(line), `${line}: ${environment.join(' ')}`)
  assert.deepEqual(menshen().status, 2, 'it does not start a second Menshen')
})
