// What operators read in both languages: every row has both, with the same values, and the command answers in the one asked for.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { runCheckCommand } from '../../src/cli/commands/check.ts'
import { runDoctorCommand } from '../../src/cli/commands/doctor.ts'
import { createPaint } from '../../src/cli/terminal.ts'
import { readSettings } from '../../src/config/read.ts'
import { type Environment, type Row, SETTINGS } from '../../src/config/settings.ts'
import { fill, placeholdersIn, type Sentence } from '../../src/text/placeholders.ts'
import { checkLabel, phrase, phraseIn, quoted, TABLES } from '../../src/text/text.ts'

import { freePort } from '../kit/free-port.ts'
import { startStrictOidcServer } from '../kit/oidc/strict-oidc-server.ts'
import { openScriptedProvider } from '../kit/scripted-provider.ts'

const HAN = /\p{Script=Han}/u
/** Names that are the same in every language. */
const SAME = new Set([
  'quoted',
  'two',
  'with_cause',
  'with_remedy',
  'finding_line',
  'finding_sentence',
  'store_failed',
  'name_cookies',
  'name_redis',
  'name_host',
])
/** Several words of English one after another. */
const ENGLISH = /\b[a-z]{2,} [a-z]{2,} [a-z]{2,}\b/

const { en, 'zh-CN': zhCN } = TABLES
const rows = Object.keys(zhCN).filter(key => /^(phrase|advice)\./.test(key)) as (keyof typeof zhCN)[]
const formsOf = (row: Sentence) => (typeof row === 'string' ? [row] : Object.values(row))

suite('texts for operators', () => {
  test('every text for operators is in both languages, with the same values', () => {
    for (const key of rows) {
      const [english, zh] = [formsOf(en[key]), zhCN[key]]
      assert.deepEqual(placeholdersIn(zh), placeholdersIn(english.join()), key)
      for (const form of english) assert.doesNotMatch(form, HAN, key)
      assert.ok(
        [...english, zh].every(form => form !== ''),
        key,
      )
      const code = key.replace(/^phrase\./, '')
      const isSame = SAME.has(code) || /^(name|mapping)_/.test(code)
      if (!isSame) assert.match(zh, HAN, `${key} has no Chinese`)
      assert.doesNotMatch(zh, ENGLISH, `${key} has English in its Chinese`)
    }
  })

  test('a text for operators does not compile without its values', () => {
    // @ts-expect-error: it needs the number of milliseconds
    assert.ok(phrase('no_answer_within'))
    // @ts-expect-error: there is no such sentence
    assert.ok(phrase('no_answer_wihtin'))
  })

  test('a text with a number has the plural form of the number in its language', () => {
    const warnings = (count: number) => phrase('warnings_count', { count })
    assert.deepEqual(
      [0, 1, 2].map(count => phraseIn('en', warnings(count))),
      ['0 warnings', '1 warning', '2 warnings'],
    )
    assert.equal(phraseIn('zh-CN', warnings(1)), '1 项警告')
    assert.deepEqual(
      [1, 2].map(ended => fill(en['account.ended'], 'en', { ended }).join('')),
      ['Signed out 1 other device.', 'Signed out 2 other devices.'],
    )
    const forms = { one: '{count} файл', few: '{count} файла', many: '{count} файлов', other: '{count} файла' }
    assert.deepEqual(
      [1, 3, 5, 21, 1.5].map(count => fill(forms, 'ru', { count }).join('')),
      ['1 файл', '3 файла', '5 файлов', '21 файл', '1.5 файла'],
    )
  })

  test('every setting is described in both languages, with the same values', () => {
    for (const [name, { description: sentence, descriptionZh: sentenceZh }] of Object.entries<Row<unknown>>(SETTINGS)) {
      assert.doesNotMatch(sentence.replaceAll(/`[^`]*`/g, ''), HAN, name)
      assert.match(sentenceZh ?? '', /\p{Script=Han}.*。$/u, `${name} is not described in Chinese`)
      const codes = (text = '') => [...text.matchAll(/`([^`]+)`/g)].map(([, code]) => code).sort()
      assert.deepEqual(new Set(codes(sentenceZh)), new Set(codes(sentence)), `${name} names other values in Chinese`)
    }
  })

  test('a phrase can contain another phrase, and quoted text stays as it is', () => {
    const reason = phrase('connection_broke', { code: 'ECONNRESET' })
    const said = phrase('sign_in_page_unseen', { reason })
    assert.equal(phraseIn('en', said), 'the sign-in page could not be loaded: the connection broke (ECONNRESET)')
    assert.equal(phraseIn('zh-CN', said), '无法打开登录页：连接中断（ECONNRESET）')
    assert.equal(phraseIn('zh-CN', quoted('{ms} $&')), '{ms} $&')
  })

  test('the label of a check is translated, except for names that the operator chose', () => {
    const inChinese = (name: string) => checkLabel(name, { lang: 'zh-CN', messages: zhCN })
    const inEnglish = (name: string) => checkLabel(name, { lang: 'en', messages: en })
    assert.equal(inChinese('provider'), '身份认证平台')
    assert.equal(inChinese('provider redirect address'), '身份认证平台 · 回调地址')
    assert.equal(inChinese('provider staff redirect address'), '身份认证平台 staff · 回调地址')
    assert.equal(inChinese('upstream /api dns'), '后端应用 /api · 域名解析')
    assert.equal(inChinese('upstream /api'), '后端应用 /api')
    assert.equal(inChinese('store file system'), '存储 · 文件系统')
    assert.equal(inChinese('store disk'), '存储 · 磁盘空间')
    assert.equal(inChinese('provider staff client certificate'), '身份认证平台 staff · 客户端证书')
    assert.equal(inEnglish('provider staff tls'), 'provider staff · tls')
  })
})

suite('the language of the command', () => {
  const run = (environment: Environment) => ({ environment, now: Date.now, paint: createPaint(false) })
  const alone = { BASE_URL: 'http://localhost:9', STORE: 'memory:' }

  interface Check {
    readonly name: string
    readonly seen: string
    readonly remedy: string
  }

  async function checksOf(environment: Environment, ...args: string[]): Promise<Check[]> {
    const { text } = await runDoctorCommand(['--json', ...args], run(environment))
    return JSON.parse(text).checks
  }

  test('the command answers in the language of --language, or else of the locale', async () => {
    const isChinese = async (environment: Environment, ...args: string[]) =>
      HAN.test((await runDoctorCommand(args, run({ ...alone, ...environment }))).text)
    assert.equal(await isChinese({}), false)
    assert.equal(await isChinese({ LANG: 'C.UTF-8' }), false)
    assert.equal(await isChinese({ LANG: 'zh_CN.UTF-8' }), true)
    assert.equal(await isChinese({ LC_ALL: 'en_US.UTF-8', LANG: 'zh_CN.UTF-8' }), false)
    assert.equal(await isChinese({ LC_MESSAGES: 'zh_CN.UTF-8', LANG: 'en_US.UTF-8' }), true)
    assert.equal(await isChinese({ LANG: 'zh_CN.UTF-8' }, '--language', 'en'), false)
    assert.equal(await isChinese({}, '--language', 'zh-CN'), true)
    await assert.rejects(
      runDoctorCommand(['--language', 'fr'], run(alone)),
      /^UsageError: --language is "fr"; the languages are zh-CN and en; expected menshen doctor/,
    )
    const check = async (...args: string[]) => (await runCheckCommand(args, run(alone))).text
    assert.match(await check('--language', 'zh-CN'), /^✔ 全部可用。\n/)
    assert.match(await check(), /^✔ All settings are valid\.\n/)
  })

  test('the doctor names its checks the same in both languages and has no English sentence in the Chinese', async t => {
    const provider = await openScriptedProvider(t)
    provider.answer('token', { kind: 'bytes', body: '<html>' })
    provider.answer('authorize', { kind: 'hang' })
    const demanding = await startStrictOidcServer(t)
    demanding.bend.discovery = right => ({
      ...right,
      require_pushed_authorization_requests: true,
      require_signed_request_object: true,
      response_modes_supported: ['form_post'],
      response_types_supported: ['id_token'],
      code_challenge_methods_supported: ['S256'],
      scopes_supported: ['openid'],
      id_token_signing_alg_values_supported: ['HS256'],
      token_endpoint_auth_methods_supported: ['client_secret_jwt'],
    })
    const away = `127.0.0.1:${await freePort()}`
    const worlds = [
      { ...alone, ...provider.settings, PROVIDER_TIMEOUT_MS: '300', UPSTREAM: `http://${away}`, CLIENT_SECRTE: 'x' },
      { ...alone, PROVIDER: 'oidc', AUTH_URL: `http://${away}`, CLIENT_ID: 'a', CLIENT_SECRET: 'b' },
      { ...alone, ...demanding.settings, PKCE: 'off', TRUSTED_PROXIES: '0.0.0.0/0', ALLOW_UNVERIFIED_EMAIL: 'true' },
      { ...alone, STORE: `redis://${away}`, AUTH_URL: 'https://idp.invalid', NODE_ENV: 'prodution' },
    ]
    for (const env of worlds) {
      assert.ok(readSettings(env))
      const [english, chinese] = await Promise.all([checksOf(env), checksOf(env, '--language', 'zh-CN')])
      assert.deepEqual(
        chinese.map(({ name }) => name),
        english.map(({ name }) => name),
      )
      for (const { name, seen, remedy } of chinese) {
        if (name !== 'time') assert.match(seen, HAN, name)
        if (remedy !== '') assert.match(remedy, HAN, name)
        assert.doesNotMatch(seen + remedy, ENGLISH, name)
      }
    }
  })
})
