// The language of a page: the operator's choice, the browser's, and everybody's own by the switch.

import assert from 'node:assert/strict'
import test, { suite } from 'node:test'
import type { Config, Rule } from '../../src/config/file.ts'
import { createMenshen, MenshenError, readSettings } from '../../src/index.ts'
import { createLanguages } from '../../src/pages/words.ts'
import { en } from '../../src/text/en.ts'
import { phraseIn, phrasesOf } from '../../src/text/text.ts'
import { zhCN } from '../../src/text/zh-CN.ts'
import type { Client } from '../kit/client.ts'
import type { Environment } from '../kit/instance.ts'
import { setUp } from '../kit/set-up.ts'

const CONSOLE = '/_menshen/console'
const ACCOUNT = '/_menshen/account'
const LANGUAGE = '/_menshen/language'
const NOTHING_BEHIND = { UPSTREAM: '' }

async function langOf(client: Client, path: string, acceptLanguage?: string): Promise<string | undefined> {
  const headers = acceptLanguage === undefined ? {} : { 'accept-language': acceptLanguage }
  const { text } = await client.get(path, { headers })
  return /<html lang="([^"]*)">/.exec(text)?.[1]
}

async function problemOf(config: unknown, env: Environment = {}): Promise<string> {
  try {
    const settings = readSettings({ STORE: 'memory:', ...env })
    const menshen = await createMenshen({ settings, config: config as Config })
    await menshen.close()
    return ''
  } catch (error) {
    return (error as Error).message
  }
}

suite('PAGE_LANGUAGE', () => {
  test('PAGE_LANGUAGE defaults to Chinese, whatever Accept-Language the browser sends', async t => {
    const { visitor } = await setUp(t)
    assert.equal(await langOf(visitor(), '/login', 'en'), 'zh-CN')
  })

  test('PAGE_LANGUAGE=en applies to pages, error messages and JSON responses', async t => {
    const { visitor, user } = await setUp(t, { env: { PAGE_LANGUAGE: 'en', APP_NAME: 'Portal' } })
    const login = await visitor().get('/login?error=access_denied')
    assert.match(login.text, /<html lang="en">/)
    assert.ok(login.text.includes(en['error.access_denied.message']))
    assert.doesNotMatch(login.text.replace('>简体中文<', '><'), /\p{Script=Han}/u)
    const me = await visitor().get('/_menshen/me', { headers: { accept: 'application/json' } })
    assert.deepEqual(me.json(), {
      requestId: me.headers['x-request-id'],
      error: 'unauthenticated',
      message: en['session.unauthenticated'],
      login: '/login',
      ended: {
        lang: 'en',
        title: en['session_ended.title'],
        text: en['session.ended'],
        link: en['session.sign_in_again'],
      },
    })
    const lost = await visitor().get('/_menshen/nothing', { headers: { accept: 'application/json' } })
    assert.equal(lost.json<{ message: string }>().message, en['notice.not_found.text'])
    assert.ok((await visitor().get('/%2e%2e/%zz')).text.includes(en['notice.bad_request.title']))
    assert.ok((await (await user()).get(CONSOLE)).text.includes(en['notice.refused.text']))
  })

  test('PAGE_LANGUAGE=auto picks the best available match for Accept-Language and falls back to Chinese', async t => {
    const ja = { ...en, 'language.name': '日本語' }
    const { visitor } = await setUp(t, { env: { PAGE_LANGUAGE: 'auto' }, config: { languages: { ja } } })
    const client = visitor()
    const rows: [acceptLanguage: string | undefined, lang: string][] = [
      [undefined, 'zh-CN'],
      ['', 'zh-CN'],
      ['*', 'zh-CN'],
      ['fr, de;q=0.9', 'zh-CN'],
      ['en', 'en'],
      ['en-GB,en;q=0.9', 'en'],
      ['EN-us', 'en'],
      ['fr, ja;q=0.2', 'ja'],
      ['en;q=0.3, ja;q=0.8', 'ja'],
      ['en;q=0, ja', 'ja'],
      ['en;q=0', 'zh-CN'],
      ['zh-TW, en', 'zh-CN'],
      ['zh-Hans-CN;q=0.5, en;q=0.4', 'zh-CN'],
      ['english', 'zh-CN'],
      ['__proto__, constructor', 'zh-CN'],
      [`${'x-y,'.repeat(100)}en`, 'en'],
      // Only its beginning is read.
      [`${'x-y,'.repeat(1000)}en`, 'zh-CN'],
      [',;q=1,;,', 'zh-CN'],
    ]
    for (const [acceptLanguage, lang] of rows)
      assert.equal(await langOf(client, '/login', acceptLanguage), lang, String(acceptLanguage))
  })

  test('PAGE_LANGUAGE=auto serves the home page of one session in the language of each request', async t => {
    const { user } = await setUp(t, { env: { PAGE_LANGUAGE: 'auto', ...NOTHING_BEHIND } })
    const client = await user()
    for (const lang of ['en', 'zh-CN', 'en', 'en', 'zh-CN']) assert.equal(await langOf(client, '/', lang), lang)
  })
})

suite('the configuration', () => {
  test('the configuration replaces texts of the default language by `words` and those of other languages by `languages`', async t => {
    const config = {
      words: { 'login.title': '员工登录', 'login.button': '用{name}登录' },
      languages: { en: { 'login.title': 'Staff' } },
    }
    const { visitor } = await setUp(t, { env: { PAGE_LANGUAGE: 'auto' }, config })
    const chinese = (await visitor().get('/login')).text
    assert.match(chinese, /<title>员工登录 · /)
    assert.match(chinese, />用统一身份认证登录</)
    const english = (await visitor().get('/login', { headers: { 'accept-language': 'en' } })).text
    assert.match(english, /<title>Staff · /)
    assert.match(english, />Continue with SSO</)
  })

  test('the configuration adds a language with all its texts', async t => {
    const ja = { ...zhCN, 'login.title': 'ログイン' }
    const { visitor } = await setUp(t, { env: { PAGE_LANGUAGE: 'ja' }, config: { languages: { ja } } })
    const { text } = await visitor().get('/login')
    assert.match(text, /<html lang="ja">[\s\S]*<title>ログイン · /)
  })

  test('a language in the configuration needs no texts of commands and their errors, which no page shows', async t => {
    const ja = Object.fromEntries(Object.entries(zhCN).filter(([key]) => !/^(?:phrase|cli|config)\./.test(key)))
    const { visitor } = await setUp(t, { env: { PAGE_LANGUAGE: 'ja' }, config: { languages: { ja } } })
    assert.equal((await visitor().get('/login')).status, 200)
  })

  test('the configuration is refused with an error for each invalid text or language', async () => {
    const { 'page.home': _, ...incomplete } = zhCN
    const rows: [config: unknown, expected: RegExp][] = [
      [
        { words: { 'login.titel': 'x' } },
        /^words\['login\.titel'\] is not a sentence of the pages; did you mean 'login\.title'\?$/,
      ],
      [
        { words: { wholly_different: 'x' } },
        /^words\['wholly_different'\] is not a sentence of the pages; expected a name of docs\/customizing\.md\.$/,
      ],
      [{ words: { constructor: 'x' } }, /^words\['constructor'\] is not a sentence of the pages/],
      [{ words: { 'login.title': 5 } }, /words\.login\.title: expected text\.$/],
      [{ words: { 'login.title': ' ' } }, /words\.login\.title: expected text\.$/],
      [{ words: { 'login.title': 'x'.repeat(501) } }, /words\.login\.title: expected at most 500 characters\.$/],
      [{ words: { 'login.title': { other: 'x', on: 'y' } } }, /words\.login\.title: expected text\.$/],
      [
        { words: { 'login.title': { other: 'x' } } },
        /^words\['login\.title'\] has plural forms, which need one of \{count\}, \{ended\}, \{times\}; ours is "登录"\.$/,
      ],
      [{ words: { 'phrase.warnings_count': { one: '{n}', other: '{count}' } } }, /has \{n\}, which has no value/],
      [{ words: 'login.title' }, /words: /],
      [
        { words: { 'login.button': 'Sign in' } },
        /^words\['login\.button'\] lacks \{name\}; ours is "使用 \{name\} 登录"\.$/,
      ],
      [
        { words: { 'login.title': '{x}' } },
        /^words\['login\.title'\] has \{x\}, which has no value; ours is "登录"\.$/,
      ],
      [{ languages: { ja: incomplete } }, /^languages\.ja lacks 'page\.home'\.$/],
      [{ languages: { ja: { ...zhCN, x: 'y' } } }, /^languages\.ja\['x'\] is not a sentence of the pages/],
      [{ languages: { auto: zhCN } }, /languages\.auto: expected a language tag, for example ja or pt-BR\.$/],
      [{ languages: { 'not a language': zhCN } }, /expected a language tag/],
      [{ languages: { 'x"><b>': zhCN } }, /expected a language tag/],
      [{ words: { 'login.titel': 'x' }, languages: { ja: incomplete } }, /did you mean[\s\S]*\nlanguages\.ja lacks/],
    ]
    for (const [config, expected] of rows) assert.match(await problemOf(config), expected)
  })

  test('errors in words and languages are available in Chinese, too', () => {
    const { 'page.home': _, ...incomplete } = zhCN
    const settings = readSettings({})
    const config = {
      words: { 'login.titel': 'x', wholly_different: 'x', 'login.title': '{x}', 'login.button': { other: 'x' } },
      languages: { ja: incomplete, en: { 'login.button': 'x' } },
    }
    const said: string[] = []
    assert.throws(
      () => createLanguages(settings, config),
      (error: unknown) => {
        assert.ok(error instanceof MenshenError)
        said.push(...phrasesOf(error).map(each => phraseIn('zh-CN', each)))
        return true
      },
    )
    assert.deepEqual(said, [
      "words['login.titel'] 不是页面上的文案；您是不是想写 'login.title'？",
      "words['wholly_different'] 不是页面上的文案；应为 docs/customizing.md 中的名称。",
      "words['login.title'] 中的 {x} 没有对应的值；原文是“登录”。",
      "words['login.button'] 有复数形式，文案中须有 {count}、{ended}、{times} 之一；原文是“使用 {name} 登录”。",
      "languages.ja 缺少 'page.home'。",
      "languages.en['login.button'] 缺少 {name}；原文是“使用 {name} 登录”。",
    ])
  })

  test('PAGE_LANGUAGE is refused if it names a language that does not exist', async () => {
    assert.match(
      await problemOf({}, { PAGE_LANGUAGE: 'zh' }),
      /^PAGE_LANGUAGE is "zh"; expected zh-CN, en, auto, .* did you mean/,
    )
    assert.match(
      await problemOf({}, { PAGE_LANGUAGE: 'klingon' }),
      /^PAGE_LANGUAGE is "klingon"; expected zh-CN, en, auto/,
    )
    assert.match(await problemOf({}, { PAGE_LANGUAGE: 'constructor' }), /^PAGE_LANGUAGE is "constructor"/)
  })
})

suite('the language switch', () => {
  const SWITCH = /<button [^>]*name="language" value="en" lang="en"[^>]*>English</

  test('the language switch is on every page for visitors and users, its choice applies to all, and its cookie is not forwarded', async t => {
    const rules: Rule[] = [{ path: '/internal', roles: ['developer'] }]
    const { user, visitor, upstream } = await setUp(t, { config: { rules } })
    const [client, anybody] = [await user(), visitor()]
    const pages: [client: Client, path: string][] = [
      [anybody, '/login'],
      [anybody, '/login?error=access_denied'],
      [anybody, '/_menshen/nothing'],
      [client, '/internal'],
      [client, ACCOUNT],
      [client, CONSOLE],
      [client, '/_menshen/nothing'],
      [await user('admin'), CONSOLE],
    ]
    for (const [client, path] of pages) assert.match((await client.get(path)).text, SWITCH, path)
    for (const [client] of pages) {
      const chosen = await client.post(LANGUAGE, { language: 'en' })
      assert.equal(chosen.status, 303)
      assert.match(chosen.setCookies.join(), /^menshen_language=en; Path=\/; Max-Age=31536000; HttpOnly; SameSite=Lax$/)
    }
    for (const [client, path] of pages) {
      const { text } = await client.get(path)
      assert.match(text, /<html lang="en">/, path)
      assert.match(text, /value="zh-CN" lang="zh-CN"[^>]*>简体中文</, path)
    }
    await client.get('/page')
    assert.doesNotMatch(String(upstream.last().headers.cookie), /menshen_language/)
  })

  test('the language switch applies to the home page, the page for a malformed address and JSON error messages', async t => {
    const { user, visitor } = await setUp(t, { env: NOTHING_BEHIND })
    const client = await user()
    for (const lang of ['en', 'zh-CN', 'en']) {
      await client.post(LANGUAGE, { language: lang })
      assert.equal(await langOf(client, '/'), lang)
      assert.equal(await langOf(client, '/%2e%2e/%zz'), lang)
    }
    const script = visitor()
    const ask = async (path: string) =>
      (await script.get(path, { headers: { accept: 'application/json' } })).json<Record<string, string>>()
    const [{ message: _, requestId: __, ...me }, chinese] = [await ask('/page'), await ask('/_menshen/nothing')]
    await script.post(LANGUAGE, { language: 'en' })
    const { message, requestId: ___, ...after } = await ask('/page')
    assert.deepEqual(after, me, 'the code and the way to sign in stay')
    assert.equal(message, en['session.unauthenticated'])
    const { error, message: english } = await ask('/_menshen/nothing')
    assert.deepEqual([chinese.error, chinese.message], ['not_found', zhCN['notice.not_found.text']])
    assert.deepEqual([error, english], ['not_found', en['notice.not_found.text']])
  })

  test('the language switch redirects to the page in Referer, but not to addresses that sign in or out', async t => {
    const { visitor, baseUrl } = await setUp(t)
    const client = visitor()
    const rows: [referer: string | undefined, location: string][] = [
      [`${baseUrl}/login?error=access_denied`, '/login?error=access_denied'],
      [`${baseUrl}/login`, '/login'],
      [`${baseUrl}/reports/2026?page=2`, '/reports/2026?page=2'],
      [`${baseUrl}${ACCOUNT}`, ACCOUNT],
      [`${baseUrl}${CONSOLE}/audit?user=x`, `${CONSOLE}/audit?user=x`],
      // Where something would happen, it leads home, or asks.
      [`${baseUrl}/callback?code=x&state=a_idp`, '/'],
      [`${baseUrl}/_menshen/doctor/sign-in?ticket=x`, '/'],
      [`${baseUrl}/logout`, '/logout?ask'],
      [undefined, '/'],
      ['', '/'],
    ]
    for (const [referer, location] of rows) {
      const headers = { origin: baseUrl, ...(referer === undefined ? {} : { referer }) }
      const { headers: answered } = await client.post(LANGUAGE, { language: 'en' }, { headers })
      assert.equal(answered.location, location, String(referer))
    }
  })

  test('the language switch on a page that forward-auth shows redirects to the address that the browser asked for', async t => {
    const rules: Rule[] = [{ path: '/internal', roles: ['developer'] }]
    const env = { TRUSTED_PROXIES: '127.0.0.1', ...NOTHING_BEHIND }
    const { user, baseUrl } = await setUp(t, { env, config: { rules } })
    const client = await user()
    const page = await client.get('/_menshen/forward', { headers: { 'x-forwarded-uri': '/internal/x?y=1' } })
    assert.equal(page.status, 403)
    const [, form = ''] = /<form method="post" action="\/_menshen\/language"[^>]*>(.*?)<\/form>/s.exec(page.text) ?? []
    assert.match(form, SWITCH)
    assert.doesNotMatch(form, /<input/, 'the form has no address of its own')
    const headers = { origin: baseUrl, referer: `${baseUrl}/internal/x?y=1` }
    const chosen = await client.post(LANGUAGE, { language: 'en' }, { headers })
    assert.equal(chosen.headers.location, '/internal/x?y=1')
  })

  test('the language switch never redirects to another site or signs out, whatever return path the form contains', async t => {
    const { user } = await setUp(t)
    const client = await user('admin')
    const rows: [path: string, location: string][] = [
      [`${CONSOLE}?username=x`, `${CONSOLE}?username=x`],
      ['/login?error=x', '/login?error=x'],
      ['/_menshen/console/../../logout', '/logout?ask'],
      ['/logout', '/logout?ask'],
      ['/logout?x=1#y', '/logout?ask'],
      ['https://evil.example/', '/'],
      ['https://evil.example/login', '/'],
      ['//evil.example', '/'],
      ['//evil.example/login', '/'],
      ['/\\evil.example', '/'],
      ['/a/..//evil.example', '/'],
      ['/login\r\nset-cookie: a=b', '/loginset-cookie:%20a=b'],
      [`/login?${'x'.repeat(9000)}`, '/login'],
      ['javascript:alert(1)', '/'],
      ['/_menshen/doctor/sign-in?ticket=x', '/'],
      ['/_menshen/check', '/'],
      ['', '/'],
    ]
    for (const [path, location] of rows)
      assert.equal((await client.post(LANGUAGE, { language: 'en', return: path })).headers.location, location, path)
    assert.equal((await client.get(ACCOUNT)).status, 200, 'and nobody was signed out')
  })

  test('the language switch on the sign-out question returns to the question without signing the user out', async t => {
    const { user, baseUrl } = await setUp(t)
    const client = await user()
    const own = { origin: baseUrl, 'sec-fetch-site': 'same-origin', 'sec-fetch-dest': 'document' }
    const chosen = await client.post(
      LANGUAGE,
      { language: 'en' },
      { headers: { ...own, referer: `${baseUrl}/logout` } },
    )
    const question = await client.follow(chosen, { headers: { ...own, 'sec-fetch-mode': 'navigate' } })
    assert.ok(question.text.includes(en['sign_out.question']))
    assert.equal((await client.get(ACCOUNT)).status, 200)
  })

  test('the language switch refuses requests from other sites, prefetches and unknown languages', async t => {
    const { visitor } = await setUp(t)
    const client = visitor()
    const foreign: Record<string, string>[] = [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { referer: 'https://evil.example/' },
      { 'sec-purpose': 'prefetch' },
    ]
    for (const headers of foreign)
      assert.equal((await client.post(LANGUAGE, { language: 'en' }, { headers })).status, 403, JSON.stringify(headers))
    for (const language of ['fr', '', 'EN', 'constructor', 'en; Path=/x', 'auto'])
      assert.equal((await client.post(LANGUAGE, { language })).status, 400, language)
    assert.equal((await client.get(LANGUAGE)).status, 405)
    assert.ok(!client.cookies.has('menshen_language'))
  })

  test('the language switch ignores a cookie with an unknown language', async t => {
    const { visitor } = await setUp(t)
    for (const planted of ['fr', 'constructor', '__proto__', 'en, zh-CN', '%65n'])
      assert.match(
        (await visitor().get('/login', { headers: { cookie: `menshen_language=${planted}` } })).text,
        /<html lang="zh-CN">/,
      )
  })
})
