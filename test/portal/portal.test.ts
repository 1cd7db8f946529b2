// The portal: which applications a user sees, where, and what others learn of them.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import { takeSnapshot } from '../../src/cli/reload-changes.ts'
import { checkConfig } from '../../src/config/file.ts'
import { type Config, readSettings } from '../../src/index.ts'
import { TILE_COLORS } from '../../src/portal/icon.ts'
import { openUpstreams } from '../../src/proxy/upstreams.ts'
import { setUp, setUpOidc } from '../kit/set-up.ts'
import { type Browser, createBrowser, PAGE, PORTAL, setUpHosts, WIKI } from '../kit/several-hosts.ts'
import { tempFolder } from '../kit/temp.ts'

interface Listed {
  title: string
  description: string
  url: string
  icon: string
  unavailable?: string
}

const APP = 'http://127.0.0.1:9'
const DRAWING = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><path fill="#1f5fbf" d="M0 0h8v8H0z"/></svg>'
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
const APPLICATIONS = '/_menshen/applications'
const SCRIPT = { accept: 'application/json', 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' }

/** A portal without an application at `/`, for users who come to BASE_URL alone. */
async function openPortal(t: TestContext, config: Config, env: Record<string, string> = {}) {
  const scene = await setUp(t, { application: false, config, env: { BASE_URL: PORTAL, ...env } })
  return {
    ...scene,
    async signedIn(username = 'zhangsan', more = {}): Promise<Browser> {
      const browser = createBrowser(scene.url, scene.now)
      await browser.signIn(scene.provider, { username, ...more })
      return browser
    },
  }
}

async function listed(browser: Browser): Promise<Listed[]> {
  const { status, text } = await browser.get(PORTAL + APPLICATIONS, { headers: SCRIPT })
  assert.equal(status, 200, text)
  return JSON.parse(text).applications
}

/** By the page: each title with its address, and the reason if there is one. */
function shownIn(text: string): [title: string, url: string, reason?: string][] {
  return [...text.matchAll(/<li data-text="[^"]*"><a href="([^"]+)".*?<\/a><\/li>/gs)].map(([tile, url = '']) => {
    const [, title = ''] = /<strong>(.*?)<\/strong>/.exec(tile) ?? []
    const [, reason] = /<span class="reason">(.*?)<\/span>/.exec(tile) ?? []
    return reason === undefined ? [title, url] : [title, url, reason]
  })
}

function many(count: number): NonNullable<Config['hosts']> {
  return Object.fromEntries(
    Array.from({ length: count }, (_, n) => [`app${n}.test`, { upstream: APP, title: `Application ${n}` }]),
  )
}

suite('applications in the portal', () => {
  test('upstreams are listed before hosts, in the order of the configuration, with title, description and start of each', async t => {
    const icon = join(tempFolder(t), 'wiki.svg')
    writeFileSync(icon, DRAWING)
    const { signedIn } = await openPortal(t, {
      hosts: {
        'wiki.test': { upstream: APP, title: '维基', description: 'What we know', icon, start: '/home?tab=1#news' },
        'forward.test': {},
      },
      upstreams: {
        '/reports': { url: APP, title: 'Reports', start: '/reports/today' },
        '/files': APP,
      },
    })
    const browser = await signedIn()
    const found = await listed(browser)
    assert.deepEqual(
      found.map(({ title, description, url }) => [title, description, url]),
      [
        ['Reports', '', `${PORTAL}/reports/today`],
        ['/files', '', `${PORTAL}/files`],
        ['维基', 'What we know', `${WIKI}/home?tab=1#news`],
        ['forward.test', '', 'http://forward.test/'],
      ],
    )
    for (const application of found) {
      assert.ok(!('unavailable' in application))
      assert.ok(application.icon.startsWith(`${PORTAL}/_menshen/portal/icons/`), application.icon)
    }
    const { text } = await browser.get(`${PORTAL}/_menshen/portal`)
    assert.deepEqual(
      shownIn(text),
      found.map(({ title, url }) => [title, url]),
    )
    assert.match(text, /<span class="description">What we know<\/span>/)
  })

  test('the application at /, the upstreams of a host and applications with portal: false are not listed', async t => {
    const { signedIn } = await openPortal(t, {
      upstreams: {
        '/': { url: APP, title: 'Root' },
        '/hidden': { url: APP, portal: false },
        '/shown': { url: APP, portal: true },
      },
      hosts: {
        'wiki.test': { upstream: APP, upstreams: { '/api': { url: APP, title: 'API' } } },
        'secret.test': { upstream: APP, portal: false },
      },
    })
    const titles = (await listed(await signedIn())).map(({ title }) => title)
    assert.deepEqual(titles, ['/shown', 'wiki.test'])
  })

  test('an application is listed if the rules of its host admit the role, the groups or the name of the user to its start', async t => {
    const { signedIn } = await openPortal(t, {
      provider: { preset: 'idaas', fields: { groups: ['ou_name'] } },
      roles: [
        { role: 'developer', username: ['admin'] },
        { role: 'ceo', username: ['lisi'] },
      ],
      rules: [
        { path: '/finance', roles: ['ceo'] },
        { path: '/staff/public', public: true },
      ],
      upstreams: { '/finance': APP, '/staff': { url: APP, start: '/staff/public/x' } },
      hosts: {
        'users.test': { upstream: APP, rules: [{ path: '/', users: ['zhangsan'] }] },
        'start.test': {
          upstream: APP,
          start: '/start',
          rules: [
            { path: '/', roles: ['ceo'] },
            { path: '/start', roles: ['*'] },
          ],
        },
        'closed.test': {
          upstream: APP,
          start: '/start',
          rules: [
            { path: '/', roles: ['*'] },
            { path: '/start', roles: ['ceo'] },
          ],
        },
        'developers.test': { upstream: APP, rules: [{ path: '/', roles: ['developer'] }] },
        'groups.test': { upstream: APP, rules: [{ path: '/', groups: ['legal'] }] },
        'finance.test': { upstream: APP },
      },
    })
    const titles = async (username: string, ou_name = 'sales') =>
      (await listed(await signedIn(username, { ou_name }))).map(({ title }) => title)
    assert.deepEqual(await titles('zhangsan'), ['/staff', 'users.test', 'start.test', 'finance.test'])
    assert.deepEqual(await titles('lisi'), ['/finance', '/staff', 'start.test', 'closed.test', 'finance.test'])
    assert.deepEqual(await titles('admin'), ['/staff', 'start.test', 'developers.test', 'finance.test'])
    assert.deepEqual(await titles('wangwu', 'legal'), ['/staff', 'start.test', 'groups.test', 'finance.test'])
  })

  test('an application that a user cannot open is not in the responses: no title, description, address or icon', async t => {
    const icon = join(tempFolder(t), 'icon.svg')
    writeFileSync(icon, DRAWING)
    const { signedIn } = await openPortal(t, {
      hosts: {
        'open.test': { upstream: APP },
        'vault.test': {
          upstream: APP,
          title: 'Takeover',
          description: 'Project Swan',
          icon,
          rules: [{ path: '/', users: ['lisi'] }],
        },
      },
    })
    const owner = await signedIn('lisi')
    const address = (await listed(owner)).at(-1)?.icon ?? ''
    const other = await signedIn('zhangsan')
    for (const path of [APPLICATIONS, '/_menshen/portal', '/', '/?q=swan', '/_menshen/portal?q=swan']) {
      const { status, text } = await other.get(PORTAL + path)
      assert.equal(status, 200)
      assert.doesNotMatch(text, /vault\.test|Takeover|Project/, path)
      assert.ok(!text.includes(new URL(address).pathname), path)
    }
  })

  test('visitors get 401 as JSON for every Accept header, without the name of a host', async t => {
    const { url, now, signedIn } = await openPortal(t, { hosts: { 'vault.test': { upstream: APP } } })
    const visitor = createBrowser(url, now)
    for (const headers of [
      SCRIPT,
      PAGE,
      { accept: '*/*' },
      { cookie: 'menshen_session=x' },
      { authorization: 'Bearer x' },
    ]) {
      const answer = await visitor.get(PORTAL + APPLICATIONS, { headers })
      assert.equal(answer.status, 401)
      assert.equal(answer.json<{ error: string }>().error, 'unauthenticated')
      assert.match(String(answer.headers['content-type']), /^application\/json/)
      assert.equal(answer.headers['cache-control'], 'no-store')
      assert.doesNotMatch(answer.text, /vault/)
    }
    const page = await visitor.get(`${PORTAL}/_menshen/portal`)
    assert.deepEqual([page.status, new URL(page.headers.location ?? '', PORTAL).pathname], [302, '/login'])
    const answer = await (await signedIn()).get(PORTAL + APPLICATIONS)
    assert.equal(answer.headers['cache-control'], 'no-store')
    assert.equal(answer.headers['x-content-type-options'], 'nosniff')
    const { status, headers } = await visitor.post(PORTAL + APPLICATIONS)
    assert.deepEqual([status, headers.allow], [405, 'GET, HEAD'])
  })

  test('five hundred hosts are listed in their order, without those of other users', async t => {
    const hosts = Object.fromEntries(
      Array.from({ length: 500 }, (_, n) => [
        `app${n}.test`,
        {
          upstream: APP,
          rules: [{ path: '/', users: [n % 2 === 0 ? 'zhangsan' : 'lisi'], networks: ['127.0.0.0/8'] }],
        },
      ]),
    )
    const { signedIn } = await openPortal(t, { hosts })
    const browser = await signedIn()
    const titles = (await listed(browser)).map(({ title }) => title)
    assert.deepEqual(
      titles,
      Object.keys(hosts).filter((_, n) => n % 2 === 0),
    )
    assert.equal(shownIn((await browser.get(`${PORTAL}/`)).text).length, 250)
  })
})

suite('conditions', () => {
  test('an application with an unmet condition is listed with its code, and the page shows the reason', async t => {
    const rule = { path: '/', roles: ['*' as const] }
    const { signedIn } = await openPortal(
      t,
      {
        hosts: {
          'network.test': { upstream: APP, rules: [{ ...rule, networks: ['10.0.0.0/8'] }] },
          'hours.test': {
            upstream: APP,
            rules: [{ ...rule, hours: { days: ['mon', 'tue'], from: '09:00', to: '17:00', zone: 'Asia/Shanghai' } }],
          },
          'here.test': {
            upstream: APP,
            rules: [{ ...rule, networks: ['127.0.0.0/8'], hours: { from: '00:00', to: '23:59', zone: 'UTC' } }],
          },
          'others.test': { upstream: APP, rules: [{ path: '/', users: ['lisi'], networks: ['10.0.0.0/8'] }] },
        },
      },
      { PAGE_LANGUAGE: 'en' },
    )
    const browser = await signedIn()
    assert.deepEqual(
      (await listed(browser)).map(({ title, unavailable }) => [title, unavailable]),
      [
        ['network.test', 'outside_network'],
        ['hours.test', 'outside_hours'],
        ['here.test', undefined],
      ],
    )
    const shown = shownIn((await browser.get(`${PORTAL}/`)).text)
    assert.deepEqual(shown[0]?.slice(2), ['Not available on this network'])
    assert.match(String(shown[1]?.[2]), /^Not available right now\. Hours: Monday and Tuesday, 09:00 to 17:00 \(.+\)$/)
    assert.equal(shown[2]?.length, 2)
  })

  test('permitted hours are checked at each request', async t => {
    const hours = { from: '09:00', to: '17:00', zone: 'UTC' }
    const hosts = { 'hours.test': { upstream: APP, rules: [{ path: '/', roles: ['*' as const], hours }] } }
    const { signedIn, passSeconds } = await openPortal(t, { hosts })
    const browser = await signedIn()
    assert.equal((await listed(browser))[0]?.unavailable, 'outside_hours')
    passSeconds(3600)
    assert.equal((await listed(browser))[0]?.unavailable, undefined)
  })

  test('an application that requires a step-up is listed as available until the step-up has failed', async t => {
    const hosts = { 'wiki.test': { upstream: APP, rules: [{ path: '/', roles: ['*' as const], acr: ['gold'] }] } }
    const { provider, url, now } = await setUpOidc(t, {
      env: { BASE_URL: PORTAL },
      config: { hosts },
      application: false,
    })
    const browser = createBrowser(url, now)
    const throughProvider = async (location = '') => {
      const { headers } = await fetch(location, { redirect: 'manual' })
      return browser.open(headers.get('location') ?? '')
    }
    await throughProvider((await browser.post(`${PORTAL}/login`)).headers.location)
    assert.equal(provider.idClaims?.acr, undefined)
    const [before] = await listed(browser)
    assert.ok(before && !('unavailable' in before))
    const refused = await throughProvider((await browser.open(before.url)).headers.location)
    assert.equal(refused.status, 403)
    assert.equal((await listed(browser))[0]?.unavailable, 'step_up_failed')
    const { text } = await browser.get(`${PORTAL}/`)
    assert.deepEqual(shownIn(text), [['wiki.test', `${WIKI}/`, '需要进一步验证身份']])
  })

  test('opening the portal logs no refusal, neither by a shadow rule nor by an ordinary one', async t => {
    const { signedIn, lines } = await openPortal(t, {
      hosts: {
        'shadow.test': { upstream: APP, rules: [{ path: '/', users: ['lisi'], shadow: true }] },
        'closed.test': { upstream: APP, rules: [{ path: '/', users: ['lisi'] }] },
      },
    })
    const browser = await signedIn()
    const before = lines.length
    assert.deepEqual(
      (await listed(browser)).map(({ title }) => title),
      ['shadow.test'],
    )
    await browser.get(`${PORTAL}/`)
    assert.deepEqual(
      lines.slice(before).filter(({ event }) => /refused/.test(String(event))),
      [],
    )
  })

  test('a request for the list of applications does not extend the idle time of a session', async t => {
    const { signedIn, passSeconds } = await openPortal(
      t,
      { hosts: { 'wiki.test': { upstream: APP } } },
      { SESSION_IDLE_MINUTES: '20' },
    )
    const browser = await signedIn()
    for (let n = 0; n < 2; n++) {
      passSeconds(12 * 60)
      await browser.get(PORTAL + APPLICATIONS, { headers: { accept: 'application/json' } })
    }
    passSeconds(6 * 60)
    assert.equal((await browser.get(PORTAL + APPLICATIONS)).status, 401)
  })
})

suite('the portal page', () => {
  test('/ is the portal if BASE_URL has no application, and the home page if there are no applications', async t => {
    const hosts = { 'wiki.test': { upstream: APP, title: 'The wiki' } }
    const at = async (path: string, config: Config, env = {}) => {
      const { signedIn } = await openPortal(t, config, env)
      return await (await signedIn()).get(PORTAL + path)
    }
    const isPortal = (text: string) => text.includes('class="portal"')
    assert.ok(isPortal((await at('/', { hosts })).text))
    assert.ok(isPortal((await at('/?x=1', { upstreams: { '/wiki': APP } })).text))
    assert.equal((await at('/other', { hosts })).status, 404)
    const behind = await setUpHosts(t, { config: { hosts: { 'wiki.test': { upstream: APP } } } })
    const browser = await behind.signedIn()
    assert.equal((await browser.get(`${PORTAL}/`)).text, 'hello')
    assert.ok(isPortal((await browser.get(`${PORTAL}/_menshen/portal`)).text))
    for (const config of [{}, { hosts: { 'wiki.test': { upstream: APP, portal: false } } }]) {
      const home = await at('/', config)
      assert.equal(home.status, 200)
      assert.ok(!isPortal(home.text))
    }
  })

  test('every signed-in user can open the portal, even if the rules deny /', async t => {
    const { signedIn } = await openPortal(t, {
      rules: [{ path: '/', users: ['lisi'] }],
      hosts: { 'wiki.test': { upstream: APP } },
    })
    const browser = await signedIn()
    assert.equal((await browser.get(`${PORTAL}/`)).status, 403)
    assert.equal((await browser.get(`${PORTAL}/_menshen/portal`)).status, 200)
  })

  test('the portal links to the account page, and for developers also to the console', async t => {
    const { signedIn } = await openPortal(t, { hosts: { 'wiki.test': { upstream: APP } } })
    const linksOf = async (username: string) => {
      const { text } = await (await signedIn(username)).get(`${PORTAL}/`)
      return ['/_menshen/account', '/_menshen/console'].filter(path => text.includes(`href="${path}"`))
    }
    assert.deepEqual(await linksOf('zhangsan'), ['/_menshen/account'])
    assert.deepEqual(await linksOf('admin'), ['/_menshen/account', '/_menshen/console'])
  })

  test('the account page links to the portal if there are applications', async t => {
    const hosts = { 'wiki.test': { upstream: APP } }
    for (const config of [{ hosts }, {}]) {
      const { signedIn } = await openPortal(t, config)
      const { text } = await (await signedIn()).get(`${PORTAL}/_menshen/account`)
      assert.equal(text.includes('href="/_menshen/portal"'), 'hosts' in config)
    }
  })

  test('a user without applications sees a message and the support contact, and a developer which setting to use', async t => {
    const { signedIn } = await openPortal(
      t,
      { hosts: { 'wiki.test': { upstream: APP, rules: [{ path: '/', users: ['lisi'] }] } } },
      { SUPPORT_CONTACT: 'help@example.com' },
    )
    const { status, text } = await (await signedIn()).get(`${PORTAL}/`)
    assert.equal(status, 200)
    assert.match(text, /您还没有可以使用的应用。/)
    assert.match(text, /<a href="mailto:help@example\.com">help@example\.com<\/a>/)
    assert.deepEqual(shownIn(text), [])
    assert.doesNotMatch(text, /upstreams/)
    assert.match((await (await signedIn('admin')).get(`${PORTAL}/`)).text, /<code>upstreams<\/code>/)
  })

  test('a portal without applications links to / if the rules admit the user, unless / is the portal itself', async t => {
    const rules = [{ path: '/', users: ['zhangsan'] }]
    const leadsHome = async (config: Config, username = 'zhangsan') => {
      const { signedIn } = await openPortal(t, config)
      const { text } = await (await signedIn(username)).get(`${PORTAL}/_menshen/portal`)
      assert.equal(text.includes('您还没有可以使用的应用。'), !text.includes('<a class="button" href="/">前往首页</a>'))
      return text.includes('前往首页')
    }
    assert.ok(await leadsHome({}))
    assert.ok(await leadsHome({ rules, upstreams: { '/': APP } }))
    assert.ok(!(await leadsHome({ rules, upstreams: { '/': APP } }, 'lisi')))
    const hosts = { 'wiki.test': { upstream: APP, rules: [{ path: '/', users: ['lisi'] }] } }
    assert.ok(await leadsHome({ hosts, upstreams: { '/': APP } }))
    assert.ok(!(await leadsHome({ hosts })))
  })

  test('the filter appears if at least nine applications are shown', async t => {
    const { signedIn } = await openPortal(t, {
      hosts: { ...many(8), 'ninth.test': { upstream: APP, rules: [{ path: '/', users: ['lisi'] }] } },
    })
    const page = async (username: string) => (await (await signedIn(username)).get(`${PORTAL}/?q=application`)).text
    assert.doesNotMatch(await page('zhangsan'), /type="search"|portal\.js/)
    assert.match(await page('lisi'), /type="search"[\s\S]*value="application"/)
    assert.equal(shownIn(await page('zhangsan')).length, 8)
    assert.equal(shownIn(await page('lisi')).length, 8, 'the ninth does not match')
  })

  test('without scripts the filter finds words in titles, descriptions and addresses, ignoring case and width', async t => {
    const { signedIn } = await openPortal(
      t,
      { hosts: { ...many(9), 'wiki.test': { upstream: APP, title: '知识库 Wiki', description: 'Notes & <Plans>' } } },
      { PAGE_LANGUAGE: 'en' },
    )
    const browser = await signedIn()
    const find = async (filter: string) =>
      (await browser.get(`${PORTAL}/_menshen/portal?${new URLSearchParams({ q: filter })}`)).text
    for (const filter of ['WIKI', 'ｗｉｋｉ', '知识', 'plans notes', 'wiki.TEST', '& <plans>'])
      assert.deepEqual(shownIn(await find(filter)).length, 1, filter)
    assert.match(await find('wiki'), /Showing 1 of 10 applications/)
    assert.equal(shownIn(await find('  ')).length, 10)
    assert.match(await find('  '), />10 applications</)
    const none = await find('"><script>alert(1)</script>')
    assert.deepEqual(shownIn(none), [])
    assert.match(none, /<p class="nothing" id="nothing">No applications match your filter\.<\/p>/)
    assert.doesNotMatch(none, /<script>alert/)
    assert.equal(shownIn(await find('x'.repeat(5000))).length, 0)
  })

  test('at a host the portal redirects to that of BASE_URL, and the list of applications is 404', async t => {
    const scene = await setUpHosts(t)
    const browser = await scene.signedIn()
    await browser.open(`${WIKI}/`)
    const page = await browser.get(`${WIKI}/_menshen/portal`)
    assert.deepEqual([page.status, page.headers.location], [302, `${PORTAL}/_menshen/portal`])
    assert.equal((await browser.get(WIKI + APPLICATIONS)).status, 404)
  })

  test('in the library the portal is available, and / is left to the application', async t => {
    const { menshen, signedIn } = await openPortal(t, { hosts: { 'wiki.test': { upstream: APP, title: 'The wiki' } } })
    const browser = await signedIn()
    const cookie = [...browser.cookies(PORTAL)].map(([name, value]) => `${name}=${value}`).join('; ')
    const get = (path: string) => menshen.fetch(new Request(PORTAL + path, { headers: { ...PAGE, cookie } }))
    assert.deepEqual(shownIn((await (await get('/_menshen/portal'))?.text()) ?? ''), [['The wiki', `${WIKI}/`]])
    assert.equal((await get(APPLICATIONS))?.status, 200)
    assert.equal(await get('/'), undefined)
  })

  test('titles and descriptions are escaped', async t => {
    const title = `"><script>alert(1)</script>&'`
    const { signedIn } = await openPortal(t, { hosts: { 'wiki.test': { upstream: APP, title, description: title } } })
    const { text } = await (await signedIn()).get(`${PORTAL}/`)
    assert.doesNotMatch(text, /<script>alert/)
    assert.match(text, /<strong>&quot;&gt;&lt;script&gt;/)
  })
})

suite('icons', () => {
  test('icons are served with a restrictive Content-Security-Policy and cached by the browser', async t => {
    const folder = tempFolder(t)
    writeFileSync(join(folder, 'drawing'), DRAWING)
    writeFileSync(join(folder, 'pixels'), PNG)
    const { signedIn } = await openPortal(t, {
      hosts: {
        'svg.test': { upstream: APP, icon: join(folder, 'drawing') },
        'png.test': { upstream: APP, icon: join(folder, 'pixels') },
        'none.test': { upstream: APP, title: ' <Wiki>' },
      },
    })
    const browser = await signedIn()
    const icons = (await listed(browser)).map(({ icon }) => icon)
    const types = ['image/svg+xml', 'image/png', 'image/svg+xml']
    for (const [n, icon] of icons.entries()) {
      const { status, headers } = await browser.get(icon)
      assert.equal(status, 200)
      assert.equal(headers['content-type'], types[n])
      assert.equal(headers['x-content-type-options'], 'nosniff')
      assert.match(String(headers['content-security-policy']), /^default-src 'none'.*; sandbox$/)
      assert.equal(headers['cache-control'], 'private, max-age=31536000, immutable')
    }
    assert.equal((await browser.get(icons[0] ?? '')).text, DRAWING)
    assert.match((await browser.get(icons[2] ?? '')).text, />W<\/text>/)
    const { text } = await browser.get(`${PORTAL}/`)
    assert.deepEqual(
      [...text.matchAll(/<img src="(\/_menshen\/portal\/icons[^"]+)" alt=""/g)].map(([, path]) => PORTAL + path),
      icons.slice(0, 2),
    )
  })

  test('the address of an icon depends on SECRET, and made-up addresses get 404', async t => {
    const icon = join(tempFolder(t), 'icon.svg')
    writeFileSync(icon, DRAWING)
    const hosts = { 'wiki.test': { upstream: APP, icon } }
    const addressWith = async (SECRET: string) => {
      const { signedIn } = await openPortal(t, { hosts }, { SECRET })
      return (await listed(await signedIn()))[0]?.icon
    }
    const [one, same, other] = [
      await addressWith('a'.repeat(32)),
      await addressWith('a'.repeat(32)),
      await addressWith('b'.repeat(32)),
    ]
    assert.equal(one, same, 'every instance has the same')
    assert.notEqual(one, other)
    const { client } = await openPortal(t, { hosts })
    for (const path of [
      '/_menshen/portal/icons/',
      '/_menshen/portal/icons/x.svg',
      '/_menshen/portal/icons/constructor',
    ])
      assert.equal((await client.get(path, { headers: { host: new URL(PORTAL).host } })).status, 404, path)
  })

  test('an icon that has active content, is another kind of file, is too large or missing is refused', async t => {
    const folder = tempFolder(t)
    const files: [name: string, content: string | Buffer][] = [
      ['acts', DRAWING.replace('<path', '<script>alert(1)</script><path')],
      ['handler', DRAWING.replace('<path', '<path onclick="alert(1)"')],
      ['html', '<html><body>no icon</body></html>'],
      ['jpeg', Buffer.from('\xff\xd8\xff\xe0', 'latin1')],
      ['large', DRAWING.replace('<path', `${' '.repeat(64 * 1024)}<path`)],
      ['empty', ''],
    ]
    for (const [name, content] of files) writeFileSync(join(folder, name), content)
    for (const name of [...files.map(([name]) => name), 'missing'])
      for (const place of ['hosts', 'upstreams'] as const) {
        const entry = { icon: join(folder, name) }
        const config =
          place === 'hosts'
            ? { hosts: { 'wiki.test': { upstream: APP, ...entry } } }
            : { upstreams: { '/wiki': { url: APP, ...entry } } }
        const path = place === 'hosts' ? 'hosts.wiki.test.icon' : 'upstreams./wiki.icon'
        await assert.rejects(
          openPortal(t, config),
          ({ message }: Error) =>
            message.includes(`${path}: ${join(folder, name)} cannot be used; expected the path of a PNG`) &&
            message.includes('64 KB'),
          name,
        )
      }
  })

  test('a snapshot of the configuration notices a changed icon and refuses one that is not an image', async t => {
    const folder = tempFolder(t)
    const icon = join(folder, 'icon')
    const file = join(folder, 'menshen.config.mjs')
    const hosts = { 'wiki.test': { upstream: APP, icon } }
    writeFileSync(file, `export default ${JSON.stringify({ hosts })}`)
    const take = () => takeSnapshot({ environment: { CONFIG: file }, folder })
    writeFileSync(icon, PNG)
    const before = await take()
    assert.ok(before.files.includes(icon))
    // Neither of them is UTF-8.
    writeFileSync(icon, Buffer.concat([PNG, Buffer.from([0xff])]))
    const one = await take()
    writeFileSync(icon, Buffer.concat([PNG, Buffer.from([0xfe])]))
    const other = await take()
    const contents = [before, one, other].map(({ parts }) => parts['content of hosts.wiki.test.icon'])
    assert.equal(new Set(contents).size, 3)
    writeFileSync(icon, '<html>')
    await assert.rejects(take(), /hosts\.wiki\.test\.icon: .* cannot be used; expected the path of a PNG/)
  })

  test('the letter of a tile has enough contrast with every tile colour', () => {
    const channel = (value: number) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
    for (const color of TILE_COLORS) {
      const [r = 0, g = 0, b = 0] = [1, 3, 5].map(at => channel(Number.parseInt(color.slice(at, at + 2), 16) / 255))
      const ratio = 1.05 / (0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05)
      assert.ok(ratio >= 4.5, `${color} has ${ratio.toFixed(2)}`)
    }
  })
})

suite('the configuration', () => {
  const problemsOf = (config: object): string => {
    try {
      checkConfig(config, 'menshen.config.ts', 'the default export')
      return ''
    } catch (error) {
      return (error as Error).message
    }
  }

  test('start is a path of the application, and one of another application or another site is refused', () => {
    const withStart = (start: unknown) => problemsOf({ hosts: { 'wiki.test': { upstream: APP, start } } })
    for (const start of ['/', '/home', '/a/b?x=1#y', '/#/dashboard', '/报表', '/%E6%8A%A5', '/.well-known/x'])
      assert.equal(withStart(start), '', start)
    const wrong = [
      'home',
      '//evil.test',
      '/\\evil.test',
      'https://evil.test/',
      '/a b',
      '/../x',
      '/a/./b',
      '/a//b',
      '/%',
      '',
    ]
    for (const start of [...wrong, '/%2e%2e/x', '/a%2f%2fb', '/_menshen/account', '/_menshen', 'javascript:alert(1)'])
      assert.match(withStart(start), /hosts\.wiki\.test\.start: expected a path of the application/, start)
    const below = (start: string) => problemsOf({ upstreams: { '/wiki': { url: APP, start } } })
    for (const start of ['/wiki', '/wiki/', '/wiki/home?x=1']) assert.equal(below(start), '', start)
    assert.match(
      below('/home'),
      /upstreams\.\/wiki\.start: expected a path at or below \/wiki, for example "\/wiki\/home"/,
    )
    assert.match(below('/wikis'), /expected a path at or below \/wiki/)
  })

  test('a misspelt key is refused with a suggestion, and titles and descriptions have a maximum length', () => {
    const host = (keys: object) => problemsOf({ hosts: { 'wiki.test': { upstream: APP, ...keys } } })
    assert.match(host({ titel: 'x' }), /there is no "titel"; did you mean title\?/)
    assert.match(host({ title: '' }), /hosts\.wiki\.test\.title: expected text/)
    assert.match(host({ title: 'x'.repeat(101) }), /title: expected at most 100 characters/)
    assert.match(host({ description: 'x'.repeat(301) }), /description: expected at most 300 characters/)
    assert.match(host({ portal: 'no' }), /portal: expected true or false/)
    assert.match(problemsOf({ upstreams: { '/x': { url: APP, ikon: 'x' } } }), /did you mean icon\?/)
  })

  test('a changed title leaves the connections of an application open', async () => {
    const settings = readSettings({ STORE: 'memory:' })
    const before = openUpstreams(settings, { upstreams: { '/wiki': { url: APP, title: 'Wiki' } } })
    const titled = { url: APP, title: 'The wiki', description: 'x', start: '/wiki/x', portal: false }
    const after = openUpstreams(settings, { upstreams: { '/wiki': titled } }, before.all)
    assert.equal(after.all[0], before.all[0])
    await Promise.all(before.all.map(({ connections }) => connections.close()))
  })
})
