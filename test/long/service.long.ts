// The page docs/deploying.md from its first command to the one before the last, and then what systemd would start: the very program, as the
// very user, with the environment of the unit.

import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, cpSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { parseEnv } from 'node:util'
import { readCommands, runBelow } from '../cli/systemd-page.ts'
import { freePort } from '../kit/free-port.ts'
import { isReady, isServed, signedIn } from '../kit/instance.ts'
import { openScriptedProvider } from '../kit/scripted-provider.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

test('the commands of docs/deploying.md make a service that runs', async t => {
  if (process.getuid?.() !== 0) return t.skip('they are commands for root')
  const folder = tempFolder(t)
  const PATH = `${dirname(process.execPath)}:${process.env.PATH}`
  const npm = { ...process.env, PATH, npm_config_prefer_offline: 'true' }
  execFileSync('npm', ['pack', '--pack-destination', folder], { cwd: ROOT, env: npm, stdio: 'ignore' })
  const tarball = readdirSync(folder).find(name => name.endsWith('.tgz')) ?? assert.fail('nothing was packed')
  const [packages = '', install = '', ...rest] = readCommands()
  // What it would install is this machine's own affair.
  const looked = packages.replace(/apt-get (update|install)/g, 'apt-get --simulate $1')
  const ofThisVersion = install.replace('"$PWD"/menshen-*.tgz', join(folder, tarball))
  const made = runBelow(folder, [looked, ofThisVersion, ...rest.slice(0, -1)], npm)
  assert.equal(made.status, 0, made.stderr)

  const [, uid = '', gid = ''] = /^menshen:[^:]*:(\d+):(\d+):/m.exec(read('etc/passwd')) ?? []
  const unit = read('etc/systemd/system/menshen.service')
  const state = below('state')
  for (const place of [state, join(state, 'menshen')]) {
    mkdirSync(place)
    chownSync(place, Number(uid), Number(gid))
  }
  // systemd copies them for the service alone.
  for (const name of ['client-secret', 'secret']) {
    cpSync(below(`etc/menshen/${name}`), join(state, name))
    chownSync(join(state, name), Number(uid), Number(gid))
  }
  chmodSync(folder, 0o711)
  const ofUnit = [...unit.replaceAll(/%[dSLC]\b/g, state).matchAll(/^Environment=([^=]+)=(.*)$/gm)]
  const provider = await openScriptedProvider(t)
  const PORT = String(await freePort())
  const url = `http://localhost:${PORT}`
  const env = {
    ...parseEnv(read('etc/menshen/menshen.env')),
    ...Object.fromEntries(ofUnit.map(([, name, value]) => [name, value])),
    // What only the operator of the provider knows.
    ...provider.settings,
    // The one that was pasted is taken.
    CLIENT_SECRET: '',
    BASE_URL: url,
    UPSTREAM: '',
    PORT,
    TRUSTED_PROXIES: '',
    // Our client comes back with a state of its own.
    STATE_CHECK: 'suffix',
  }
  const [, program = '', script = ''] = /^ExecStart=(\S+) (\S+)$/m.exec(unit) ?? []
  const child = spawn(below(program), [below(script)], {
    cwd: below('etc/menshen'),
    env,
    uid: Number(uid),
    gid: Number(gid),
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const closed = once(child, 'close')
  t.after(() => {
    child.kill('SIGKILL')
    return closed
  })
  await until(() => isReady(url))
  const user = await signedIn({ url }, provider)
  assert.ok(isServed(await user.get({ url })))
  child.kill('SIGTERM')
  assert.deepEqual(await closed, [0, null])

  function below(path: string): string {
    return join(folder, path)
  }

  function read(path: string): string {
    return readFileSync(below(path), 'utf8')
  }
})
