// The overview: its first sentence says what is wrong now, its plots since when; in a real browser, as it happens.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { constants } from 'node:http2'
import { after, before, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { problemList } from '../../src/console/overview.ts'
import { type Finding, failure } from '../../src/doctor/finding.ts'
import { plotOf } from '../../src/observe/history.ts'
import type { CurrentProblem } from '../../src/observe/problems.ts'
import { createLanguages } from '../../src/pages/words.ts'
import { quoted } from '../../src/text/text.ts'
import { openPage, startBrowser } from '../kit/browser.ts'
import { type Client, cookieOf, signIn } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import { openHttp2 } from '../kit/http2-client.ts'
import { FRAME, frame, number, openFrames, requestFrame } from '../kit/http2-frames.ts'
import { type Scene, setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'
import { makeAuthority, makeCertificate } from '../proxies/certificates.ts'
import { openWire, request } from '../proxy/raw.ts'

const CONSOLE = '/_menshen/console'
const LIVE = '/_menshen/console/live'
const NAMED = { PROVIDER_NAME: '统一认证平台', REFRESH_FAILURE: 'keep' }

const STOPPED = {
  kind: 'provider' as const,
  provider: 'default',
  since: 0,
  failures: 1,
  people: 1,
  event: 'sign_in_failed',
}
const HAPPENED = {
  kind: 'event' as const,
  code: 'upstream_failed' as const,
  times: 2,
  since: 0,
  last: 0,
  isOver: false,
}

let browser: Browser

before(async () => {
  browser = await startBrowser()
})

after(() => browser?.close())

/** What it says is wrong, in its order. */
function sentencesOf(html: string): string[] {
  const section = /<section id="problems"[^>]*>(.*?)<\/section>/s.exec(html)?.[1] ?? ''
  return [...section.matchAll(/<p>(.*?)<\/p>/gs)].map(([, sentence = '']) => textOf(sentence))
}

function textOf(html: string): string {
  return html.replace(/<[^>]*>/g, '').trim()
}

function cardsOf(html: string): string[] {
  return html.match(/<article class="problem .*?<\/article>/gs) ?? []
}

/** Since when, how often, for how many: of the first card. */
function factsOf(html: string): string {
  const [card = ''] = cardsOf(html)
  return [...card.matchAll(/<li>(.*?)<\/li>/gs)].map(([, fact = '']) => textOf(fact)).join(' ')
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

test('the overview names a failing provider first, with its start time, failures, affected users and recovery', async t => {
  const scene = await setUp(t, { env: NAMED })
  await stopProvider(scene)
  scene.passSeconds(1)
  scene.provider.answer('token', { kind: 'normal' })
  const developer = await scene.user('admin')
  const recovered = await lookAgain(scene, developer, html => sentencesOf(html).join().includes('已恢复正常'))
  assert.match(sentencesOf(recovered)[0] ?? '', /已恢复 统一认证平台 已恢复正常。$/)
  assert.match(recovered, /data-state="good".*一切正常.*1 个问题已恢复。/s)
  assert.match(cardsOf(recovered)[0] ?? '', /^<article class="problem recovered">/)
  assert.match(
    factsOf(recovered),
    /开始于 2026年3月1日 \d\d:56:40 2026年3月1日 \d\d:56:41 恢复 3 次失败 影响 2 个用户或地址/,
  )
  scene.passSeconds(60)
  scene.provider.answer('token', { kind: 'json', status: 503, body: {} })
  await signIn(scene.visitor(), scene.provider, { username: 'lisi' })
  const stopped = await lookAgain(scene, developer, html => sentencesOf(html).join().includes('无法完成'))
  assert.match(sentencesOf(stopped)[0] ?? '', /严重 统一认证平台 无法完成登录或续期。$/)
  assert.match(stopped, /data-state="down".*服务不可用.*有 \d 个问题需要处理。/s)
  assert.match(factsOf(stopped), /开始于 2026年3月1日 .* 1 次失败 影响 1 个用户或地址/)
  const [link = ''] = cardsOf(stopped)[0]?.match(/href="[^"]*\/audit\?[^"]*"/) ?? []
  const audit = (await developer.get(link.slice(6, -1).replaceAll('&amp;', '&'))).text
  assert.match(link, /event=sign_in_failed&amp;since=2026-03-01T/)
  assert.equal(audit.match(/<th scope="row"/g)?.length, 1, 'the failures since then, and no others')
})

test('an open overview page shows and plots a new provider failure without a reload', async t => {
  const scene = await setUp(t, { env: NAMED })
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
  await page.getByText('无法完成登录或续期').waitFor()
  await page.getByText('2 次失败').waitFor()
  await page.locator('.banner.down').waitFor()
  await page.getByText('失败：换取令牌失败').waitFor()
  const figures = await page.locator('.figures').innerText()
  assert.match(figures, /登录失败\s+2/)
  assert.deepEqual(problems, [])
})

test('the overview and the audit page reconnect after a proxy answers their event stream with 502', async t => {
  const scene = await setUp(t)
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

test('the live stream is only for developers (401 or 403 for others) and closes when its viewer signs out', async t => {
  const scene = await setUp(t)
  assert.equal((await scene.visitor().get(LIVE, { headers: { accept: 'text/event-stream' } })).status, 401)
  assert.equal((await (await scene.user('zhangsan')).get(LIVE)).status, 403)
  const developer = await scene.user('admin')
  const wire = await openWire(scene.url)
  t.after(() => wire.socket.destroy())
  wire.socket.write(request(`GET ${LIVE}?range=week HTTP/1.1`, `cookie: ${cookieOf(developer)}`))
  await wire.sees('event: plot')
  await developer.post('/logout', '', { headers: { origin: scene.baseUrl } })
  await wire.rest()
})

test('an error code in a callback URL, which anyone can send, is not shown as a provider outage', async t => {
  const scene = await setUp(t, { env: NAMED })
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

test('a live stream that refreshes the session sets the new session cookie', async t => {
  const scene = await setUp(t)
  const developer = await scene.user('admin')
  scene.passSeconds(7000)
  for (const path of [LIVE, `${CONSOLE}/audit/live`]) {
    const wire = await openWire(scene.url)
    t.after(() => wire.socket.destroy())
    wire.socket.write(request(`GET ${path} HTTP/1.1`, `cookie: ${cookieOf(developer)}`))
    assert.match(await wire.sees('\n\n'), /set-cookie: menshen_session=/)
  }
})

test('live streams that browsers cancel before they start do not use up stream slots', async t => {
  const folder = tempFolder(t)
  const { certFile, keyFile } = makeCertificate(folder, 'own', makeAuthority(folder))
  const scene = await setUp(t, { application: false, env: { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile } })
  const cookie = cookieOf(await scene.user('admin'))
  const connection = await openFrames(t, scene.url)
  const reset = (id: number) => frame(FRAME.reset, 0, id, number(constants.NGHTTP2_CANCEL))
  // More than may be open at the same time.
  for (let n = 0; n < 120; n++) {
    const id = 1 + 2 * n
    await connection.write(Buffer.concat([requestFrame(id, LIVE, [['cookie', cookie]]), reset(id)]))
  }
  const session = await openHttp2(t, scene.url)
  const stream = session.request({ ':path': LIVE, cookie })
  const [headers] = await once(stream, 'response')
  assert.equal(headers['content-type'], 'text/event-stream; charset=utf-8')
})

test('the overview shows new problems after the clock is set back', async t => {
  const scene = await setUp(t, { env: NAMED })
  const developer = await scene.user('admin')
  await developer.get(CONSOLE)
  scene.passSeconds(-86_400)
  scene.provider.answer('token', { kind: 'json', status: 503, body: {} })
  await signIn(scene.visitor(), scene.provider, { username: 'lisi' })
  await lookAgain(scene, developer, html => sentencesOf(html).join().includes('统一认证平台'))
})

test('the overview shows the last hour for an unknown range and redirects old URLs of the session list', async t => {
  const scene = await setUp(t)
  const developer = await scene.user('admin')
  for (const range of ['', 'constructor', '<b>', 'year'])
    assert.match(
      (await developer.get(`${CONSOLE}?range=${encodeURIComponent(range)}`)).text,
      /range=hour" aria-current/,
    )
  const { status, headers } = await developer.get(`${CONSOLE}?username=lisi`)
  assert.deepEqual([status, headers.location], [302, `${CONSOLE}/sessions?username=lisi`])
})

test('a failure is shown as one notice, even if several checks and events report it', () => {
  const words = createLanguages({ PAGE_LANGUAGE: 'zh-CN', APP_NAME: 'Portal' }, {}).get('zh-CN') ?? assert.fail()
  const found = (name: string): Finding => failure(name, quoted(name), quoted(`what to do about ${name}`))
  const base = { range: 'hour' as const, plot: plotOf([]), before: undefined, advice: [], isStoreUnavailable: false }
  const noticesOf = (
    problems: CurrentProblem[],
    names: string[],
    more: { isStoreUnavailable?: boolean; ids?: string[] } = {},
  ) => {
    const { ids = ['default'], isStoreUnavailable = false } = more
    const providerNames = new Map(ids.map(id => [id, quoted(id)]))
    const view = { ...base, isStoreAway: isStoreUnavailable, problems, failures: names.map(found), providerNames }
    const html = String(problemList(words, view))
    return [...html.matchAll(/<article class="problem [^"]*">(.*?)<\/article>/gs)].map(([, notice = '']) => notice)
  }
  const stopped = (provider: string) => ({ ...STOPPED, provider })
  const event = (code: 'store_unreachable' | 'upstream_failed') => ({ ...HAPPENED, code })

  const checks = ['provider connection', 'provider discovery', 'provider client']
  const [notice = '', ...more] = noticesOf([stopped('default')], checks)
  assert.deepEqual(more, [])
  assert.match(notice, /无法完成登录或续期.*provider connection.*另有 2 项相关检查未通过，见<a [^>]*>健康检查/s)
  assert.equal(noticesOf([], checks).length, 1)
  assert.match(noticesOf([], ['certificate'])[0] ?? '', /what to do about certificate/)
  assert.equal(
    noticesOf([event('store_unreachable')], ['store', 'redis version'], { isStoreUnavailable: true }).length,
    1,
  )
  assert.equal(noticesOf([event('upstream_failed')], ['upstream / connection']).length, 1)
  const two = { ids: ['staff', 'guests'] }
  assert.equal(noticesOf([stopped('staff')], ['provider staff dns', 'provider guests dns'], two).length, 2)
  assert.equal(noticesOf([], ['certificate', 'store', 'upstream /a dns', 'upstream /b dns']).length, 4)
})

test('a stopped upstream is shown with a link to the health page, and after its checks with cause and remedy', async t => {
  const scene = await setUp(t, { env: { UPSTREAM: `http://127.0.0.1:${await freePort()}`, PAGE_LANGUAGE: 'en' } })
  const developer = await scene.user('admin')
  assert.equal((await developer.get('/')).status, 502)
  const first = await lookAgain(scene, developer, html => html.includes('The application did not respond'))
  assert.match(first, /<a href="\/_menshen\/console\/health">Health<\/a> checks for the cause and says what to do\./)
  await developer.get(`${CONSOLE}/health`)
  const then = await lookAgain(scene, developer, html => html.includes('ECONNREFUSED'))
  assert.match(
    then,
    /The application did not respond[\s\S]*ECONNREFUSED[\s\S]*Nothing is listening there: check the address/,
  )
})

test('each tile links to the sessions or events that it counts, for the same period', async t => {
  const scene = await setUp(t)
  const developer = await scene.user('admin')
  await (await scene.user('lisi')).get(CONSOLE)
  await signIn(scene.visitor(), scene.provider, { username: 'wangwu' })
  const rowsAt = async (path: string) => (await developer.get(path)).text.match(/<th scope="row"/g)?.length ?? 0
  await until(async () => (await rowsAt(`${CONSOLE}/audit`)) === 4)
  scene.passSeconds(5)
  const { text } = await developer.get(CONSOLE)
  const tiles = [...text.matchAll(/<dt>([^<]*)<\/dt><dd><a class="figure" href="([^"]*)"/g)]
  const links = Object.fromEntries(tiles.map(([, name, url = '']) => [name, url.replaceAll('&amp;', '&')]))
  assert.equal(links.会话, `${CONSOLE}/sessions`)
  assert.match(links.登录失败 ?? '', /^\/_menshen\/console\/audit\?event=sign_in_failed&since=[^&]+&zone=0$/)
  assert.equal(await rowsAt(links.登录成功 ?? ''), 3)
  assert.equal(await rowsAt(links.被拒绝 ?? ''), 1)
  assert.equal(await rowsAt(links.登录失败 ?? ''), 0)
})

test('a plot shows the latest values while no pointer is over it', async t => {
  const scene = await setUp(t)
  const developer = await scene.user('admin')
  await developer.get(CONSOLE)
  const { page } = await openPage(t, browser)
  const value = developer.cookies.get('menshen_session') ?? ''
  await page.context().addCookies([{ name: 'menshen_session', value, url: scene.url }])
  await page.goto(scene.url + CONSOLE)
  await page.locator('#plot-sessions canvas').waitFor()
  const shown = page.locator('#plot-sessions .u-series').nth(1).locator('.u-value')
  await page.waitForFunction(element => element?.textContent === '1', await shown.elementHandle())
  assert.doesNotMatch(await page.locator('#plot-signIns .u-legend').innerText(), /—/)
})

test('on a phone, every console page has its heading at the top, navigation, the user’s name and a sign-out button', async t => {
  const scene = await setUp(t)
  const developer = await scene.user('admin')
  const { page, problems } = await openPage(t, browser, {
    viewport: { width: 390, height: 700 },
    isMobile: true,
    hasTouch: true,
  })
  const value = developer.cookies.get('menshen_session') ?? ''
  await page.context().addCookies([{ name: 'menshen_session', value, url: scene.url }])
  for (const path of ['', '/sessions', '/audit', '/rules', '/health', '/settings']) {
    await page.goto(scene.url + CONSOLE + path)
    const top = (await page.getByRole('heading', { level: 1 }).boundingBox())?.y ?? 700
    assert.ok(top < 100, `the heading of ${path} is at ${top} px`)
    assert.ok(await page.getByRole('navigation').isVisible())
  }
  assert.ok(await page.locator('.who').isVisible())
  assert.match(await page.locator('.who').innerText(), /\S/)
  assert.ok(await page.locator('form[method=post][action="/logout"] button').isVisible())
  assert.deepEqual(problems, [])
})
