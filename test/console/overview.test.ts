// The overview: its first sentence says what is wrong now, its plots since when; in a real browser, as it happens.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { openWire, request } from '../forward/raw.ts'
import { cookieOf, openScene, type Scene, until } from '../forward/scene.ts'
import { openPage, startBrowser } from '../kit/browser.ts'
import { type Client, signIn } from '../kit/client.ts'

const CONSOLE = '/_menshen/console'
const LIVE = '/_menshen/console/live'
const NAMED = { PROVIDER_NAME: '统一认证平台', REFRESH_FAILURE: 'keep' }

let browser: Browser

before(async () => {
  browser = await startBrowser()
})

after(() => browser?.close())

/** What it says is wrong, in its order. */
function sentencesOf(html: string): string[] {
  const section = /<section id="problems"[^>]*>(.*?)<\/section>/s.exec(html)?.[1] ?? ''
  return [...section.matchAll(/<p>(.*?)<\/p>/gs)].map(([, sentence = '']) => sentence.replace(/<[^>]*>/g, ''))
}

/** In the night the provider stops: a refresh fails, and two users cannot sign in. */
async function stopProvider(scene: Scene): Promise<void> {
  const user = await scene.user('zhangsan')
  scene.passSeconds(7000)
  for (const endpoint of ['token', 'refresh'] as const)
    scene.provider.answer(endpoint, { kind: 'json', status: 503, body: {} })
  await user.get('/')
  for (const username of ['lisi', 'wangwu']) await signIn(scene.visitor(), scene.provider, { username })
}

/** What was reported a moment ago may still be on its way to the store, and what was shown is kept for a moment. */
async function lookAgain(scene: Scene, developer: Client, isThere: (html: string) => boolean): Promise<string> {
  let html = ''
  await until(async () => {
    scene.passSeconds(5)
    html = (await developer.get(CONSOLE)).text
    return isThere(html)
  })
  return html
}

test('a provider that has stopped is named by the first sentence: since when, how often, for how many', async t => {
  const scene = await openScene(t, { env: NAMED })
  await stopProvider(scene)
  scene.passSeconds(1)
  scene.provider.answer('token', { kind: 'normal' })
  const developer = await scene.user('admin')
  const recovered = await lookAgain(scene, developer, html => sentencesOf(html).join().includes('已恢复'))
  assert.match(
    sentencesOf(recovered)[0] ?? '',
    /^统一认证平台 在过去一小时里失败过 3 次，2026年3月1日 \d\d:56 已恢复。$/,
  )
  scene.passSeconds(60)
  scene.provider.answer('token', { kind: 'json', status: 503, body: {} })
  await signIn(scene.visitor(), scene.provider, { username: 'lisi' })
  const stopped = await lookAgain(scene, developer, html => sentencesOf(html).join().includes('无法完成'))
  assert.match(sentencesOf(stopped)[0] ?? '', /^统一认证平台 从 .* 起无法完成登录或续期：1 次失败/)
})

test('the page says it by itself, and plots it, without being loaded again', async t => {
  const scene = await openScene(t, { env: NAMED })
  const developer = await scene.user('admin')
  const { page, problems } = await openPage(t, browser, { timezoneId: 'UTC' })
  await page
    .context()
    .addCookies([{ name: 'menshen_session', value: developer.cookies.get('menshen_session') ?? '', url: scene.url }])
  await page.goto(scene.url + CONSOLE)
  await page.locator('#plot-signIns canvas').waitFor()
  assert.equal(await page.locator('#plots canvas').count(), 4)
  scene.passSeconds(5)
  scene.provider.answer('token', { kind: 'json', status: 503, body: {} })
  for (const username of ['lisi', 'wangwu']) await signIn(scene.visitor(), scene.provider, { username })
  // What was shown is kept for a moment, by the gateway's clock.
  const ticking = setInterval(() => scene.passSeconds(5), 500)
  t.after(() => clearInterval(ticking))
  await page.getByText('无法完成登录或续期：2 次失败').waitFor()
  await page.getByText('失败 token_error').waitFor()
  const figures = await page.locator('.figures').innerText()
  assert.match(figures, /登录失败\s+2/)
  assert.deepEqual(problems, [])
})

test('a page whose stream was answered by a proxy, because the gateway starts anew, hears of it again', async t => {
  const scene = await openScene(t)
  const developer = await scene.user('admin')
  const { page } = await openPage(t, browser)
  const value = developer.cookies.get('menshen_session') ?? ''
  await page.context().addCookies([{ name: 'menshen_session', value, url: scene.url }])
  for (const [address, live] of [
    [CONSOLE, '#plot-signIns canvas'],
    [`${CONSOLE}/audit?event=refused`, '#trail tbody tr'],
  ] as const) {
    await page.route('**/live?*', route => route.fulfill({ status: 502 }), { times: 1 })
    await page.goto(scene.url + address)
    if (address !== CONSOLE) await (await scene.user('lisi')).get(CONSOLE)
    await page.locator(live).first().waitFor()
  }
})

test('the stream ends with the session of whoever looks, and is nobody else’s', async t => {
  const scene = await openScene(t)
  assert.equal((await scene.visitor().get(LIVE, { headers: { accept: 'text/event-stream' } })).status, 302)
  assert.equal((await (await scene.user('zhangsan')).get(LIVE)).status, 403)
  const developer = await scene.user('admin')
  const wire = await openWire(scene.url)
  t.after(() => wire.socket.destroy())
  wire.socket.write(request(`GET ${LIVE}?range=week HTTP/1.1`, `cookie: ${cookieOf(developer)}`))
  await wire.sees('event: plot')
  await developer.post('/logout', '', { headers: { origin: scene.baseUrl } })
  await wire.rest()
})

test('an error that anybody can put into an address is no outage', async t => {
  const scene = await openScene(t, { env: NAMED })
  const developer = await scene.user('admin')
  scene.passSeconds(1)
  for (const error of ['server_error', 'temporarily_unavailable', 'token_error', 'provider_unreachable'])
    await scene.visitor().get(`/callback?error=${error}&state=x_idp`)
  const failed = `${CONSOLE}/audit.jsonl?event=sign_in_failed`
  await until(async () => (await developer.get(failed)).text.split('\n').length === 5)
  assert.ok(
    !sentencesOf((await developer.get(CONSOLE)).text)
      .join()
      .includes('统一认证平台'),
  )
})

test('a stream that refreshes the session brings its cookie', async t => {
  const scene = await openScene(t)
  const developer = await scene.user('admin')
  scene.passSeconds(7000)
  for (const path of [LIVE, `${CONSOLE}/audit/live`]) {
    const wire = await openWire(scene.url)
    t.after(() => wire.socket.destroy())
    wire.socket.write(request(`GET ${path} HTTP/1.1`, `cookie: ${cookieOf(developer)}`))
    assert.match(await wire.sees('\n\n'), /set-cookie: menshen_session=/)
  }
})

test('a clock that was set back does not stop the overview', async t => {
  const scene = await openScene(t, { env: NAMED })
  const developer = await scene.user('admin')
  await developer.get(CONSOLE)
  scene.passSeconds(-86_400)
  scene.provider.answer('token', { kind: 'json', status: 503, body: {} })
  await signIn(scene.visitor(), scene.provider, { username: 'lisi' })
  await lookAgain(scene, developer, html => sentencesOf(html).join().includes('统一认证平台'))
})

test('a range that nobody knows is the last hour, and old addresses of the list lead to it', async t => {
  const scene = await openScene(t)
  const developer = await scene.user('admin')
  for (const range of ['', 'constructor', '<b>', 'year'])
    assert.match(
      (await developer.get(`${CONSOLE}?range=${encodeURIComponent(range)}`)).text,
      /range=hour" aria-current/,
    )
  const { status, headers } = await developer.get(`${CONSOLE}?username=lisi`)
  assert.deepEqual([status, headers.location], [302, `${CONSOLE}/sessions?username=lisi`])
})
