// Programs at rules with keys or bearer: they wait for a 401 before they send their credentials, and a login page is not their result.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import test from 'node:test'
import { promisify } from 'node:util'
import type { Config } from '../../src/index.ts'
import { keySha256, newKey } from '../../src/util/key-form.ts'
import { PYTHON } from '../kit/packages.ts'
import { requirePrograms, requirePython } from '../kit/requirements.ts'
import { setUp } from '../kit/set-up.ts'

const run = promisify(execFile)
const KEY = newKey()
const CONFIG: Config = {
  machines: [{ name: 'backup', keySha256: keySha256(KEY) }],
  rules: [
    { path: '/keys', roles: ['*'], keys: true },
    { path: '/plain', roles: ['*'] },
  ],
}
const MOZILLA = 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Thunderbird/128.5.0'

test('wget, curl and urllib get the page with a key, and without one an error instead of the login page', async t => {
  await requirePrograms('curl', 'wget')
  requirePython()
  const { url } = await setUp(t, { config: CONFIG })
  const address = `${url}/keys/file`
  const output = async (program: string, ...args: string[]) => (await run(program, args)).stdout
  const wget = (...args: string[]) => output('wget', '-q', '-O', '-', ...args, address)
  assert.equal(await wget('--user=me', `--password=${KEY}`), 'hello')
  await assert.rejects(wget(), { code: 6 })
  const curl = (...args: string[]) => output('curl', '-sSL', '--anyauth', ...args, address)
  assert.equal(await curl('-u', `me:${KEY}`), 'hello')
  assert.equal(await output('curl', '-sSL', '-o', '/dev/null', '-w', '%{http_code}', address), '401')
  const script = `
import sys, urllib.request
address, key = sys.argv[1:]
passwords = urllib.request.HTTPPasswordMgrWithDefaultRealm()
passwords.add_password(None, address, 'me', key)
opener = urllib.request.build_opener(urllib.request.HTTPBasicAuthHandler(passwords))
print(opener.open(address).read().decode(), end='')
try:
    urllib.request.urlopen(address)
except urllib.error.HTTPError as error:
    print('', error.code, end='')
`
  assert.equal(await output(PYTHON, '-c', script, address, KEY), 'hello 401')
})

test('a program that sent a wrong key as its password is asked for another one, and a script on a page is not', async t => {
  await requirePrograms('curl', 'git')
  requirePython()
  const { url, client } = await setUp(t, { config: CONFIG })
  const [invalid, password] = ['Bearer error="invalid_token"', 'Basic realm="menshen"']
  const address = `${url}/keys/project.git`
  const credentials = ['-u', `me:${newKey()}`]
  const { stdout } = await run('curl', [
    '-sS',
    '-o',
    '/dev/null',
    '-w',
    '%header{www-authenticate}',
    ...credentials,
    address,
  ])
  assert.equal(stdout, `${invalid}, ${password}`)

  // It gives up with another error at a challenge in which it finds no scheme that it knows.
  const script = `
import sys, urllib.request
address, key = sys.argv[1:]
passwords = urllib.request.HTTPPasswordMgrWithDefaultRealm()
passwords.add_password(None, address, 'me', key)
try:
    urllib.request.build_opener(urllib.request.HTTPBasicAuthHandler(passwords)).open(address)
except urllib.error.HTTPError as error:
    print(error.code, end='')
`
  assert.equal((await run(PYTHON, ['-c', script, address, newKey()])).stdout, '401')

  const given = `credential.helper=!f() { echo "$1" >&2; test "$1" = get && printf 'username=me\\npassword=${newKey()}\\n'; }; f`
  const env = {
    PATH: process.env.PATH,
    GIT_TERMINAL_PROMPT: '0',
    GIT_CONFIG_NOSYSTEM: '1',
    HOME: '/nonexistent',
    LC_ALL: 'C',
  }
  await assert.rejects(run('git', ['-c', 'credential.helper=', '-c', given, 'ls-remote', address], { env }), {
    stderr: /^get\nerase\n.*Authentication failed/s,
  })

  const authorization = `Basic ${btoa(`me:${newKey()}`)}`
  const challenge = async (headers: Record<string, string>) =>
    (await client.get('/keys/x', { headers: { authorization, 'user-agent': MOZILLA, ...headers } })).headers[
      'www-authenticate'
    ]
  assert.equal(await challenge({}), `${invalid}, ${password}`, 'a client of calendars')
  assert.equal(await challenge({ 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' }), invalid)
})

test('at a rule with keys, only page navigations are redirected to the login page', async t => {
  const { client } = await setUp(t, { config: CONFIG, env: { TRUSTED_PROXIES: '127.0.0.1' } })
  const rows: [headers: Record<string, string>, status: number][] = [
    [{}, 401],
    [{ accept: '*/*' }, 401],
    [{ accept: '*/*', 'user-agent': MOZILLA }, 401],
    [{ accept: 'text/html' }, 302],
    [{ accept: 'text/html,application/xhtml+xml,*/*;q=0.8', 'user-agent': MOZILLA }, 302],
    [{ accept: '*/*', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }, 302],
    [{ accept: 'image/png', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' }, 401],
  ]
  for (const [headers, status] of rows) {
    assert.equal((await client.get('/keys/x', { headers })).status, status, JSON.stringify(headers))
    const asked = { ...headers, 'x-forwarded-uri': '/keys/x', 'x-forwarded-method': 'GET' }
    assert.equal((await client.get('/_menshen/forward', { headers: asked })).status, status, JSON.stringify(asked))
    assert.equal((await client.get('/_menshen/authz/keys/x', { headers })).status, status, 'authz')
  }
  const challenge = async (headers: Record<string, string>, method = 'GET', path = '/keys/x') =>
    (await client.request({ method, path, headers })).headers['www-authenticate']
  assert.equal(await challenge({ accept: '*/*' }), 'Basic realm="menshen"')
  for (const method of ['PROPFIND', 'MKCOL', 'LOCK', 'REPORT'])
    assert.equal(await challenge({ 'user-agent': MOZILLA }, method), 'Basic realm="menshen"', method)
  // A browser would ask its user for a password.
  for (const method of ['GET', 'POST', 'PROPFIND'])
    assert.equal(
      await challenge({ 'user-agent': MOZILLA, 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' }, method),
      'Cookie realm="menshen"',
      method,
    )
  const check = { 'x-original-uri': '/keys/x', 'x-original-method': 'PROPFIND', 'user-agent': MOZILLA }
  assert.equal(await challenge(check, 'GET', '/_menshen/check'), 'Basic realm="menshen"')
  assert.equal((await client.get('/plain', { headers: { accept: '*/*' } })).status, 302, 'without keys and bearer')
})

test('an invalid key and a key that is not accepted have different error codes in the response and in the log', async t => {
  const { client, lines } = await setUp(t, { config: CONFIG })
  const reasons = () => lines.filter(({ event }) => event === 'key_refused').map(({ fields }) => fields.reason)
  for (const headers of [
    { authorization: `Bearer ${newKey()}` },
    { authorization: `Basic ${btoa(`me:${newKey()}`)}`, accept: 'text/html' },
    { 'x-menshen-key': newKey() },
  ]) {
    const answer = await client.get('/keys/x', { headers })
    assert.equal(answer.status, 401)
    assert.equal(answer.json<{ error: string }>().error, 'invalid_key')
    assert.match(String(answer.headers['www-authenticate']), /^Bearer error="invalid_token"/)
  }
  assert.deepEqual(reasons(), ['unknown', 'unknown', 'unknown'])
  for (const headers of [{ authorization: `Bearer ${KEY}` }, { 'x-menshen-key': KEY, accept: 'text/html' }]) {
    const answer = await client.get('/plain', { headers })
    assert.equal(answer.status, 401)
    assert.equal(answer.json<{ error: string }>().error, 'key_not_accepted')
  }
  assert.deepEqual(reasons().slice(3), ['not_accepted', 'not_accepted'])
})
