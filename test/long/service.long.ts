// docs/first-production-day.md with the package itself: what npm makes of it is installed by the commands of the page, and its command accepts the
// configuration of the page. test/docs-first-production-day.test.ts runs the other commands.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { readPage, snippetsIn } from '../kit/snippets.ts'
import { tempFolder } from '../kit/temp.ts'
import { makeAuthority } from '../proxies/certificates.ts'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const PAGE = 'docs/first-production-day.md'

test('the commands of docs/first-production-day.md install the packed package, which accepts the configuration of that page', async t => {
  if (process.getuid?.() !== 0) return t.skip('they are commands for root')
  const folder = tempFolder(t)
  makeAuthority(folder)
  const PATH = `/usr/local/sbin:${dirname(process.execPath)}:${process.env.PATH}`
  const env = { ...process.env, PATH, LC_ALL: 'C.UTF-8', npm_config_prefer_offline: 'true' }
  await run('npm', ['pack', '--pack-destination', folder], { cwd: ROOT, env })
  const tarball = readdirSync(folder).find(name => name.endsWith('.tgz')) ?? assert.fail('nothing was packed')
  const [install = '', configure = ''] = snippetsIn(PAGE, readPage(PAGE))
    .filter(({ language }) => language === 'sh')
    .map(({ text }) => text)
  const script = `set -e\ncp ${join(folder, tarball)} /root\n${install}${configure}`
    // What it would install is this machine's own affair.
    .replaceAll(/apt-get (update|install)/g, 'apt-get --simulate $1')
    .replace('install -m 600 /dev/stdin', 'echo a-secret-that-keycloak-generated | install -m 600 /dev/stdin')
  const enter = join(ROOT, 'test/kit/empty-server/enter.sh')
  const { stdout } = await run('unshare', ['--mount', 'sh', enter, folder, 'bash', '-c', script], { env })
  assert.match(stdout, /^✔ All settings are valid\.$/m)
  assert.match(stdout, /^5 passed, 0 failed$/m)
})
