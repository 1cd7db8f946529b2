// What users and visitors can do behind a proxy, the same behind each.

import assert from 'node:assert/strict'
import test from 'node:test'
import { cookieOf, signIn } from '../kit/client.ts'
import type { Scene } from '../kit/set-up.ts'
import { raw, request } from '../proxy/raw.ts'
import { type FrontProxy, openBehind } from './proxies.ts'

const HTML = { accept: 'text/html', 'sec-fetch-dest': 'document' }
const NAMES = ['User', 'Email', 'Preferred-Username', 'Role', 'Groups'].map(name => `X-Forwarded-${name}`)

function truth({ upstream }: Scene): Record<string, unknown> {
  return Object.fromEntries(NAMES.map(name => [name, upstream.last().headers[name.toLowerCase()] || undefined]))
}

export function testJourneys(proxy: FrontProxy): void {
  const { program, name = program } = proxy

  test(`behind ${name} a visitor signs in and returns to the requested page`, async t => {
    const { scene, client } = await openBehind(t, proxy)
    const visitor = client()
    const away = await visitor.get('/reports/%E4%B8%AD?a=1&b=%2F', { headers: HTML })
    assert.equal(away.status, 302)
    const login = await visitor.follow(away)
    assert.match(login.text, /登录/)
    assert.equal(login.url, `${scene.baseUrl}/login`)
    const back = await signIn(visitor, scene.provider)
    const page = await visitor.follow(back)
    assert.equal(page.text, 'page /reports/%E4%B8%AD?a=1&b=%2F')
    assert.deepEqual(truth(scene), {
      'X-Forwarded-User': 'zhangsan',
      'X-Forwarded-Email': 'zhangsan@example.com',
      'X-Forwarded-Preferred-Username': encodeURIComponent('张三'),
      'X-Forwarded-Role': 'common',
      'X-Forwarded-Groups': undefined,
    })
    assert.match(String(scene.upstream.last().headers['x-menshen-assertion']), /^eyJ/)
    const { cookies } = visitor
    assert.ok(cookies.has('menshen_session') && cookies.has('app'))
    await visitor.get('/')
    assert.equal(scene.upstream.last().headers.cookie, 'app=1')
    const form = 'x'.repeat(300_000)
    assert.equal((await visitor.post('/', form)).text, `page /${form}`)
    assert.equal((await client().get('/', { headers: { accept: 'application/json' } })).status, 401)
    assert.equal((await client().post('/', 'x')).status, 401)
  })

  test(`behind ${name} a user with a name and an e-mail address of 2,000 characters still reaches the application`, async t => {
    const { scene, user } = await openBehind(t, proxy)
    const long = '龘'.repeat(2000)
    const fit = 'a'.repeat(500)
    const more = { email: long, nickname: long, phone_number: fit, ou_id: fit, ou_name: fit }
    assert.equal((await (await user('lisi', more)).get('/x')).text, 'page /x')
    assert.equal(truth(scene)['X-Forwarded-User'], 'lisi')
    assert.equal(truth(scene)['X-Forwarded-Preferred-Username'], encodeURIComponent('龘'.repeat(227)))
  })

  test(`behind ${name} the rules apply to every spelling of a path`, async t => {
    const { scene, url, user, client } = await openBehind(t, proxy)
    const [common, admin] = [await user(), await user('admin')]
    const refused = await common.get('/internal/x', { headers: HTML })
    assert.equal(refused.status, 403)
    assert.match(refused.text, /没有访问权限/)
    assert.equal((await admin.get('/internal/x')).text, 'page /internal/x')
    assert.equal((await client().get('/public')).text, 'page /public')
    scene.upstream.received.length = 0
    for (const trick of [
      ...[
        '/x/../internal',
        '/x/%2e%2e/internal',
        '//internal',
        '/%2finternal',
        '/internal%2fx',
        '/internal;x',
        '/internal/',
      ],
      ...[
        '/public/..%2finternal',
        '/public/..;/internal',
        '/x/..%5cinternal',
        '/%69nternal',
        '/%2569nternal',
        '/internal%00',
      ],
    ])
      await raw(
        url,
        request(`GET ${trick} HTTP/1.1`, `cookie: ${cookieOf(common)}`).replace('app.test', new URL(url).host),
      )
    assert.deepEqual(scene.upstream.received, [])
    assert.equal((await common.get('/fine')).text, 'page /fine')
  })

  test(`behind ${name} the session cookie renewed by a token refresh reaches the browser`, async t => {
    const { scene, user } = await openBehind(t, proxy)
    const client = await user()
    assert.deepEqual((await client.get('/')).setCookies, ['app=1; Path=/'])
    scene.passSeconds(7200 - 200)
    const page = await client.get('/')
    assert.equal(page.text, 'page /')
    assert.equal(page.setCookies.length, 2)
    assert.match(page.setCookies.join('\n'), /menshen_session=.*Max-Age=7200/)
    scene.passSeconds(300)
    assert.equal((await client.get('/')).text, 'page /')
    assert.equal(scene.provider.callsTo('refresh').length, 1)
  })

  test(`behind ${name} a page that polls does not keep its session from becoming idle, and a page that is opened does`, async t => {
    const { scene, user } = await openBehind(t, proxy, { env: { SESSION_IDLE_MINUTES: '20' } })
    const [polling, reading] = [await user(), await user('lisi')]
    const script = {
      accept: '*/*',
      'sec-fetch-mode': 'cors',
      'sec-fetch-dest': 'empty',
      'sec-fetch-site': 'same-origin',
    }
    const page = { ...HTML, 'sec-fetch-mode': 'navigate', 'sec-fetch-site': 'same-origin' }
    for (let minutes = 5; minutes <= 25; minutes += 5) {
      scene.passSeconds(300)
      const statuses = [await polling.get('/', { headers: script }), await reading.get('/', { headers: page })]
      assert.deepEqual(
        statuses.map(({ status }) => status),
        [minutes < 25 ? 200 : 401, 200],
        `${minutes} minutes`,
      )
    }
  })

  test(`behind ${name} a rule with origin 'own' admits the form of a page that sends no referrer, and of no other site`, async t => {
    const { scene, user } = await openBehind(t, proxy)
    const client = await user()
    // With `Referrer-Policy: no-referrer`, only Sec-Fetch-Site shows that the form is from the same site.
    const send = (site: string) =>
      client.post('/own', 'a=1', {
        headers: { ...HTML, origin: 'null', 'sec-fetch-mode': 'navigate', 'sec-fetch-site': site },
      })
    assert.equal((await send('cross-site')).status, 403)
    assert.deepEqual(scene.upstream.received, [])
    assert.equal((await send('same-origin')).text, 'page /owna=1')
  })

  test(`behind ${name} a response with a session cookie has no-store, regardless of the application’s caching headers`, async t => {
    const { scene, user } = await openBehind(t, proxy)
    const client = await user()
    const directives = (value: unknown) => [value ?? []].flat().join(', ').split(/, */)
    const before = await client.get('/cached')
    assert.ok(directives(before.headers['cache-control']).includes('max-age=600'))
    assert.equal(before.headers['cache-control']?.includes('no-store'), false)
    const missing = await client.get('/cached/missing')
    assert.deepEqual(
      [missing.status, directives(missing.headers['cache-control']).includes('max-age=600')],
      [404, true],
    )
    scene.passSeconds(7200 - 200)
    for (const path of ['/cached', '/cached/missing']) {
      const { headers, setCookies, status } = await client.get(path)
      assert.equal(status, path === '/cached' ? 200 : 404)
      assert.match(setCookies.join('\n'), /menshen_session=.*Max-Age=/)
      assert.ok(directives(headers['cache-control']).includes('no-store'), path)
      // Beside it, nginx leaves what the application says with an error; no-store counts more than that (RFC 9111, 5.2.2.5).
      if (status === 200 || name !== 'nginx')
        assert.doesNotMatch(String(headers['cache-control']), /public|max-age/, path)
      for (const other of ['cdn-cache-control', 'surrogate-control'])
        assert.ok(headers[other] === undefined || directives(headers[other]).includes('no-store'), `${path} ${other}`)
    }
  })

  test(`behind ${name} a client cannot choose the request ID on the page, in the log or at the application`, async t => {
    const { scene, user } = await openBehind(t, proxy)
    const chosen = 'chosen-by-the-client'
    const headers = { ...HTML, 'x-request-id': chosen }
    const common = await user()
    const refused = await common.get('/internal', { headers })
    assert.equal(refused.status, 403)
    await common.get('/page', { headers })
    await common.get('/login', { headers })
    await common.post('/logout', {}, { headers: { ...headers, origin: scene.baseUrl } })
    assert.notEqual(scene.upstream.last().headers['x-request-id'], chosen)
    assert.doesNotMatch(refused.text, new RegExp(chosen))
    assert.ok(scene.lines.some(({ event }) => event === 'sign_out'))
    assert.doesNotMatch(JSON.stringify(scene.lines), new RegExp(chosen))
  })
}
