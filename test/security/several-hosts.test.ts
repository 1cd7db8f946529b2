// Attacks on several host names with one sign-in: tickets and codes at the wrong place, addresses that lead elsewhere, hosts that
// lie, and browsers that would go round in circles.

import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import type { Response } from '../kit/client.ts'
import { type Browser, GRAFANA, PAGE, PORTAL, type SeveralHosts, setUpHosts, WIKI } from '../kit/several-hosts.ts'

const SESSION = 'menshen_session'

/** The answer to /_menshen/enter, whose Location has the code. */
async function codeFor(browser: Browser, page: string): Promise<Response> {
  const answer = await browser.follow(await browser.get(page))
  assert.match(answer.headers.location ?? '', /\/_menshen\/entered\?code=[\w-]{43}$/)
  return answer
}

async function isVisitor(browser: Browser, origin: string, cookie: string): Promise<boolean> {
  const { status } = await browser.get(`${origin}/_menshen/me`, { headers: { cookie } })
  return status === 401
}

/** What goes over the wire, as it is. */
async function sendRaw({ url }: SeveralHosts, lines: string[]): Promise<string> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  const connection = lines.some(line => line.startsWith('upgrade')) ? 'upgrade' : 'close'
  socket.write(`${[...lines, `connection: ${connection}`, '', ''].join('\r\n')}`)
  return text(socket)
}

test('a ticket is valid only at its own host', async t => {
  const scene = await setUpHosts(t)
  const browser = await scene.signedIn()
  await browser.open(`${WIKI}/`)
  await browser.open(`${GRAFANA}/`)
  const origins = [PORTAL, WIKI, GRAFANA]
  for (const from of origins) {
    const cookie = `${SESSION}=${browser.cookies(from).get(SESSION)}`
    for (const at of origins) assert.equal(await isVisitor(scene.browser(), at, cookie), at !== from, `${from} ${at}`)
  }
})

test('tickets of another host are rate limited like unknown tickets', async t => {
  const scene = await setUpHosts(t, { env: { RATE_LIMIT_PER_MINUTE: '3' } })
  const browser = await scene.signedIn()
  await browser.open(`${WIKI}/`)
  const headers = { cookie: `${SESSION}=${browser.cookies(WIKI).get(SESSION)}`, accept: 'application/json' }
  const statuses: number[] = []
  const script = { ...headers, 'sec-fetch-dest': 'empty', 'sec-fetch-mode': 'cors' }
  for (let n = 0; n < 6; n++) statuses.push((await browser.get(`${GRAFANA}/api`, { headers: script })).status)
  assert.equal(statuses[0], 401)
  assert.equal(statuses.at(-1), 429)
})

test('an entry code is accepted once, at its own host, from the browser that began the entry, within a minute', async t => {
  const scene = await setUpHosts(t)
  const browser = await scene.signedIn()
  const entered = async (who: Browser, address: string) => {
    const answer = await who.get(address)
    return answer.setCookies.some(cookie => cookie.startsWith(`${SESSION}=`) && !cookie.includes('Max-Age=0'))
  }
  const atOther = (await codeFor(browser, `${WIKI}/`)).headers.location ?? ''
  assert.equal(await entered(browser, atOther.replace(WIKI, GRAFANA)), false, 'another host')
  assert.equal(await entered(browser, atOther), true, 'that did not spend it')
  assert.equal(await entered(browser, atOther), false, 'a second time')

  const victim = scene.browser()
  await victim.get(`${WIKI}/`)
  const attackers = (await codeFor(await scene.signedIn('attacker'), `${WIKI}/`)).headers.location ?? ''
  assert.equal(await entered(victim, attackers), false, 'in the browser of somebody else, who has a nonce of their own')
  assert.equal(victim.cookies(WIKI).get(SESSION), undefined)

  const late = await scene.signedIn()
  const slow = (await codeFor(late, `${WIKI}/`)).headers.location ?? ''
  scene.passSeconds(61)
  assert.equal(await entered(late, slow), false, 'after a minute')
})

test('only one of ten parallel requests with the same entry code gets a session', async t => {
  const scene = await setUpHosts(t)
  const browser = await scene.signedIn()
  const { location = '' } = (await codeFor(browser, `${WIKI}/`)).headers
  const cookie = `menshen_entry=${browser.cookies(WIKI).get('menshen_entry')}`
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => scene.browser().get(location, { headers: { cookie } })),
  )
  const entered = answers.filter(({ setCookies }) => setCookies.some(set => set.startsWith(`${SESSION}=`)))
  assert.equal(entered.length, 1)
})

test('an entry code of an ended session gives no session and is logged as session_ended', async t => {
  const scene = await setUpHosts(t)
  const browser = await scene.signedIn()
  const answer = await codeFor(browser, `${WIKI}/`)
  await browser.post(`${PORTAL}/logout`)
  const late = await browser.follow(answer)
  assert.equal(late.status, 302)
  assert.equal(late.headers.location, '/')
  assert.equal(browser.cookies(WIKI).get(SESSION), undefined)
  assert.ok(scene.lines.some(({ event, fields }) => event === 'host_entry_failed' && fields.reason === 'session_ended'))
})

test('an entry to an address outside the configured hosts gets 400, with or without a session', async t => {
  const scene = await setUpHosts(t)
  const n = hash('sha256', 'nonce', 'base64url')
  const refused = [
    'https://wiki.test/',
    'http://wiki.test:8080/',
    'http://wiki.test./',
    'http://evil.test/',
    'http://portal.test/',
    'http://wiki.test.evil.test/',
    'http://wiki.test@evil.test/',
    'http://evil.test@wiki.test/',
    'http://@wiki.test/',
    'http://:@wiki.test/',
    'http://wiki.test\\@evil.test/',
    'http:\\\\wiki.test/',
    'http://wiki.test\\.evil.test/',
    'http://evil.test\\wiki.test/',
    'http://wiki.test/\\evil.test',
    '//wiki.test/',
    '//evil.test/',
    '/',
    '',
    'wiki.test',
    'javascript:alert(1)//http://wiki.test/',
    'data:text/html,http://wiki.test/',
    'ftp://wiki.test/',
    'blob:http://wiki.test/x',
    'http:wiki.test/',
    'http:/wiki.test/',
    'http:///wiki.test/',
    'view-source:http://wiki.test/',
    ' http://wiki.test/',
    'http://wiki.test/ ',
    'http://wi\tki.test/',
    'http://wiki.test/\r\nSet-Cookie: a=b',
    'http://wiki.test/\0',
    'http://wıki.test/',
    'http://evil.test#http://wiki.test/',
    'http://evil.test?http://wiki.test/',
    'http://wiki.test%2eevil.test/',
    'http://wiki.test%00.evil.test/',
    `http://wiki.test/${'a'.repeat(9000)}`,
  ]
  for (const browser of [scene.browser(), await scene.signedIn()])
    for (const to of refused) {
      const answer = await browser.get(`${PORTAL}/_menshen/enter?${new URLSearchParams({ to, n })}`)
      assert.equal(answer.status, 400, JSON.stringify(to))
      assert.equal(answer.headers.location, undefined)
    }
})

test('an entry without exactly one address and one well-formed hash gets 400, and by POST 405', async t => {
  const scene = await setUpHosts(t)
  const browser = await scene.signedIn()
  const n = hash('sha256', 'nonce', 'base64url')
  const to = encodeURIComponent(`${WIKI}/`)
  for (const query of [
    '',
    `to=${to}`,
    `n=${n}`,
    `to=${to}&n=short`,
    `to=${to}&to=${to}&n=${n}`,
    `to=${to}&n=${n}&n=${n}`,
    `to=${to}&n=${n}%0a`,
  ])
    assert.equal((await browser.get(`${PORTAL}/_menshen/enter?${query}`)).status, 400, query)
  assert.equal((await browser.post(`${PORTAL}/_menshen/enter?to=${to}&n=${n}`)).status, 405)
})

test('an entry always redirects to the named host, even if the address has an odd or reserved path', async t => {
  const scene = await setUpHosts(t)
  const browser = await scene.signedIn()
  for (const [to, path] of [
    [`${WIKI}//evil.test/x`, '/'],
    [`${WIKI}/../../x`, '/x'],
    [`${WIKI}/logout`, '/'],
    [`${WIKI}/login`, '/'],
    [`${WIKI}/callback`, '/'],
    [`${WIKI}/_menshen/entered?code=x`, '/'],
    [`${WIKI}/_menshen/sign-out-everywhere`, '/'],
    [`${WIKI}/a?next=//evil.test&b=\\`, '/a?next=//evil.test&b=\\'],
    [`${WIKI}`, '/'],
    ['HTTP://WIKI.TEST:80/x', '/x'],
  ] as const) {
    const nonce = 'n'.repeat(43)
    const enter = await browser.get(
      `${PORTAL}/_menshen/enter?${new URLSearchParams({ to, n: hash('sha256', nonce, 'base64url') })}`,
    )
    assert.ok(enter.headers.location?.startsWith(`${WIKI}/_menshen/entered?code=`), to)
    const entered = await browser.follow(enter, { headers: { cookie: `menshen_entry=${nonce}` } })
    assert.equal(entered.headers.location, path, to)
    // One page may be entered a few times within ten seconds.
    scene.passSeconds(11)
  }
})

test('a browser that stores no cookies for a host gets an error page the second time instead of a redirect loop', async t => {
  const scene = await setUpHosts(t)
  const browser = await scene.signedIn()
  const enter = async () => {
    const { location = '' } = (await scene.browser().get(`${WIKI}/page`)).headers
    return browser.get(location)
  }
  const first = await scene.browser().get((await enter()).headers.location ?? '')
  assert.equal(first.status, 302)
  assert.equal(first.headers.location, '/page')
  const second = await scene.browser().get((await enter()).headers.location ?? '')
  assert.equal(second.status, 400)
  assert.match(second.text, /entry_failed/)
  scene.passSeconds(11)
  const later = await scene.browser().get((await enter()).headers.location ?? '')
  assert.equal(later.status, 302, 'ten seconds later it may try again')
})

test('an unknown entry code redirects to the home page of the host once, and then gets an entry_failed page', async t => {
  const scene = await setUpHosts(t)
  const browser = scene.browser()
  const address = `${WIKI}/_menshen/entered?code=${'x'.repeat(43)}`
  const first = await browser.get(address)
  assert.equal(first.headers.location, '/')
  assert.match(first.setCookies.join(), /menshen_entry_failed=yes; Path=\/; Max-Age=10;/)
  const second = await browser.get(address, { headers: { 'accept-language': 'zh-CN' } })
  assert.equal(second.status, 400)
  assert.match(second.text, /无法进入此应用.*entry_failed/s)
  for (const query of ['', '?code=', '?code=short', `?code=${'x'.repeat(43)}&code=${'x'.repeat(43)}`, '?code=%0d%0a'])
    assert.equal((await scene.browser().get(`${WIKI}/_menshen/entered${query}`)).headers.location, '/', query)
})

test('an entry code of another browser redirects to its page once, and then gets an entry_failed page', async t => {
  const scene = await setUpHosts(t)
  const { location = '' } = (await codeFor(await scene.signedIn(), `${WIKI}/page`)).headers
  const browser = scene.browser()
  assert.equal((await browser.get(location)).headers.location, '/page')
  const second = await browser.get(location)
  assert.equal(second.status, 400)
  assert.match(second.text, /entry_failed/)
  assert.equal(browser.cookies(WIKI).get(SESSION), undefined)
})

test('a second session cookie planted for a host does not cause a redirect loop', async t => {
  const scene = await setUpHosts(t)
  const browser = await scene.signedIn()
  let rounds = 0
  let page = `${WIKI}/page`
  for (; rounds < 20; rounds++) {
    // As if another subdomain had set a cookie for all of them.
    const cookie = [...browser.cookies(WIKI)].map(pair => pair.join('=')).join('; ')
    const enter = await browser.get(page, { headers: { cookie: `${SESSION}=${'p'.repeat(43)}; ${cookie}` } })
    if (enter.status !== 302) break
    const entered = await browser.follow(enter)
    if (entered.status === 400) {
      assert.match(entered.text, /entry_failed/)
      break
    }
    page = new URL((await browser.follow(entered)).headers.location ?? '', WIKI).href
  }
  assert.ok(rounds < 7, `${rounds} rounds, and browsers give up after twenty redirects`)
})

test('five tabs that open a host at the same moment all enter it', async t => {
  const scene = await setUpHosts(t)
  const browser = await scene.signedIn()
  const pages = [1, 2, 3, 4, 5].map(n => `${WIKI}/${n}`)
  const answers = await Promise.all(pages.map(page => browser.open(page)))
  assert.deepEqual(
    answers.map(({ url, text }) => [url, text]),
    pages.map(page => [page, 'the wiki']),
  )
})

test('images, frames and scripts of other sites get 403 and cannot enter a host', async t => {
  const scene = await setUpHosts(t)
  const browser = await scene.signedIn()
  const { location = '' } = (await browser.get(`${WIKI}/`)).headers
  for (const dest of ['image', 'iframe', 'script', 'empty']) {
    const headers = { 'sec-fetch-dest': dest, 'sec-fetch-mode': 'no-cors', 'sec-fetch-site': 'cross-site' }
    assert.equal((await browser.get(location, { headers })).status, 403, dest)
    assert.equal((await browser.get(`${WIKI}/_menshen/entered?code=x`, { headers })).status, 403, dest)
  }
})

test('pages of one host can neither sign a user out at another host nor open its WebSockets', async t => {
  const scene = await setUpHosts(t)
  const browser = await scene.signedIn()
  for (const host of [WIKI, GRAFANA]) await browser.open(`${host}/`)
  const foreign = { origin: WIKI, 'sec-fetch-site': 'same-site' }
  for (const at of [GRAFANA, PORTAL]) {
    assert.equal((await browser.post(`${at}/_menshen/sign-out-everywhere`, {}, { headers: foreign })).status, 403)
    await browser.post(`${at}/logout`, {}, { headers: foreign })
    await browser.get(`${at}/logout`, { headers: { 'sec-fetch-site': 'same-site' } })
    assert.equal((await browser.get(`${at}/_menshen/me`)).status, 200)
  }
  const socket = async (origin: string) => {
    const cookie = `${SESSION}=${browser.cookies(GRAFANA).get(SESSION)}`
    const lines = [
      'GET /live HTTP/1.1',
      'host: grafana.test',
      'upgrade: websocket',
      `origin: ${origin}`,
      `cookie: ${cookie}`,
    ]
    const answer = await sendRaw(scene, [
      ...lines,
      'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==',
      'sec-websocket-version: 13',
    ])
    return answer.slice(9, 12)
  }
  assert.equal(await socket(WIKI), '403')
  assert.equal(await socket(PORTAL), '403')
})

test('only the Host header of a request selects its host, not forwarding headers or the request target', async t => {
  const scene = await setUpHosts(t, { wikiRules: [{ path: '/', public: true }] })
  const lies = [
    'x-forwarded-host: wiki.test',
    'x-original-host: wiki.test',
    'forwarded: host=wiki.test',
    'x-host: wiki.test',
  ]
  const asked = await sendRaw(scene, ['GET / HTTP/1.1', 'host: grafana.test', 'accept: text/html', ...lies])
  assert.match(
    asked,
    /^HTTP\/1\.1 302 .*\r\n(?:.*\r\n)*?location: http:\/\/portal\.test\/_menshen\/enter\?to=http:\/\/grafana\.test\//i,
  )
  assert.match(await sendRaw(scene, ['GET http://wiki.test/ HTTP/1.1', 'host: grafana.test']), /^HTTP\/1\.1 400 /)
  assert.match(await sendRaw(scene, ['GET //wiki.test/ HTTP/1.1', 'host: grafana.test']), /^HTTP\/1\.1 400 /)
  assert.match(
    await sendRaw(scene, ['GET / HTTP/1.1', 'host: wiki.test', 'Host: grafana.test']),
    /^HTTP\/1\.1 4(00|21) /,
  )
  assert.match(await sendRaw(scene, ['GET / HTTP/1.0']), /^HTTP\/1\.1 421 /)
  assert.match(await sendRaw(scene, ['GET / HTTP/1.1', 'host: ']), /^HTTP\/1\.1 4(00|21) /)
  assert.match(await sendRaw(scene, ['GET / HTTP/1.1', 'host: evil.test', 'upgrade: websocket']), /^HTTP\/1\.1 421 /)
  assert.deepEqual(scene.wiki.received, [])
})

test('over https, the entry cookie and the session cookie of a host have the __Host- prefix and no Domain', async t => {
  const scene = await setUpHosts(t, { env: { BASE_URL: 'https://portal.test' } })
  const headers = { ...PAGE, host: 'wiki.test' }
  const answer = await scene.visitor().get('/', { headers })
  const [cookie = ''] = answer.setCookies
  assert.match(cookie, /^__Host-menshen_entry=[\w-]{43}; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax; Secure$/)
  assert.match(answer.headers.location ?? '', /^https:\/\/portal\.test\/_menshen\/enter\?to=https:\/\/wiki\.test\/&n=/)

  const browser = scene.browser()
  await browser.signIn(scene.provider, {}, 'https://portal.test')
  const given: string[] = []
  let page = await browser.get('https://wiki.test/')
  while (page.headers.location) {
    page = await browser.follow(page)
    given.push(...page.setCookies)
  }
  assert.equal(page.text, 'the wiki')
  const [session = '', ...more] = given.filter(one => /session=/.test(one))
  assert.match(session, /^__Host-menshen_session=[\w-]{43}; Path=\/; Max-Age=604800; HttpOnly; SameSite=Lax; Secure$/)
  assert.deepEqual(more, [])
})

test('an application can neither set nor read Menshen’s cookies for its host', async t => {
  const scene = await setUpHosts(t)
  scene.wiki.server.removeAllListeners('request')
  scene.wiki.server.on('request', (request, response) => {
    response.setHeader('set-cookie', [
      `${SESSION}=planted; Path=/`,
      'menshen_entry=planted',
      '__Host-menshen_session=x',
      'theirs=1',
    ])
    response.end(request.headers.cookie ?? 'none')
  })
  const browser = await scene.signedIn()
  const page = await browser.open(`${WIKI}/`)
  assert.equal(page.text, 'none')
  assert.deepEqual(page.setCookies, ['theirs=1'])
})
