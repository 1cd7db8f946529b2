// Every sentence in every language: all there, all with their values, none in the code.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import test, { suite } from 'node:test'
import { homePage } from '../../src/account/home-page.ts'
import { newKeyPage, signInForKeyPage } from '../../src/account/key-section.ts'
import { accountPage } from '../../src/account/page.ts'
import type { AdviceCode } from '../../src/config/advice.ts'
import type { Config } from '../../src/config/file.ts'
import { SETTINGS } from '../../src/config/settings.ts'
import { confirmEndPage } from '../../src/console/end-sessions.ts'
import { storeUnavailablePage } from '../../src/console/frame.ts'
import { healthPage } from '../../src/console/health-tab.ts'
import { overviewPage } from '../../src/console/overview.ts'
import { sessionPage, sessionsPage } from '../../src/console/sessions-tab.ts'
import { LOGIN_ERRORS } from '../../src/errors.ts'
import { plotOf } from '../../src/observe/history.ts'
import { ALARM_EVENTS } from '../../src/observe/problems.ts'
import { loginPage } from '../../src/pages/login-page.ts'
import {
  confirmSignOutPage,
  lostCookiePage,
  NOTICES,
  type NoticeName,
  noticePage,
  refusedPage,
} from '../../src/pages/notices.ts'
import { checkMessages, createLanguages, type Words } from '../../src/pages/words.ts'
import { createIcon } from '../../src/portal/icon.ts'
import { portalPage } from '../../src/portal/page.ts'
import { deriveKeys } from '../../src/session/derived-keys.ts'
import { newFreshness } from '../../src/stores/store.ts'
import { en } from '../../src/text/en.ts'
import type { Sentences } from '../../src/text/placeholders.ts'
import { quoted } from '../../src/text/text.ts'
import { zhCN } from '../../src/text/zh-CN.ts'
import { consoleSamples, healthSample, VIEWER } from './console-samples.ts'

const NOW = Date.parse('2026-03-01T08:00:00Z')
const HAN = /\p{Script=Han}/u
const APP_NAME = 'Portal'
const KEY = { id: 'k', name: 'laptop', createdAt: NOW, expiresAt: NOW }
const KEY_PROBLEMS = ['too_many', 'name_taken', 'bad_name', 'bad_days'] as const

function wordsIn(lang: string, config: Config = {}, appName = APP_NAME): Words {
  const words = createLanguages({ PAGE_LANGUAGE: lang, APP_NAME: appName }, config).get(lang)
  assert.ok(words)
  return words
}

/** Every page with everything that it can say, as far as two cases do not exclude each other. */
const FIRST_RUN = { isFirstRun: true, baseUrl: 'http://localhost:3000', callbackPath: '/callback' }

function allPages(words: Words): string[] {
  const way = { id: 'staff', name: undefined, preset: 'github', remembered: false, authorizationUrl: '' }
  const login = {
    missing: [],
    ways: [way],
    error: undefined,
    signedIn: undefined,
    signedOut: undefined,
    wanted: '/reports',
    requestId: 'r',
  }
  const userInfo = {
    sub: '1',
    ou_id: '',
    nickname: '',
    phone_number: '',
    ou_name: 'Sales',
    email: 'a@example.com',
    username: 'ann',
  }
  const roles = ['developer', 'common', 'auditor']
  const sessions = roles.map(userRole => ({
    isAuthenticated: true as const,
    accessToken: '',
    refreshToken: '',
    tokenIssuedAt: NOW,
    tokenExpiresIn: 7200,
    userInfo,
    userRole,
    groups: ['finance'],
  }))
  const who = { sub: '1', username: 'ann', role: 'common', groups: [] }
  const loaded = {
    key: 'k',
    version: 1,
    expiresAt: NOW,
    signedInAt: NOW,
    seenAt: NOW,
    confirmedAt: NOW,
    who,
    ...newFreshness(),
  }
  const [first = assert.fail()] = sessions
  const summary = { username: 'ann', nickname: '', userRole: 'common', signedInAt: NOW, seenAt: NOW }
  const advice = Object.keys(zhCN).flatMap(key => {
    const code = /^advice\.(.*)/.exec(key)?.[1]
    return code === undefined ? [] : [{ code: code as AdviceCode, remedy: quoted('Change it.') }]
  })
  const view = {
    viewer: VIEWER,
    now: NOW,
    ownKey: 'a',
    providerNames: undefined,
    text: 'ann',
    next: 'b',
    isFirst: false,
    ended: { ended: 1, user: 'ann' },
    deviceName: ({ t }: Words) => t('device.unknown'),
  }
  const device = { key: 'a', kind: 'phone' as const, name: 'Chrome', signedInAt: NOW, seenAt: NOW }
  const ends = { end: NOW, idleEnd: NOW, unusedEnd: NOW }
  const account = {
    now: NOW,
    ends,
    providerName: 'Staff',
    own: device,
    others: { devices: [device], areMore: true },
    signIns: [{ time: NOW, device: 'Chrome', address: undefined, isNew: true }],
  }
  const listed = [
    { key: 'a', expiresAt: NOW, summary },
    { key: 'b', expiresAt: NOW },
  ]
  const users = listed.map((session, n) => ({ sessions: [session], areMore: n === 1 }))
  const choices = listed.flatMap(session => [true, false].map(all => ({ session, all })))
  const finding = (level: 'good' | 'warning' | 'failure') => ({ name: level, level, seen: quoted('seen') })
  const { good, warning, failure } = { good: finding('good'), warning: finding('warning'), failure: finding('failure') }
  const overview = {
    range: 'hour' as const,
    plot: plotOf([]),
    before: undefined,
    isStoreUnavailable: false,
    problems: [],
    providerNames: new Map(),
    advice: [],
    failures: [],
  }
  const problems = [
    { kind: 'provider' as const, provider: '', since: NOW, failures: 2, people: 1, event: 'sign_in_failed' },
    {
      kind: 'recovered' as const,
      provider: '',
      since: NOW,
      failures: 2,
      people: 1,
      event: 'sign_in_failed',
      until: NOW,
    },
    ...ALARM_EVENTS.map(code => ({
      kind: 'event' as const,
      code,
      times: 2,
      since: NOW,
      last: NOW + 60_000,
      isOver: false,
    })),
  ]
  const hours = { from: '09:00', to: '17:00', zone: 'UTC' }
  const shown = Array.from({ length: 9 }, (_, n) => {
    const title = `wiki ${n}`
    const icon = createIcon(undefined, title, deriveKeys({ SECRET: undefined, CLIENT_SECRET: undefined }))
    const application = { title, description: '', url: '/', path: '/', host: undefined, icon, text: title, tile: '' }
    const code = (['outside_network', 'outside_hours', 'step_up_failed', 'foreign_origin'] as const)[n]
    const unavailable = code && { code, hours: code === 'outside_hours' ? hours : undefined }
    return unavailable ? { application, unavailable } : { application }
  })
  return [
    loginPage(words, { ...login, missing: ['CLIENT_ID'], signedOut: 'here' }),
    loginPage(words, { ...login, ways: [way, { ...way, id: 'b' }], lastUsed: 'b', signedOut: 'everywhere' }),
    loginPage(words, { ...login, isStoreUnavailable: true }),
    loginPage(words, { ...login, signedIn: { name: 'ann', continueTo: '/' } }),
    ...[...LOGIN_ERRORS, 'unheard_of'].map(error => loginPage(words, { ...login, error })),
    ...(Object.keys(NOTICES) as NoticeName[]).map(name =>
      noticePage(words, name, { retryPath: '/x', retrySeconds: 5, isUser: true, requestId: 'r' }),
    ),
    confirmSignOutPage(words),
    lostCookiePage(words, { baseUrl: 'https://a.example', otherHost: 'b.example', requestId: 'r' }),
    ...sessions.map(session => refusedPage(words, session, { wanted: '/x', requestId: 'r' })),
    ...sessions.map(session =>
      homePage(words, { ...loaded, session, user: session }, { providerName: 'Staff', ends, ...FIRST_RUN }),
    ),
    ...sessions.map(session =>
      accountPage(
        words,
        { ...loaded, session, user: session },
        { ...account, ended: 1, keys: { keys: [KEY], maxDays: 366 } },
      ),
    ),
    accountPage(
      words,
      { ...loaded, session: first, user: first },
      { ...account, signIns: [], others: undefined, ended: 0, keys: undefined },
    ),
    ...KEY_PROBLEMS.map(problem =>
      accountPage(
        words,
        { ...loaded, session: first, user: first },
        { ...account, ended: 0, keys: { keys: [{ ...KEY, usedAt: NOW }], problem, maxDays: 366 } },
      ),
    ),
    ...sessions.flatMap(session => {
      const signedIn = { ...loaded, session, user: session }
      return [[], shown].flatMap(shown =>
        [true, false].flatMap(leadsHome =>
          ['', 'wiki'].map(filter => portalPage(words, signedIn, { shown, filter, leadsHome })),
        ),
      )
    }),
    newKeyPage(words, { ...KEY, key: 'mk_' }),
    signInForKeyPage(words, '/x', 10),
    ...consoleSamples(words),
    overviewPage(words, VIEWER, overview),
    overviewPage(words, VIEWER, { ...overview, problems, advice, failures: [failure], isStoreUnavailable: true }),
    sessionsPage(words, { ...view, users }),
    sessionsPage(words, { ...view, users, text: '', providerNames: new Map([['staff', quoted('Staff')]]) }),
    sessionsPage(words, { ...view, users: [], ended: { ended: 3, users: 2 } }),
    sessionsPage(words, { ...view, users: [], text: '', count: 0, ended: { ended: 0 } }),
    storeUnavailablePage(words, VIEWER, 'sessions'),
    ...[...listed, undefined].map(session =>
      sessionPage(words, {
        viewer: VIEWER,
        key: 'a',
        session,
        isOwn: true,
        areMore: true,
        keys: [KEY, { ...KEY, usedAt: NOW }],
        events: session ? [{ id: 'e', time: NOW, event: 'sign_in', fields: { session: 'a' } }] : [],
        names: { providers: undefined, deviceName: view.deviceName, displayName: () => '' },
      }),
    ),
    ...[...choices.map(choice => [choice]), choices].map((chosen, n) =>
      confirmEndPage(words, { viewer: VIEWER, choices: chosen, isOwn: n > 0, deviceName: view.deviceName }),
    ),
    ...[[good], [warning], [failure]].map(findings => healthPage(words, { ...healthSample, findings })),
  ]
}

/** A language is called what its own speakers call it. */
function withoutOtherLanguages(html: string, { lang, languages }: Words): string {
  const others = languages.filter(other => other.lang !== lang).map(other => other.label)
  return others.reduce((text, label) => text.replaceAll(`>${label}<`, '><'), html)
}

/** Codes and what they are called in Chinese. One code can have several rows. */
const CODE_WORDS = new Map<string, string[]>()
for (const [key, sentence] of Object.entries<string>(zhCN)) {
  const code =
    /^(?:reason\.(?:ended_|proof_)?|audit\.(?:event|error|fact)_|error\.)([a-z]+(?:_[a-z]+)+)(?:\.message)?$/.exec(
      key,
    )?.[1]
  if (code !== undefined) CODE_WORDS.set(code, [...(CODE_WORDS.get(code) ?? []), sentence])
}

/** The texts of a page, each as far as a reader sees it in one piece. The details for the support are codes by design. */
function blocksIn(html: string): string[] {
  return html
    .replaceAll(/<(script|style|pre)\b.*?<\/\1>|<section class="details".*?<\/section>/gs, '')
    .replaceAll(/<\/?(?:a|b|bdi|code|small|span|strong|time|wbr)\b[^>]*>/g, '')
    .split(/<[^>]*>/)
    .map(text => text.trim())
    .filter(text => text !== '')
}

function codesAloneIn(block: string): string[] {
  const words = block.match(/\b[a-z]+(?:_[a-z]+)+\b/g) ?? []
  return words.filter(code => CODE_WORDS.get(code)?.every(sentence => !block.includes(sentence)))
}

suite('the sentences', () => {
  test('both languages have the same sentences with the same values', () => {
    assert.deepEqual(checkMessages('en', en, zhCN, { whole: true }), [])
    assert.deepEqual(Object.keys(en).sort(), Object.keys(zhCN).sort())
  })

  test('a missing sentence, a surplus one or a missing value does not compile', () => {
    // @ts-expect-error: one is missing
    const missing: Sentences<{ one: ''; two: '' }> = { one: '' }
    // @ts-expect-error: one is too many
    const surplus: Sentences<{ one: '' }> = { one: '', two: '' }
    assert.ok(missing && surplus)
    const { t } = wordsIn('en')
    // @ts-expect-error: it needs a name
    assert.equal(t('login.button'), 'Continue with {name}')
    // @ts-expect-error: it has no value of this name
    assert.ok(t('login.button', { nmae: 'x' }))
    // @ts-expect-error: there is no such sentence
    assert.throws(() => t('login.tilte'))
    assert.equal(t('login.button', { name: '{name}' }), 'Continue with {name}')
  })

  test('Chinese sentences are only in the language tables and not elsewhere in the code', () => {
    const tables = /^src\/text\/(help-)?zh-CN\.ts$/
    /** Providers are called what they are called, and the development provider has a voice of its own. */
    const others = /^src\/(provider\/presets|dev-provider)\//
    /** Defaults and examples, and what has both languages in one row. */
    const shown = /^src\/(events|setting-options|config\/(settings|provider-fields|file|kinds|read))\.ts$/
    const root = new URL('../../', import.meta.url)
    const files = ['src', 'browser'].flatMap(folder =>
      readdirSync(new URL(folder, root), { recursive: true, encoding: 'utf8' }).map(name => `${folder}/${name}`),
    )
    const scripts = files.filter(path => /\.[jt]s$/.test(path) && ![tables, others, shown].some(not => not.test(path)))
    assert.ok(scripts.length > 100)
    assert.deepEqual(
      scripts.filter(path => HAN.test(readFileSync(new URL(path, root), 'utf8'))),
      [],
    )
  })
})

suite('every page', () => {
  test('every English page declares its language and has no Chinese sentence', () => {
    const words = wordsIn('en')
    for (const html of allPages(words)) {
      assert.match(html, /<html lang="en">/)
      const chinese = withoutOtherLanguages(html, words)
        .split('\n')
        .filter(line => HAN.test(line))
      assert.deepEqual(chinese, [])
    }
  })

  test('every Chinese page shows a code together with its words if there are any', () => {
    const alone = allPages(wordsIn('zh-CN')).flatMap(html =>
      blocksIn(html).flatMap(block => codesAloneIn(block).map(code => `${code}: ${block}`)),
    )
    assert.deepEqual([...new Set(alone)], [])
    const found = (html: string) => blocksIn(html).flatMap(codesAloneIn)
    assert.deepEqual(found('<td>失败 <b>token_error</b></td>'), ['token_error'])
    assert.deepEqual(found('<td>失败：换取令牌失败（<code>token_error</code>）</td><td>zhang_san</td>'), [])
  })

  test('every page declares its language and has a value for every placeholder, in both languages', () => {
    for (const lang of ['zh-CN', 'en'])
      for (const html of allPages(wordsIn(lang))) {
        assert.match(html, new RegExp(`<html lang="${lang}">`))
        // What to write into a file has braces of its own.
        assert.doesNotMatch(html.replaceAll(/<pre.*?<\/pre>/gs, ''), /[{}]|undefined|\[object/)
      }
  })

  test('every page escapes the sentences that an operator configured', () => {
    const sentence = '<script>alert(1)</script> & {name}'
    const config = { words: { 'login.button': sentence, 'login.signed_in': sentence } }
    for (const html of allPages(wordsIn('zh-CN', config))) assert.doesNotMatch(html, /alert\(1\)<\/script>/)
    const html = allPages(wordsIn('zh-CN', config)).join()
    assert.match(html, /&lt;script&gt;alert\(1\)&lt;\/script&gt; &amp; <strong>ann<\/strong>/)
  })

  test('dates have the usual format of the language', () => {
    const at = Date.parse('2026-03-01T12:34:00')
    assert.match(wordsIn('zh-CN').date(at), /^2026年3月1日 12:34$/)
    assert.match(wordsIn('en').date(at), /^Mar 1, 2026, 12:34\sPM$/)
  })

  test('the default name of the application is in the language of the page, and a configured one stays as it is', () => {
    const unset = SETTINGS.APP_NAME.default
    assert.equal(wordsIn('zh-CN', {}, unset).appName, unset)
    assert.doesNotMatch(wordsIn('en', {}, unset).appName, HAN)
    assert.equal(wordsIn('en', {}, '采购平台').appName, '采购平台')
  })
})
