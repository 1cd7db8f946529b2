// The login page: one heading, one sentence, a button for each provider with its mark, the one used last first.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { PROVIDER_MARKS, providerMark } from '../../src/pages/provider-marks.ts'
import { PRESETS } from '../../src/provider/presets/presets.ts'
import { startOidcServer } from '../kit/oidc-server.ts'
import { openGateway, setUp } from '../kit/set-up.ts'

const COOKIE = 'menshen_provider'

async function openProviders(t: TestContext, env: Record<string, string> = {}) {
  const [staff, partners] = [await startOidcServer(t), await startOidcServer(t)]
  const providers = {
    staff: { ...staff.config, name: '企业账号' },
    partners: { ...partners.config, name: 'Partners' },
    friends: { preset: 'github', clientId: 'x', clientSecret: 'y' },
  }
  const gateway = await openGateway(t, env, { config: { providers } })
  for (const provider of [staff, partners]) provider.now = gateway.now
  return gateway
}

/** The buttons in their order: form, words, and what is said besides. */
function buttonsOf(text: string) {
  return [...text.matchAll(/<form id="([\w-]+)" class="sign-in".*?<button [^>]*>(.*?)<\/button>/gs)].map(
    ([, form, inner = '']) => ({
      form,
      words: inner.replaceAll(/<(svg|small).*?<\/\1>/gs, '').trim(),
      last: /<small>(.*?)<\/small>/.exec(inner)?.[1],
      isDrawn: inner.startsWith('<svg class="provider-mark"'),
    }),
  )
}

test('each sign-in button names its provider, and the button of a service preset has a mark', async t => {
  const gateway = await openProviders(t)
  const { text } = await gateway.visitor().get('/login')
  assert.deepEqual(buttonsOf(text), [
    { form: 'sign-in', words: '使用企业账号登录', last: undefined, isDrawn: false },
    { form: 'sign-in-partners', words: '使用 Partners 登录', last: undefined, isDrawn: false },
    { form: 'sign-in-friends', words: '使用 GitHub 登录', last: undefined, isDrawn: true },
  ])
  const english = await openProviders(t, { PAGE_LANGUAGE: 'en' })
  const words = buttonsOf((await english.visitor().get('/login')).text).map(({ words }) => words)
  assert.deepEqual(words, ['Continue with 企业账号', 'Continue with Partners', 'Continue with GitHub'])
})

test('a preset is named in the language of the page, and a name that the operator set is the same in every language', async t => {
  const client = { clientId: 'x', clientSecret: 'y' }
  const providers = {
    feishu: { preset: 'feishu', ...client },
    dingtalk: { preset: 'dingtalk', ...client },
    wecom: { preset: 'wecom', ...client, vars: { agent: '1' }, name: '总部' },
    github: { preset: 'github', ...client },
  }
  const buttons = async (PAGE_LANGUAGE: string) => {
    const gateway = await openGateway(t, { PAGE_LANGUAGE }, { config: { providers } })
    return buttonsOf((await gateway.visitor().get('/login')).text).map(({ words }) => words)
  }
  assert.deepEqual(await buttons('zh-CN'), ['使用飞书登录', '使用钉钉登录', '使用总部登录', '使用 GitHub 登录'])
  assert.deepEqual(await buttons('en'), [
    'Continue with Feishu',
    'Continue with DingTalk',
    'Continue with 总部',
    'Continue with GitHub',
  ])
})

test('the name of a preset has no Chinese characters, and its nameZh, if set, has some', () => {
  for (const [preset, { name = '', nameZh }] of Object.entries(PRESETS)) {
    assert.doesNotMatch(name, /\p{Script=Han}/u, preset)
    if (nameZh !== undefined) assert.match(nameZh, /\p{Script=Han}/u, preset)
  }
})

test('the provider that was used last is first and marked 上次使用, and its form keeps its id', async t => {
  const gateway = await openProviders(t)
  const visitor = gateway.visitor()
  const started = await visitor.post('/login', { provider: 'partners' }, { headers: { origin: gateway.url } })
  assert.equal(visitor.cookies.get(COOKIE), undefined, 'only a sign-in that succeeds is remembered')
  const callback = await visitor.follow(started)
  const signedIn = await visitor.follow(callback)
  const set = signedIn.setCookies.find(cookie => cookie.startsWith(`${COOKIE}=`)) ?? assert.fail('no cookie')
  assert.match(set, /^menshen_provider=partners; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax$/)
  await visitor.post('/logout', '', { headers: { origin: gateway.url } })
  const buttons = buttonsOf((await visitor.get('/login')).text)
  assert.deepEqual(
    buttons.map(({ form, last }) => [form, last]),
    [
      ['sign-in-partners', '上次使用'],
      ['sign-in', undefined],
      ['sign-in-friends', undefined],
    ],
  )
})

test('a provider cookie with anything but the key of a configured provider is ignored and never shown', async t => {
  const gateway = await openProviders(t)
  for (const value of [
    'nobody',
    '__proto__',
    'constructor',
    '%3Cscript%3E',
    '<script>',
    'partners x',
    '',
    'x'.repeat(3000),
  ]) {
    const { status, text } = await gateway.visitor().get('/login', { headers: { cookie: `${COOKIE}=${value}` } })
    assert.equal(status, 200)
    assert.deepEqual(
      buttonsOf(text).map(({ form, last }) => [form, last]),
      [
        ['sign-in', undefined],
        ['sign-in-partners', undefined],
        ['sign-in-friends', undefined],
      ],
      value,
    )
    assert.doesNotMatch(text, /<script>/)
  }
})

test('with a single provider no provider cookie is set or used', async t => {
  const scene = await setUp(t)
  const user = await scene.user()
  assert.equal(user.cookies.get(COOKIE), undefined)
  const { text } = await scene.visitor().get('/login', { headers: { cookie: `${COOKIE}=default` } })
  assert.deepEqual(
    buttonsOf(text).map(({ words, last }) => [words, last]),
    [['使用统一身份认证登录', undefined]],
  )
})

test('the login page has one heading and one lead sentence, which an error notice replaces', async t => {
  const scene = await setUp(t)
  const leads = (text: string) => [...text.matchAll(/<p class="lead">(.*?)<\/p>/gs)].map(([, lead = '']) => lead)
  const plain = (await scene.visitor().get('/login')).text
  assert.match(plain, /<h1>登录<\/h1>/)
  assert.match(plain, /<title>登录 · 统一登录<\/title>/)
  assert.deepEqual(leads(plain), ['请使用单位账号登录'])
  const visitor = scene.visitor()
  const wanted = (await visitor.follow(await visitor.get('/reports', { headers: { accept: 'text/html' } }))).text
  assert.equal(leads(wanted).length, 1)
  assert.match(leads(wanted)[0] ?? '', /^登录后前往 .*\/reports/)
  const failed = (await scene.visitor().get('/login?error=access_denied')).text
  assert.deepEqual(leads(failed), [], 'the notice says what to do')
  const named = await setUp(t, { env: { APP_NAME: '采购平台' } })
  assert.match((await named.visitor().get('/login')).text, /<h1>采购平台<\/h1>/)
})

test('every service preset has a drawn mark with enough contrast to white, and generic presets have none', () => {
  const generic = ['idaas', 'oidc', 'oauth2']
  assert.deepEqual(
    Object.keys(PROVIDER_MARKS).sort(),
    Object.keys(PRESETS)
      .filter(name => !generic.includes(name))
      .sort(),
  )
  for (const name of generic) assert.equal(providerMark(name), undefined)
  assert.equal(providerMark('__proto__'), undefined)
  for (const [name, { color, drawing }] of Object.entries(PROVIDER_MARKS)) {
    assert.match(color, /^#[\da-f]{6}$/, name)
    assert.match(drawing, /^(?:<(?:path|circle) [\w\s".,="-]+\/>)+$/, name)
    assert.ok(contrastWithWhite(color) >= 4.5, `${name}: white on ${color}`)
    assert.match(String(providerMark(name)), /aria-hidden="true"/)
  }
})

function contrastWithWhite(hex: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map(at => {
    const share = Number.parseInt(hex.slice(at, at + 2), 16) / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 1.05 / (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05)
}
