// The commands of docs/first-production-day.md, run from top to bottom on an empty server with a real provider, Redis, nginx and Prometheus:
// each of them succeeds, and writes what the page shows.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Block, Result } from './kit/empty-server/stage.ts'
import { requireProgram, requirePython } from './kit/requirements.ts'
import { readPage, snippetsIn } from './kit/snippets.ts'
import { tempFolder } from './kit/temp.ts'
import { makeAuthority, makeCertificate } from './proxies/certificates.ts'

/**
 * What the test changes in the commands. Beside that, `apt-get`, `npm`, `certbot` and `systemctl` are stand-ins (test/kit/empty-server), and a
 * client without a browser signs in. Host names, ports, folders and everything else are those of the page.
 */
const CHANGES = [
  // One machine has both servers, and nginx has port 443.
  ['https://sso.example.com', 'https://sso.example.com:8443'],
  // The certificates are from an authority of the test.
  ['TRUSTED_PROXIES=127.0.0.2', 'TRUSTED_PROXIES=127.0.0.2\nNODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt'],
  // The machine may be busy.
  ['BASE_URL=https://app', 'PROVIDER_TIMEOUT_MS=60000\nBASE_URL=https://app'],
  ['scrape_interval: 15s', 'scrape_interval: 1s'],
] as const
/** A user signs in before this command. */
const SIGN_IN_BEFORE = 'menshen sessions'
/** This one is repeated until it has all lines: Prometheus needs a moment. */
const AWAITED = 'promtool query'
const PROGRAMS = ['curl', 'nginx', 'prometheus', 'promtool', 'redis-cli', 'redis-server', 'unshare']

/** There are dozens of commands, and the machine may have twenty times as much to do as it has cores. */
const TIMEOUT_MS = 12 * 60_000
/** As long as certificates of a public authority: `menshen doctor` warns of shorter ones. */
const DAYS = 90
/** Mode and owner of what the installation has left. */
const MODES = {
  '/etc/menshen/client-secret': '600 root',
  '/etc/menshen/secret': '600 root',
  '/etc/menshen/menshen.env': '644 root',
  '/usr/local/sbin/menshen': '755 root',
  '/var/lib/menshen': '700 menshen',
  '/var/log/menshen/audit.jsonl': '600 menshen',
  '/var/backups/menshen.tgz': '600 root',
  '/var/backups/menshen.rdb': '600 root',
}
/** One more installation leaves settings and secrets as they are. */
const UPDATE = `
sums=$(md5sum /etc/menshen/*)
sh /opt/menshen/node_modules/menshen/examples/systemd/install | tail -n 1
[ "$sums" = "$(md5sum /etc/menshen/*)" ] && echo OK`
const ROOT = fileURLToPath(new URL('..', import.meta.url))
const PAGES = ['docs/first-production-day.md', 'docs/zh-CN/first-production-day.md'] as const

test('every command of the first production day succeeds and prints what the page shows in both languages', {
  timeout: TIMEOUT_MS,
}, async t => {
  if (process.getuid?.() !== 0) return t.skip('they are commands for root')
  requirePython()
  for (const name of PROGRAMS) requireProgram(name)
  const [english, chinese] = PAGES.map(stepsOf) as [Step[], Step[]]
  const steps = english.map((step, n) => ({
    ...step,
    chinese: chinese[n] ?? assert.fail(`${PAGES[1]} has fewer commands`),
  }))
  for (const step of steps) assert.equal(step.chinese.command, step.command, `${PAGES[1]}:${step.chinese.line}`)
  const blocks = steps.map(({ command, expected, chinese }) => ({
    command,
    isRepeated: chinese.expected !== expected,
    isAfterSignIn: command.startsWith(SIGN_IN_BEFORE),
    awaitedLines: command.startsWith(AWAITED) ? expected.trim().split('\n').length : 0,
  }))
  const modes = `stat -c '%a %U' ${Object.keys(MODES).join(' ')}`
  const look = { command: `${modes}\n${UPDATE}`, isRepeated: false, isAfterSignIn: false, awaitedLines: 0 }
  const results = await runOnEmptyServer(tempFolder(t), [...blocks, look])
  for (const [n, { status, output, chinese }] of results.slice(0, blocks.length).entries()) {
    const step = steps[n] ?? assert.fail()
    assert.equal(status, 0, `${PAGES[0]}:${step.line}: ${output}`)
    assertShown(output, step, PAGES[0])
    if (chinese !== undefined) assertShown(chinese, step.chinese, PAGES[1])
  }
  assert.equal(results.length, blocks.length + 1)
  const kept = 'client secret     /etc/menshen/client-secret\nOK\n'
  assert.equal(results.at(-1)?.output, `${Object.values(MODES).join('\n')}\n${kept}`)
})

interface Step {
  readonly line: number
  readonly command: string
  readonly expected: string
}

/** Commands, each with the block below it. */
function stepsOf(page: string): Step[] {
  const change = (given: string) => CHANGES.reduce((changed, [from, to]) => changed.replaceAll(from, to), given)
  const snippets = snippetsIn(page, readPage(page))
  return snippets.flatMap(({ line, language, text: command }, n) => {
    if (language !== 'sh') return []
    const below = snippets[n + 1]
    assert.equal(below?.language, '', `${page}:${line} has no output`)
    // Comments are in the language of the page.
    return [{ line, command: change(command.replaceAll(/ +# .*$/gm, '')), expected: change(below.text) }]
  })
}

/** `…` is any text within a line; alone on a line, any lines. */
function assertShown(output: string, { expected, line }: Step, page: string): void {
  const pattern = expected
    .trimEnd()
    .split('\n')
    .map(each => (each === '…' ? '(?:.*\\n)*' : `${RegExp.escape(each).replaceAll(RegExp.escape('…'), '.+')}\\n`))
    .join('')
  if (!new RegExp(`^${pattern}$`, 'v').test(`${output.trimEnd()}\n`)) assert.equal(output, expected, `${page}:${line}`)
}

async function runOnEmptyServer(folder: string, blocks: readonly Block[]): Promise<Result[]> {
  const authority = makeAuthority(folder, DAYS)
  for (const name of ['app', 'sso']) makeCertificate(folder, name, authority, `${name}.example.com`, DAYS)
  writeFileSync(join(folder, 'blocks.json'), JSON.stringify(blocks))
  const kit = join(import.meta.dirname, 'kit/empty-server')
  const PATH = `${folder}/bin:/usr/local/sbin:${process.env.PATH}`
  const namespaces = ['--mount', '--net', '--pid', '--fork', '--mount-proc', '--kill-child']
  const stage = [process.execPath, join(kit, 'stage.ts'), folder, ROOT, PATH]
  const child = spawn('unshare', [...namespaces, 'sh', join(kit, 'enter.sh'), folder, ...stage], {
    env: { PATH: process.env.PATH, NODE_EXTRA_CA_CERTS: join(folder, 'ca.crt') },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [output, [status]] = await Promise.all([text(child.stdout), once(child, 'exit')])
  assert.equal(status, 0, output)
  return JSON.parse(output)
}
