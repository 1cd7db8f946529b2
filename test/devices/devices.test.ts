// DEVICE_BOUND_SESSIONS: a browser binds its session to a key, and the ticket alone is worth nothing.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import test, { after, before } from 'node:test'
import { exportJWK, generateKeyPair, type JWK } from 'jose'
import { WebSocket } from 'ws'
import { readSettings } from '../../src/index.ts'
import { type Client, cookieOf, createClient, type Options, type Response, signIn } from '../kit/client.ts'
import {
  BOUND_COOKIE,
  createDevice,
  type Device,
  nextChallenge,
  registrationChallenge,
  sendProof,
  signProof,
  TICKET_COOKIE,
} from '../kit/device.ts'
import { startRedis } from '../kit/redis-server.ts'
import { takeRs256Pair } from '../kit/rsa-keys.ts'
import { openGateway, type Scene, setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'

const BASE_URL = 'https://app.example.com'
const ON = { BASE_URL, DEVICE_BOUND_SESSIONS: 'on', TRUSTED_PROXIES: '127.0.0.1' }
const SCRIPT = { headers: { accept: 'application/json' } }
const TEN_MINUTES = 600
/** Where the application tries to set our cookies. */
const SETS_COOKIES = '/sets-cookies'

interface BoundUser {
  readonly client: Client
  readonly device: Device
  readonly signedIn: Response
  readonly registered: Response
  readonly id: string
}

type Place = Pick<Scene, 'visitor' | 'provider'>

async function signedInAt({ visitor, provider }: Place, username = 'zhangsan') {
  const client = visitor()
  return { client, signedIn: await signIn(client, provider, { username }) }
}

async function boundUser(place: Place, device?: Device): Promise<BoundUser> {
  const { client, signedIn } = await signedInAt(place)
  const key = device ?? (await createDevice())
  const registered = await key.register(client, signedIn)
  assert.equal(registered.status, 200, registered.text)
  return { client, device: key, signedIn, registered, id: nextChallenge(registered).id }
}

/** Its cookie has been seen. */
async function provenUser(scene: Scene): Promise<BoundUser> {
  const user = await boundUser(scene)
  assert.equal((await user.client.get('/')).text, 'hello')
  await until(async () => (await statusOf(user.client, ticketAlone(user.client))) === 401)
  return user
}

function ticketAlone(client: Client): Options {
  return { headers: { ...SCRIPT.headers, cookie: `${TICKET_COOKIE}=${client.cookies.get(TICKET_COOKIE)}` } }
}

function withBound(client: Client, bound: string | undefined): Options {
  const { cookie, ...rest } = ticketAlone(client).headers ?? {}
  return { headers: { ...rest, cookie: `${cookie}; ${BOUND_COOKIE}=${bound}` } }
}

async function statusOf(client: Client, options: Options = SCRIPT, path = '/'): Promise<number> {
  return (await client.get(path, options)).status
}

function boundCookie(client: Client): string | undefined {
  return client.cookies.get(BOUND_COOKIE)
}

test('DEVICE_BOUND_SESSIONS', async t => {
  const scene = await setUp(t, {
    env: ON,
    answer: ({ url }, response) => {
      const names = [BOUND_COOKIE, TICKET_COOKIE, ` ${BOUND_COOKIE.toLowerCase()} `, `=${BOUND_COOKIE}`]
      const own = names.map(name => `${name}=theirs; Path=/; Secure; HttpOnly`)
      if (url === SETS_COOKIES) response.setHeader('set-cookie', [...own, 'theirs=1; Path=/'])
      response.end('hello')
    },
  })

  await t.test('a browser registers its key after the sign-in, and gets a second cookie for ten minutes', async () => {
    const { signedIn, registered, client } = await boundUser(scene)
    assert.equal(signedIn.status, 302)
    assert.equal(registered.headers['cache-control'], 'no-store')
    const { session_identifier: id, ...rest } = registered.json<{ session_identifier: string }>()
    assert.equal(id, nextChallenge(registered).id)
    assert.deepEqual(rest, {
      refresh_url: '/_menshen/dbsc/refresh',
      scope: { origin: BASE_URL, include_site: false },
      credentials: [{ type: 'cookie', name: BOUND_COOKIE, attributes: 'Path=/; HttpOnly; SameSite=Lax; Secure' }],
    })
    const attributes = 'Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure'
    assert.deepEqual(registered.setCookies, [`${BOUND_COOKIE}=${boundCookie(client)}; ${attributes}`])
    const [event = {}] = scene.eventsOf('device_bound')
    assert.equal(event.user, 'zhangsan')
  })

  await t.test('the ticket alone is accepted only until the second cookie has been seen once', async () => {
    const { client } = await boundUser(scene)
    assert.equal(await statusOf(client, ticketAlone(client)), 200)
    assert.equal(await statusOf(client, withBound(client, 'of-another-session')), 200)
    assert.equal(await statusOf(client), 200)
    await until(async () => (await statusOf(client, ticketAlone(client))) === 401)
    const stolen = ticketAlone(client)
    const page = await client.get('/', { headers: { ...stolen.headers, accept: 'text/html' } })
    assert.match(String(page.headers.location), /^\/login/)
    assert.deepEqual(
      page.setCookies.filter(cookie => cookie.startsWith(TICKET_COOKIE)),
      [],
      'the browser keeps its ticket: it may only have been slow to prove itself',
    )
    assert.equal(await statusOf(client, stolen, '/_menshen/me'), 401)
    assert.equal(await statusOf(client, withBound(client, 'made-up')), 401)
    const check = { headers: { ...stolen.headers, 'x-original-uri': '/', 'x-original-method': 'GET' } }
    assert.equal(await statusOf(client, check, '/_menshen/check'), 401)
    const both = { headers: { ...check.headers, cookie: cookieOf(client) } }
    assert.equal(await statusOf(client, both, '/_menshen/check'), 200)
    const headers = new Headers({ cookie: String(stolen.headers?.cookie) })
    assert.equal(await scene.menshen.session(new Request(BASE_URL, { headers })), undefined)
    assert.equal(await statusOf(client), 200)
    const [event = {}] = scene.eventsOf('device_missing').slice(-1)
    assert.equal(event.user, 'zhangsan')
    assert.equal(scene.eventsOf('device_missing').length, 1, 'once a minute for each session')
  })

  await t.test('a WebSocket without the second cookie gets 401', async () => {
    const { client } = await provenUser(scene)
    const socket = new WebSocket(scene.url.replace('http', 'ws'), {
      headers: { cookie: String(ticketAlone(client).headers?.cookie), origin: BASE_URL },
    })
    const [, response] = await once(socket, 'unexpected-response')
    assert.equal(response.statusCode, 401)
    socket.on('error', () => {}).terminate()
  })

  await t.test('the application neither receives nor sets the ticket or the second cookie', async () => {
    const { client } = await provenUser(scene)
    await client.get('/')
    assert.doesNotMatch(String(scene.upstream.last().headers.cookie), /menshen/)
    const before = boundCookie(client)
    const answer = await client.get(SETS_COOKIES)
    assert.deepEqual(answer.setCookies, ['theirs=1; Path=/'])
    assert.equal(boundCookie(client), before)
    assert.equal(await statusOf(client), 200)
  })

  await t.test(
    'a refresh requires a proof and sets a new cookie; the old one stays valid until the next refresh',
    async () => {
      const { client, device, id } = await provenUser(scene)
      const first = boundCookie(client)
      const asked = await device.refresh(client, id)
      assert.equal(asked.status, 403)
      assert.deepEqual(asked.setCookies, [])
      const { challenge } = nextChallenge(asked)
      const answer = await device.refresh(client, id, challenge)
      assert.equal(answer.status, 200)
      assert.equal(answer.json<{ session_identifier: string }>().session_identifier, id)
      const second = boundCookie(client)
      assert.notEqual(second, first)
      assert.notEqual(nextChallenge(answer).challenge, challenge)
      assert.equal(
        await statusOf(client, withBound(client, first)),
        200,
        'requests that were under way bring the old one',
      )
      assert.equal(await statusOf(client, withBound(client, second)), 200)
      await device.refresh(client, id, nextChallenge(answer).challenge)
      assert.equal(await statusOf(client, withBound(client, first)), 401)
      assert.equal(await statusOf(client, withBound(client, second)), 200)
    },
  )

  await t.test('the second cookie expires after ten minutes, and a proof restores the session', async () => {
    const { client, device, id } = await provenUser(scene)
    const bound = boundCookie(client)
    scene.passSeconds(TEN_MINUTES + 10)
    assert.equal(await statusOf(client, withBound(client, bound)), 401)
    assert.equal(boundCookie(client), undefined)
    const { challenge } = nextChallenge(await device.refresh(client, id))
    assert.equal((await device.refresh(client, id, challenge)).status, 200)
    assert.equal(await statusOf(client), 200)
  })

  await t.test('two concurrent proofs get the same cookie', async () => {
    const { client, device, id } = await provenUser(scene)
    const { challenge } = nextChallenge(await device.refresh(client, id))
    const answers = await Promise.all([1, 2].map(() => device.refresh(client, id, challenge)))
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200],
    )
    const [one, other] = answers.map(({ setCookies }) => setCookies.join())
    assert.equal(one, other)
    assert.equal((await device.refresh(client, id, challenge)).status, 403, 'the challenge before counts once more')
    assert.equal(await statusOf(client), 200)
  })

  await t.test(
    'a valid signature over a wrong challenge gets 403 with a new challenge, and the session stays valid',
    async () => {
      const { client, device, id } = await provenUser(scene)
      const refused = await device.refresh(client, id, 'a-challenge-of-long-ago')
      assert.equal(refused.status, 403)
      assert.deepEqual([scene.eventsOf('device_refused').at(-1)?.reason, refused.setCookies], ['challenge', []])
      const { challenge } = nextChallenge(refused)
      assert.equal((await device.refresh(client, id, challenge)).status, 200)
      assert.equal(await statusOf(client), 200)
    },
  )

  await t.test('a replayed proof is rejected, even with its signature rewritten to an equivalent one', async () => {
    const { client, device, id } = await provenUser(scene)
    const { challenge } = nextChallenge(await device.refresh(client, id))
    const proof = await device.sign(challenge)
    const send = (proof: string) =>
      client.post('/_menshen/dbsc/refresh', '', {
        headers: { 'sec-secure-session-id': id, 'secure-session-response': proof },
      })
    assert.equal((await send(proof)).status, 200)
    for (const copy of [proof, `"${proof}"`, otherSignature(proof)]) {
      const { status, setCookies } = await send(copy)
      assert.deepEqual([status, setCookies], [403, []])
    }
  })

  await t.test('a proof with another key, another session or another algorithm is rejected', async () => {
    const { client, device, id } = await provenUser(scene)
    const other = await provenUser(scene)
    const { challenge } = nextChallenge(await device.refresh(client, id))
    const wrongKey = await other.device.refresh(client, id, challenge)
    assert.deepEqual([wrongKey.status, wrongKey.setCookies], [403, []])
    const own = {
      headers: { 'secure-session-response': await other.device.sign(challenge, { jwk: other.device.jwk }) },
    }
    assert.equal((await device.refresh(client, id, undefined, own)).status, 403, 'the key in the proof is not asked')
    const unsigned = { headers: { 'secure-session-response': unsignedProof({ jti: challenge }) } }
    assert.equal((await device.refresh(client, id, undefined, unsigned)).status, 403)
    assert.equal((await device.refresh(client, other.id, challenge)).status, 404)
    assert.equal((await device.refresh(client, '', challenge)).status, 404)
    assert.equal((await device.refresh(scene.visitor(), id, challenge)).status, 401)
    const foreign = { headers: { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' } }
    assert.equal((await device.refresh(client, id, challenge, foreign)).status, 403)
    assert.equal((await device.refresh(client, id, challenge)).status, 200)
  })

  await t.test('a session is bound once: its key cannot be replaced', async () => {
    const { client, signedIn, device, id } = await boundUser(scene)
    const thief = await createDevice()
    assert.equal((await thief.register(client, signedIn)).status, 403)
    assert.equal((await device.register(client, signedIn)).status, 403)
    const { challenge } = nextChallenge(await device.refresh(client, id))
    assert.equal((await sendProof(client, await thief.sign(challenge, { jwk: thief.jwk }))).status, 403)
    assert.equal((await device.refresh(client, id, challenge)).status, 200)
  })

  await t.test('only one of two concurrent registrations succeeds', async () => {
    const { client, signedIn } = await signedInAt(scene)
    const devices = await Promise.all([createDevice(), createDevice()])
    const answers = await Promise.all(devices.map(device => device.register(client, signedIn)))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 403])
  })

  await t.test('an invalid registration is rejected and does not bind the session', async () => {
    scene.passSeconds(60)
    const { client, signedIn } = await signedInAt(scene)
    const other = await signedInAt(scene, 'lisi')
    const jti = registrationChallenge(signedIn)
    const device = await createDevice()
    const { jwk } = device
    const rsa = takeRs256Pair()
    const { privateKey } = await generateKeyPair('ES256', { extractable: true })
    const secret = new TextEncoder().encode('a secret of at least thirty-two bytes')
    const full = { ...(await exportJWK(privateKey)) }
    const offCurve = { ...jwk, y: jwk.x } as JWK
    const wrong: readonly (readonly [string, string | Promise<string>, number, string])[] = [
      ['none', unsignedProof({ jti }, { jwk }), 400, 'algorithm'],
      [
        'RS256',
        signProof(rsa.privateKey, { jti }, { alg: 'RS256', jwk: await exportJWK(rsa.publicKey) }),
        400,
        'algorithm',
      ],
      ['HS256', signProof(secret, { jti }, { alg: 'HS256', jwk }), 400, 'algorithm'],
      ['ES256 with a key of RSA', device.sign(jti, { jwk: await exportJWK(rsa.publicKey) }), 400, 'key'],
      ['a private key', signProof(privateKey, { jti }, { jwk: full }), 400, 'key'],
      ['a point that is not on the curve', device.sign(jti, { jwk: offCurve }), 400, 'key'],
      ['no key', device.sign(jti), 400, 'key'],
      ['a huge key', device.sign(jti, { jwk: { ...jwk, x5c: ['a'.repeat(5000)] } as JWK }), 400, 'malformed'],
      ['a key that did not sign', signProof(privateKey, { jti }, { jwk }), 400, 'signature'],
      ['another type', device.sign(jti, { jwk, typ: 'jwt' }), 400, 'signature'],
      ['no challenge', signProof(privateKey, {}, { jwk: publicOf(full) }), 400, 'malformed'],
      ['a challenge that is not text', signProof(privateKey, { jti: 7 }, { jwk: publicOf(full) }), 400, 'malformed'],
      ['no JWT', 'x.y', 400, 'malformed'],
      ['nothing', '', 400, 'malformed'],
      ['another challenge', device.sign('made-up', { jwk }), 403, 'challenge'],
      [
        'the challenge of another session',
        device.sign(registrationChallenge(other.signedIn), { jwk }),
        403,
        'challenge',
      ],
    ]
    for (const [name, proof, status, reason] of wrong) {
      // The log tells the same ten times a minute.
      scene.passSeconds(30)
      const before = scene.eventsOf('device_refused').length
      const answer = await sendProof(client, await proof)
      assert.deepEqual([answer.status, answer.setCookies], [status, []], name)
      // Without the count of those that a minute left out.
      const told = scene
        .eventsOf('device_refused')
        .slice(before)
        .filter(({ count }) => count === undefined)
      assert.deepEqual(
        told.map(({ step, reason }) => [step, reason]),
        [['register', reason]],
        name,
      )
    }
    const foreign = { headers: { origin: 'https://evil.example' } }
    assert.equal((await sendProof(client, await device.sign(jti, { jwk }), foreign)).status, 403)
    for (const part of [jti.slice(0, 43), `${jti.slice(0, 43)}made-up`, ''])
      assert.equal((await sendProof(scene.visitor(), await device.sign(part, { jwk }))).status, 401, part)
    assert.equal((await client.get('/_menshen/dbsc/register')).status, 405)
    assert.equal((await device.refresh(client, 'any')).status, 404, 'it is not bound')
    assert.equal((await device.register(client, signedIn)).status, 200)
  })

  await t.test(
    'after the provider’s redirect a key is registered without cookies, but not with another session’s ticket',
    async () => {
      const { client, signedIn } = await signedInAt(scene)
      const device = await createDevice()
      assert.equal((await device.register(scene.visitor(), signedIn)).status, 200)
      const other = await signedInAt(scene)
      assert.equal(
        (await device.register(client, other.signedIn)).status,
        403,
        'a ticket that comes as a cookie decides',
      )
    },
  )

  await t.test(
    'a bound session whose browser never proves itself ends after ten minutes, and the login page says why',
    async () => {
      const { client } = await boundUser(scene)
      const lonely = ticketAlone(client)
      scene.passSeconds(TEN_MINUTES - 5)
      assert.equal(await statusOf(client, lonely), 200)
      scene.passSeconds(10)
      assert.equal(await statusOf(client, lonely), 401)
      const [ended = {}] = scene.eventsOf('session_ended').slice(-1)
      assert.deepEqual([ended.reason, ended.user, ended.ended], ['unbound', 'zhangsan', 1])
      const login = await client.get('/login', { headers: { ...lonely.headers, accept: 'text/html' } })
      assert.match(login.text, /浏览器未能确认这是您登录时使用的设备/)
      assert.equal(await statusOf(client, lonely), 401)
    },
  )

  await t.test(
    'a proof confirms a browser whose second cookie was never seen, and then the ticket alone is refused',
    async () => {
      const { client, device, id } = await boundUser(scene)
      scene.passSeconds(TEN_MINUTES + 60)
      const { challenge } = nextChallenge(await device.refresh(client, id))
      assert.equal((await device.refresh(client, id, challenge)).status, 200)
      assert.equal(await statusOf(client, ticketAlone(client)), 401)
      assert.equal(await statusOf(client), 200)
    },
  )

  await t.test('a browser without device binding stays signed in, and its session cannot be bound later', async () => {
    const { client, signedIn } = await signedInAt(scene)
    scene.passSeconds(TEN_MINUTES * 3)
    assert.equal(await statusOf(client), 200)
    const late = await (await createDevice()).register(client, signedIn)
    assert.equal(late.status, 403)
    assert.equal(scene.eventsOf('device_refused').at(-1)?.reason, 'late')
    assert.equal(await statusOf(client), 200)
  })

  await t.test(
    'a link from another site goes through an intermediate page on which the browser proves its device',
    async () => {
      const { client } = await provenUser(scene)
      const { cookie } = ticketAlone(client).headers ?? {}
      const browser = { cookie, accept: 'text/html', 'user-agent': 'Mozilla/5.0' }
      const link = { ...browser, 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
      const from = (site: string) => ({ headers: { ...link, 'sec-fetch-site': site } })
      const login = String((await client.get('/wiki?a=1', from('cross-site'))).headers.location)
      const page = await client.get(login, from('cross-site'))
      assert.equal(page.headers.refresh, '1; url=/wiki?a=1')
      assert.match(page.text, /href="\/wiki\?a=1" data-enter/)
      const again = await client.get(login, from('same-origin'))
      assert.deepEqual([again.status, again.headers.refresh], [200, undefined])
      assert.match(again.text, /class="sign-in"/)
    },
  )

  await t.test('a link from another site does not end a session whose browser has not proved itself yet', async () => {
    const { client, device, id } = await boundUser(scene)
    const { cookie } = ticketAlone(client).headers ?? {}
    scene.passSeconds(TEN_MINUTES + 60)
    const link = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document', 'sec-fetch-site': 'cross-site' }
    const options = { headers: { ...link, cookie, accept: 'text/html', 'user-agent': 'Mozilla/5.0' } }
    const login = String((await client.get('/wiki', options)).headers.location)
    assert.equal((await client.get(login, options)).headers.refresh, '1; url=/wiki')
    const { challenge } = nextChallenge(await device.refresh(client, id))
    assert.equal((await device.refresh(client, id, challenge)).status, 200)
    assert.equal(await statusOf(client), 200)
  })

  await t.test('a sign-out clears both cookies and also works without the second one', async () => {
    const { client } = await provenUser(scene)
    const { setCookies } = await client.post('/logout', '', { headers: { origin: BASE_URL } })
    for (const name of [TICKET_COOKIE, BOUND_COOKIE])
      assert.ok(
        setCookies.some(cookie => cookie.startsWith(`${name}=; Path=/; Max-Age=0`)),
        name,
      )
    const other = await provenUser(scene)
    const { cookie } = ticketAlone(other.client).headers ?? {}
    await other.client.post('/logout', '', { headers: { origin: BASE_URL, cookie } })
    assert.equal(await statusOf(other.client), 401)
  })

  await t.test('a stolen ticket causes no token refresh', async () => {
    const { client, device, id } = await provenUser(scene)
    const stolen = ticketAlone(client)
    const before = scene.provider.callsTo('refresh').length
    scene.passSeconds(7000)
    assert.equal(await statusOf(client, stolen), 401)
    assert.equal(scene.provider.callsTo('refresh').length, before)
    const { challenge } = nextChallenge(await device.refresh(client, id))
    assert.equal((await device.refresh(client, id, challenge)).status, 200)
    assert.equal(await statusOf(client), 200)
    assert.equal(scene.provider.callsTo('refresh').length, before + 1)
    assert.equal(await statusOf(client, ticketAlone(client)), 401, 'the new tokens belong to a bound session')
  })

  await t.test('the log contains no keys, cookies or challenges', () => {
    assert.doesNotMatch(JSON.stringify(scene.lines), /"(?:x|y|challenge|cookie|jti)":|eyJ/)
  })
})

let redis: Awaited<ReturnType<typeof startRedis>>
before(async () => {
  redis = await startRedis()
})
after(() => redis?.stop())

for (const kind of ['sqlite', 'redis'] as const)
  test(`two processes that share a store (${kind}) accept the same device`, async t => {
    const env = shared(kind === 'sqlite' ? `sqlite:${tempFolder(t)}/menshen.db` : `redis://127.0.0.1:${redis.port}`)
    const scene = await setUp(t, { env })
    const other = await openGateway(t, { ...scene.provider.settings, UPSTREAM: scene.upstream.url, ...env })
    const user = await boundUser(scene)
    const { client, device, id } = user
    const elsewhere = (options: Options) => createClient(other.url, other.now).get('/', options)
    const both = () => ({ headers: { ...SCRIPT.headers, cookie: cookieOf(client) } })
    assert.equal((await elsewhere(both())).status, 200)
    await until(async () => (await statusOf(client, ticketAlone(client))) === 401)
    for (let n = 0; n < 3; n++) {
      const { challenge } = nextChallenge(await device.refresh(client, id))
      assert.equal((await device.refresh(client, id, challenge)).status, 200)
      assert.equal((await elsewhere(both())).status, 200, 'the cookie of a moment ago')
    }
    const { challenge } = nextChallenge(await device.refresh(client, id))
    const atOther = createClient(other.url, other.now)
    const proofs = [
      device.refresh(client, id, challenge),
      device.refresh(atOther, id, challenge, { headers: { cookie: cookieOf(client) } }),
    ]
    const answers = await Promise.all(proofs)
    assert.deepEqual([...new Set(answers.map(({ status, setCookies }) => `${status} ${setCookies}`))].length, 1)
    assert.equal((await elsewhere(both())).status, 200)
    assert.equal((await elsewhere(ticketAlone(client))).status, 401)
  })

test('with DEVICE_BOUND_SESSIONS turned off, bound sessions stay bound and new ones are not bound', async t => {
  const env = shared(`sqlite:${tempFolder(t)}/menshen.db`)
  const scene = await setUp(t, { env })
  const { client, device, id } = await provenUser(scene)
  const cookies = cookieOf(client)
  await scene.close()
  const off = await setUp(t, { env: { ...env, DEVICE_BOUND_SESSIONS: 'off' } })
  const [alone = ''] = cookies.split('; ').filter(cookie => cookie.startsWith(TICKET_COOKIE))
  assert.equal(await statusOf(off.client, { headers: { ...SCRIPT.headers, cookie: alone } }), 401)
  assert.equal(await statusOf(off.client, { headers: { ...SCRIPT.headers, cookie: cookies } }), 200)
  const options = { headers: { cookie: alone } }
  const { challenge } = nextChallenge(await device.refresh(off.client, id, undefined, options))
  assert.equal((await device.refresh(off.client, id, challenge, options)).status, 200)
  const { client: fresh, signedIn } = await signedInAt(off)
  assert.equal(signedIn.headers['secure-session-registration'], undefined)
  assert.equal((await sendProof(fresh, await device.sign('any', { jwk: device.jwk }))).status, 404)
})

test('rejected proofs are limited by RATE_LIMIT_PER_MINUTE, and valid ones are not', async t => {
  const scene = await setUp(t, { env: { ...ON, RATE_LIMIT_PER_MINUTE: '3' } })
  const { client, device, id } = await provenUser(scene)
  for (let n = 0; n < 5; n++) {
    const { challenge } = nextChallenge(await device.refresh(client, id))
    assert.equal((await device.refresh(client, id, challenge)).status, 200)
  }
  const statuses: number[] = []
  for (let n = 0; n < 5; n++) statuses.push((await device.refresh(client, id, 'wrong')).status)
  assert.deepEqual(statuses, [403, 403, 403, 429, 429])
  assert.equal(scene.eventsOf('device_refused').length, 3)
  assert.equal(scene.eventsOf('rate_limited')[0]?.kind, 'device')
})

test('a valid proof and a registration are accepted while others at the address are above the limit', async t => {
  const scene = await setUp(t, { env: { ...ON, RATE_LIMIT_PER_MINUTE: '3' } })
  const { client, device, registered } = await boundUser(scene)
  const colleague = await boundUser(scene)
  const refused = () => colleague.device.refresh(colleague.client, colleague.id, 'wrong')
  for (const status of [403, 403, 403, 429]) assert.equal((await refused()).status, status)
  const { id, challenge } = nextChallenge(registered)
  assert.equal((await device.refresh(client, id, challenge)).status, 200)
  await boundUser(scene)
  assert.equal((await refused()).status, 429)
})

test('DEVICE_BOUND_SESSIONS=on without https or together with hosts is a startup error', async t => {
  assert.throws(
    () => readSettings({ BASE_URL: 'http://app.example.com', DEVICE_BOUND_SESSIONS: 'on' }),
    /DEVICE_BOUND_SESSIONS is "on" and BASE_URL is "http:\/\/app\.example\.com"; expected an https address/,
  )
  assert.throws(() => readSettings({ DEVICE_BOUND_SESSIONS: 'on' }), /expected an https address/)
  const config = { hosts: { 'wiki.example.com': { upstream: 'http://127.0.0.1:8081' } } }
  await assert.rejects(
    setUp(t, { env: ON, config }),
    /DEVICE_BOUND_SESSIONS is "on" with hosts: .*; expected only one of the two\./,
  )
})

function shared(store: string): Record<string, string> {
  return { ...ON, STORE: store, SECRET: 'a secret of the test that is long enough' }
}

function publicOf({ d: _, ...rest }: JWK): JWK {
  return rest
}

function unsignedProof(payload: object, header: object = {}): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  return `${part({ alg: 'none', typ: 'dbsc+jwt', ...header })}.${part(payload)}.`
}

/** With the order of the curve minus the second half, the signature is as good as before. */
function otherSignature(proof: string): string {
  const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n
  const end = proof.lastIndexOf('.') + 1
  const signature = Buffer.from(proof.slice(end), 'base64url')
  const half = order - BigInt(`0x${signature.subarray(32).toString('hex')}`)
  const changed = Buffer.concat([signature.subarray(0, 32), Buffer.from(half.toString(16).padStart(64, '0'), 'hex')])
  return proof.slice(0, end) + changed.toString('base64url')
}
