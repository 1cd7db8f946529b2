// The provider's pages in Chinese and in English.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { start } from './harness.ts'

const HAN = /\p{Script=Han}/u
const langOf = async (response: Response) => /<html lang="([^"]*)">/.exec(await response.text())?.[1]

test('pages are Chinese by default, regardless of Accept-Language', async t => {
  const { get, authorizePath } = await start(t)
  const english = { 'accept-language': 'en' }
  for (const path of ['/', authorizePath(), '/nothing']) assert.equal(await langOf(await get(path, english)), 'zh-CN')
})

test('pages use the configured language, with auto the browser’s, and Chinese if neither is supported', async t => {
  const english = await start(t, { language: 'en' })
  assert.equal(await langOf(await english.get('/')), 'en')
  const auto = await start(t, { language: 'auto' })
  const rows: [acceptLanguage: string, lang: string][] = [
    ['en-GB,en;q=0.9', 'en'],
    ['fr, en;q=0.5', 'en'],
    ['zh-CN,zh;q=0.9,en;q=0.8', 'zh-CN'],
    ['fr', 'zh-CN'],
    ['', 'zh-CN'],
  ]
  for (const [acceptLanguage, lang] of rows)
    assert.equal(await langOf(await auto.get('/', { 'accept-language': acceptLanguage })), lang, acceptLanguage)
  const japanese = await start(t, { language: 'ja' })
  assert.equal(await langOf(await japanese.get('/')), 'zh-CN')
})

test('English pages contain no Chinese except for names and the footer with the language switch', async t => {
  const { get, authorizePath, postForm, provider, tokensFor } = await start(t, { language: 'en', users: [ANN] })
  await tokensFor('ann')
  const pages = [
    await get('/'),
    await get(authorizePath()),
    await get(authorizePath({ client_id: 'x' })),
    await get(authorizePath({ redirect_uri: 'https://evil.example/' })),
    await get('/nothing'),
    await get('/oauth/logout'),
    await postForm(authorizePath(), { username: 'nobody' }),
    await postForm(authorizePath(), { username: 'ann' }, { origin: 'https://evil.example' }),
    await postForm('/panel', {}),
    await postForm('/panel', { delayMs: 'soon' }, { origin: provider.url }),
  ]
  const texts = await Promise.all(pages.map(page => page.text()))
  // A picture of a user shows the first character of the name.
  const withoutNames = texts.map(text => text.replace(/<footer>.*<\/footer>/s, '').replaceAll(/[安娜]/g, ''))
  for (const text of withoutNames) assert.doesNotMatch(text, HAN)
  for (const text of texts.slice(0, 2)) assert.ok(text.includes(ANN.nickname), text)
  await postForm('/panel', { delayMs: '1000', failTokenCalls: '999' }, { origin: provider.url })
  assert.match(await (await get('/')).text(), /Delay: 1000 ms<\/span> <span>Failing token calls: always/)
})

test('the language switch stores the choice in a cookie and redirects back to the page', async t => {
  const { get, postForm, authorizePath, provider } = await start(t)
  const own = { origin: provider.url }
  assert.match(await (await get('/')).text(), /<button [^>]*name="language" value="en" lang="en">English</)
  const rows: [referer: string, location: string][] = [
    [provider.url + authorizePath(), authorizePath()],
    [`${provider.url}/`, '/'],
    ['https://evil.example/oauth/authorize', '/'],
    ['', '/'],
  ]
  for (const [referer, location] of rows) {
    const chosen = await postForm('/language', { language: 'en' }, { ...own, ...(referer && { referer }) })
    assert.deepEqual([chosen.status, chosen.headers.get('location')], [303, location])
    assert.match(chosen.headers.get('set-cookie') ?? '', /^menshen_language=en; Path=\/; .*HttpOnly; SameSite=Lax$/)
  }
  assert.equal(await langOf(await get(authorizePath(), { cookie: 'a=b; menshen_language=en' })), 'en')
  assert.equal(await langOf(await get('/', { cookie: 'menshen_language=constructor' })), 'zh-CN')
  for (const headers of [{}, { origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }])
    assert.equal((await postForm('/language', { language: 'en' }, headers)).headers.get('set-cookie'), null)
  assert.equal((await postForm('/language', { language: 'fr' }, own)).status, 400)
})

const ANN = {
  sub: '1',
  username: 'ann',
  nickname: '安娜',
  email: '',
  phone_number: '',
  ou_id: '',
  ou_name: '',
  groups: ['finance'],
}
