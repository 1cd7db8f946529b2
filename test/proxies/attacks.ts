// What somebody tries through a proxy: to be taken for somebody else, to have the ticket sent to the application, to be
// answered in the proxy's place. The same behind each.

import assert from 'node:assert/strict'
import test from 'node:test'
import { HARMLESS_HEADERS } from '../../src/proxy/request-headers.ts'
import { cookieOf } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import { claims, unknownClaims } from '../proxy/claim-headers.ts'
import { arrangements, MIXED, OUR_COOKIES, theirsOf } from '../proxy/hostile-cookies.ts'
import { raw, request, statusOf } from '../proxy/raw.ts'
import { type Behind, type FrontProxy, MACHINE, openBehind } from './proxies.ts'

/** Some proxies take no more than a hundred. */
const LINES_AT_ONCE = 60

export function testAttacks(proxy: FrontProxy): void {
  const { program, name = program, cannot = [] } = proxy

  test(`behind ${name} spoofable headers of a client do not reach the application, under any name or spelling`, async t => {
    const { scene, url, user } = await openBehind(t, proxy)
    // Nothing is known of this user but the name, so there is nothing to write over a forged header with.
    const cookie = `cookie: ${cookieOf(await user('lisi', { email: '', nickname: '' }))}`
    const names = [...claims(), ...unknownClaims(cannot)]
    const forged = names.flatMap(name => [`${name}: forged`, `${name}: forged too`])
    for (let at = 0; at < forged.length; at += LINES_AT_ONCE)
      for (const [path, more, name] of [
        ['/', [cookie], 'lisi'],
        ['/public', [cookie], 'lisi'],
        ['/public', [], undefined],
      ] as const) {
        scene.upstream.received.length = 0
        const lines = forged.slice(at, at + LINES_AT_ONCE)
        await send(url, `GET ${path} HTTP/1.1`, ...more, ...lines)
        const received = scene.upstream.last()
        assert.deepEqual(
          received.lines.filter(([, value]) => value.includes('forged')),
          [],
        )
        assert.equal(received.headers['x-forwarded-user'] || undefined, name)
      }
  })

  test(`behind ${name} harmless headers reach the application`, async t => {
    const { scene, url, user } = await openBehind(t, proxy)
    const exceptions = HARMLESS_HEADERS.filter(name => !name.endsWith('*')).map(name => `${name}: theirs`)
    const lines = ['accept-language: zh-CN', 'authorization: Bearer theirs', 'x-csrf-token: abc', ...exceptions]
    await send(url, 'GET / HTTP/1.1', `cookie: ${cookieOf(await user())}`, ...lines)
    const received = scene.upstream.last().lines.map(([name, value]) => `${name}: ${value}`)
    assert.deepEqual(
      lines.filter(line => !received.includes(line)),
      [],
    )
  })

  test(`behind ${name} a key is accepted where a rule allows it, and is not forwarded to the application`, async t => {
    const { scene, url, user } = await openBehind(t, proxy)
    const { key } = MACHINE
    const cookie = `cookie: ${cookieOf(await user())}`
    const encoded = ['a', 'ab', 'abc'].map(name => Buffer.from(`${name}:${key}`).toString('base64'))
    const lines = [
      `authorization: Bearer ${key}`,
      `x-menshen-key: ${key}`,
      ...encoded.map(text => `authorization: Basic ${text}`),
    ]
    for (const line of lines)
      for (const [path, more, name] of [
        ['/machines', [], 'machine:backup'],
        ['/', [cookie], 'zhangsan'],
      ] as const) {
        const answer = await send(url, `GET ${path} HTTP/1.1`, ...more, line)
        assert.equal(statusOf(answer), 200, `${path} ${line}`)
        const { headers } = scene.upstream.last()
        assert.equal(headers['x-forwarded-user'], name)
        assert.deepEqual([headers.authorization || undefined, headers['x-menshen-key']], [undefined, undefined], line)
      }
  })

  test(`behind ${name} a client cannot remove Menshen’s headers by naming them in Connection`, async t => {
    const { scene, url, user } = await openBehind(t, proxy)
    const named = ['connection: x-forwarded-user, X-Menshen-Assertion', 'connection: x-forwarded-for']
    const answer = await send(url, 'GET / HTTP/1.1', `cookie: ${cookieOf(await user())}; app=1`, ...named)
    assert.equal(statusOf(answer), 200, answer)
    const { headers } = scene.upstream.last()
    assert.equal(headers['x-forwarded-user'], 'zhangsan')
    assert.match(String(headers['x-menshen-assertion']), /^eyJ/)
    assert.ok(headers['x-forwarded-for'])
  })

  test(`behind ${name} the application gets all of its own cookies and none of Menshen’s, in any order`, async t => {
    const behind = await openBehind(t, proxy)
    await Promise.all(
      arrangements().map(async (cookie, n) => {
        const path = `/public/${n}`
        await send(behind.url, `GET ${path} HTTP/1.1`, `cookie: ${cookie}`)
        assert.deepEqual(cookiesAt(behind, path), theirsOf(cookie), JSON.stringify(cookie))
      }),
    )
  })

  test(`behind ${name} Menshen’s cookies do not reach the application in several lines, in large numbers or with a session`, async t => {
    const behind = await openBehind(t, proxy)
    const inLines = await send(behind.url, 'GET /public/lines HTTP/1.1', ...MIXED.map(pair => `cookie: ${pair}`))
    // No browser sends several, and a proxy may refuse to guess.
    if (statusOf(inLines) === 200) assert.deepEqual(cookiesAt(behind, '/public/lines'), theirsOf(MIXED.join(';')))
    else assert.deepEqual([statusOf(inLines), behind.scene.upstream.received], [400, []])

    const many = Array.from({ length: 60 }, (_, n) => `${OUR_COOKIES[n % OUR_COOKIES.length]}=secret${n}; a${n}=${n}`)
    await send(behind.url, 'GET /public/many HTTP/1.1', `cookie: ${many.join('; ')}`)
    // A proxy that cannot find them all may keep all to itself.
    assert.doesNotMatch(cookiesAt(behind, '/public/many').join(), /secret/)

    const ticket = cookieOf(await behind.user())
    const decoys = '__Host-menshen_session=secret; menshen_return=secret'
    for (const [n, cookie] of [
      `${decoys}; ${ticket}; app=1`,
      `${ticket};${decoys};app=1`,
      `app=1;${ticket}; ${ticket}`,
    ].entries()) {
      await send(behind.url, `GET /in/${n} HTTP/1.1`, `cookie: ${cookie}`)
      assert.deepEqual(cookiesAt(behind, `/in/${n}`), ['app=1'])
    }
  })

  test(`behind ${name} a client cannot choose the host name that the application sees`, async t => {
    const { scene, url, user } = await openBehind(t, proxy)
    const cookie = `cookie: ${cookieOf(await user())}`
    for (const line of ['GET / HTTP/1.1', 'GET http://evil.example/ HTTP/1.1', `GET ${url}/ HTTP/1.1`])
      await raw(url, request(line, cookie).replace('app.test', 'evil.example'))
    for (const { lines } of scene.upstream.received)
      assert.deepEqual(
        lines.filter(([, value]) => value.includes('evil.example')),
        [],
      )
  })

  test(`behind ${name} no request reaches the application while Menshen is down`, async t => {
    const { scene, url } = await openBehind(t, proxy, { menshenAt: await freePort() })
    for (const path of ['/public', '/login']) {
      const answer = await send(url, `GET ${path} HTTP/1.1`, 'x-forwarded-user: admin')
      assert.ok(statusOf(answer) >= 500, answer)
    }
    assert.deepEqual(scene.upstream.received, [])
  })

  test(`behind ${name} the application can neither set Menshen’s cookies nor sign users out with Clear-Site-Data`, async t => {
    const { user } = await openBehind(t, proxy)
    const { headers, setCookies } = await (await user()).get('/hostile')
    assert.equal(headers['clear-site-data'], undefined)
    if (!cannot.includes('set-cookie')) assert.deepEqual(setCookies.filter(Boolean), ['app=1; Path=/'])
  })

  test(`behind ${name} a script on a page cannot use the check endpoints meant for the proxy`, async t => {
    const { url, user } = await openBehind(t, proxy)
    const cookie = `cookie: ${cookieOf(await user())}`
    const claims = ['x-original-uri: /', 'x-original-method: GET', 'x-forwarded-uri: /', 'x-forwarded-method: GET']
    for (const word of ['check', 'forward']) {
      for (const more of [[], claims]) {
        assert.equal(statusOf(await send(url, `GET /_menshen/${word} HTTP/1.1`, cookie, ...more)), 404)
        assert.equal(statusOf(await send(url, `GET /_menshen/${word}?a=1 HTTP/1.1`, cookie, ...more)), 404)
        assert.equal(statusOf(await send(url, `POST /_menshen/${word} HTTP/1.1`, cookie, ...more)), 404)
      }
      for (const target of spellings(url, word)) {
        const answer = await send(url, `GET ${target} HTTP/1.1`, cookie, ...claims)
        assert.doesNotMatch(answer, /x-menshen-assertion|eyJ|x-forwarded-user|zhangsan/i, target)
        assert.ok([200, 302, 400, 403, 404].includes(statusOf(answer)), `${target}: ${statusOf(answer)}`)
      }
    }
  })
}

/** Of the path that a question goes to, as far as anybody could take them for it. */
function spellings(url: string, word: string): string[] {
  const path = `/_menshen/${word}`
  const escaped = `%${word.charCodeAt(0).toString(16)}${word.slice(1)}`
  return [
    ...[`/${path}`, `/_menshen//${word}`, `//_menshen//${word}`, `/./_menshen/${word}`, `/_menshen/./${word}`],
    ...[
      `/x/..${path}`,
      `/x/%2e%2e${path}`,
      `/login/..${path}`,
      `/_menshen/x/../${word}`,
      `/public/../_menshen/${word}`,
    ],
    ...[
      `/%2f_menshen/${word}`,
      `/_menshen%2f${word}`,
      `/_menshen%2F${word}`,
      `/_menshen%5c${word}`,
      `/_menshen\\${word}`,
    ],
    ...[`/_menshen/${escaped}`, `/%5fmenshen/${word}`, `/_menshen/%25${escaped.slice(1)}`, `/%255fmenshen/${word}`],
    ...[path.toUpperCase(), `/_Menshen/${word}`, `/_menshen/${word.toUpperCase()}`],
    ...[`${path}/`, `${path}//`, `${path}/x`, `${path}.`, `${path};x`, `${path};/`, `${path}%20`, `${path}%00`],
    ...[
      `${path}%3f`,
      `${path}%23`,
      `${path}?`,
      `${path}?/../x`,
      `${path}#x`,
      `/_menshen;x/${word}`,
      `/_menshen/assets/../${word}`,
    ],
    ...[
      `${url}${path}`,
      `http://app.example.com${path}`,
      `/_menshen/assets/..%2f${word}`,
      `/_menshen/..;/_menshen/${word}`,
    ],
  ]
}

function send(url: string, line: string, ...headers: string[]): Promise<string> {
  return raw(url, request(line, ...headers).replace('app.test', new URL(url).host))
}

/** What the application got with this request, in the order of arrival. */
function cookiesAt({ scene }: Behind, path: string): string[] {
  const received =
    scene.upstream.received.find(({ target }) => target === path) ?? assert.fail(`${path} did not arrive`)
  const lines = received.lines.filter(([name]) => name === 'cookie').map(([, value]) => value)
  return lines
    .flatMap(value => value.split(';'))
    .map(pair => pair.trim())
    .filter(Boolean)
}
