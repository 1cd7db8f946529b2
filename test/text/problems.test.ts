// What is wrong with settings and the configuration is said in the operator's language, wherever it is found.
import assert from 'node:assert/strict'
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { runRulesCommand } from '../../src/cli/commands/rules.ts'
import { refuseTakenHeaders, refuseTakenPaths } from '../../src/config/conflicts.ts'
import { readSettings } from '../../src/config/read.ts'
import { readSecrets } from '../../src/config/secret-references.ts'
import { assertCertificate, assertUpstreamAuthority } from '../../src/config/tls-files.ts'
import { MenshenError, refuseIf } from '../../src/errors.ts'
import { checkPageLanguage } from '../../src/pages/words.ts'
import { readClientKey } from '../../src/provider/client-key.ts'
import { planProviders } from '../../src/provider/providers.ts'
import { parseRedisAddress } from '../../src/stores/redis/address.ts'
import { phraseIn, phrasesOf } from '../../src/text/text.ts'

const ROOT = new URL('../../', import.meta.url)
const CLIENT = { AUTH_URL: 'https://idp.example.com', CLIENT_ID: 'a', CLIENT_SECRET: 'b', SECRET: 's'.repeat(40) }
const settings = (env: Record<string, string> = {}) => readSettings({ ...CLIENT, ...env })
const plans = (config: object, env: Record<string, string> = {}) => planProviders(config, settings(env))
const client = { clientId: 'a', clientSecret: 'b' }

const WRONG: Readonly<Record<string, () => unknown>> = {
  'headers that share a name': () => settings({ IDENTITY_ROLE: 'x-user', IDENTITY_GROUPS: 'x-user' }),
  'a header that cannot be kept': () => settings({ KEEP_HEADERS: 'connection' }),
  'device-bound sessions on http': () => settings({ DEVICE_BOUND_SESSIONS: 'on', BASE_URL: 'http://127.0.0.1:3000' }),
  'nested paths': () => settings({ LOGIN_PATH: '/in', CALLBACK_PATH: '/in/back' }),
  'plain http in production': () => settings({ NODE_ENV: 'production', BASE_URL: 'http://app.example.com' }),
  'a rule for a path of Menshen': () =>
    refuseTakenPaths(settings(), { rules: [{ path: '/login', public: true }] }, 'f'),
  'a sign-in path below an upstream': () =>
    refuseTakenPaths(settings({ LOGIN_PATH: '/wiki/in' }), { upstreams: { '/wiki': 'http://127.0.0.1:1' } }),
  'an upstream header with the name of the user header': () =>
    refuseTakenHeaders(settings({ IDENTITY_USER: 'x-user' }), {
      upstreams: { '/': { url: 'http://127.0.0.1:1', headers: { 'X-User': 'a' } } },
    }),
  'a certificate that cannot be used': () =>
    assertCertificate({ ...settings(), TLS_CERT_FILE: '/nonexistent', TLS_KEY_FILE: '/nonexistent' }),
  'an upstream authority file that is missing': () =>
    assertUpstreamAuthority({ ...settings(), UPSTREAM_CA_FILE: '/nonexistent' }),
  'a file that is not a client key': () => readClientKey('garbage'),
  'a broken client key': () => readClientKey('-----BEGIN PRIVATE KEY-----\nAA=='),
  'an encrypted client key': () => readClientKey('-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA=='),
  'a preset that does not exist': () => plans({}, { PROVIDER: 'keycloack' }),
  'a reserved parameter of the authorization request': () =>
    plans({ provider: { authorizationParams: { state: 'x' } } }),
  'an unsupported response mode': () => plans({ provider: { authorizationParams: { response_mode: 'form_post' } } }),
  'a secret file that is missing': () =>
    plans({ providers: { a: { preset: 'github', clientId: 'a', clientSecretFile: '/nonexistent' } } }),
  'a public client without PKCE': () => plans({ provider: { clientAuth: 'none', pkce: false } }),
  'mutual TLS without a certificate': () => plans({ provider: { clientAuth: 'tls_client_auth' } }),
  'settings of a single provider beside several providers': () =>
    plans({ providers: { a: { preset: 'github', ...client } } }),
  'a secret in a variable that is not set': () =>
    refuseIf(readSecrets({ provider: { clientSecret: { env: 'ABSENT' } } }, {}).problems),
  'an invalid Redis address': () => parseRedisAddress('redis://127.0.0.1:99999'),
  'an unknown Redis parameter': () => parseRedisAddress('redis://127.0.0.1?prefx=a'),
  'an unknown page language': () => refuseIf(checkPageLanguage('klingon', ['zh-CN', 'en'])),
}

/** Three lowercase words in a row, outside quotes, names and paths. */
const ENGLISH = /\b[a-z]{2,} [a-z]{2,} [a-z]{2,}\b/

function assertInBoth(wrong: () => unknown): void {
  assert.throws(wrong, (error: unknown) => {
    assert.ok(error instanceof MenshenError)
    for (const problem of phrasesOf(error)) {
      const chinese = phraseIn('zh-CN', problem)
      assert.match(chinese, /\p{Script=Han}.*[。？]$/u)
      assert.doesNotMatch(chinese, ENGLISH)
      assert.match(phraseIn('en', problem), /^\P{Script=Han}+[.?]$/u)
    }
    assert.equal(error.problems.length > 0 || phrasesOf(error).length > 0, true)
    return true
  })
}

suite('a configuration problem is reported in Chinese and in English', () => {
  for (const [name, wrong] of Object.entries(WRONG)) test(name, () => assertInBoth(wrong))

  test('an invalid field in the FILE of menshen rules test', t => {
    const folder = mkdtempSync(join(tmpdir(), 'menshen-problems-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const file = join(folder, 'table.json')
    for (const row of [{ path: 'x', expect: 'own' }, { path: '/x', expect: 'maybe' }, { path: '/x', from: 1 }, 5]) {
      writeFileSync(file, JSON.stringify([row]))
      assertInBoth(() => runRulesCommand(['test', file], []))
    }
  })
})

test('no problem of the configuration, a provider or Redis has its message written in code', () => {
  const files = globSync(['src/config/*.ts', 'src/provider/*.ts', 'src/stores/redis/*.ts'], { cwd: ROOT })
  /** For programs: `checkSettings` takes settings that code has made. */
  const others = ['src/config/read.ts', 'src/config/load.ts', 'src/config/file.ts']
  const typed = files
    .filter(path => !others.includes(path))
    .filter(path => /\bmessage(?::| =) [`'"]/.test(readFileSync(new URL(path, ROOT), 'utf8')))
  assert.ok(files.length > 50)
  assert.deepEqual(typed, [])
})
