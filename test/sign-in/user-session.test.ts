// What an application can do with a session: know its id, learn of its end, and change its data.

import assert from 'node:assert/strict'
import { getEventListeners, once } from 'node:events'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import type { Menshen, Session } from '../../src/index.ts'
import { keySha256, newKey } from '../../src/util/key-form.ts'
import { EMBEDDED_URL, setUpEmbedded, TOKEN_LIFE } from '../kit/embedded.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'

const request = (cookie?: string, method = 'GET', path = '/') =>
  new Request(EMBEDDED_URL + path, {
    method,
    headers: { origin: EMBEDDED_URL, ...(cookie !== undefined && { cookie }) },
  })

async function sessionOf(menshen: Menshen, cookie: string): Promise<Session> {
  return (await menshen.session(request(cookie))) ?? assert.fail('no session')
}

function signalOf({ signal }: Session): AbortSignal {
  return signal ?? assert.fail('no signal')
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort')
}

suite('the id of a session', () => {
  test('a session has the same public id in every request, and the log has its first ten characters', async t => {
    const ended: (string | undefined)[] = []
    const begun: (string | undefined)[] = []
    const { menshen, signIn, lines } = await setUpEmbedded(t, {
      onSignIn: ({ id }) => void begun.push(id),
      onSignOut: ({ id }) => void ended.push(id),
    })
    const cookie = await signIn()
    const { id = '' } = await sessionOf(menshen, cookie)
    assert.match(id, /^[\w-]{43}$/)
    assert.ok(!cookie.includes(id), 'the id opens nothing')
    assert.equal((await menshen.admit(request(cookie))).user?.id, id)
    await menshen.fetch(request(cookie, 'POST', '/logout'))
    const logged = lines.map(({ fields }) => Object(fields).session).filter(session => session !== undefined)
    assert.deepEqual([...new Set(logged)], [id.slice(0, 10)])
    assert.deepEqual([begun, ended], [[undefined], [id]])
  })
})

suite('the signal of a session', () => {
  test('the signal aborts when the user signs out, in every request that has read it', async t => {
    const { menshen, signIn } = await setUpEmbedded(t)
    const [cookie, other] = [await signIn(), await signIn()]
    const { user } = await menshen.admit(request(cookie))
    const signals = [signalOf(user ?? assert.fail()), signalOf(await sessionOf(menshen, cookie))]
    const kept = signalOf(await sessionOf(menshen, other))
    await menshen.fetch(request(cookie, 'POST', '/logout'))
    await Promise.all(signals.map(aborted))
    assert.equal(kept.aborted, false)
  })

  test('the signal aborts in another process on the same store, and when the last token of the session expires', async t => {
    const { menshen, open, signIn, clock, provider } = await setUpEmbedded(t, {
      store: `sqlite:${join(tempFolder(t), 'menshen.db')}`,
    })
    provider.behaviour.refreshTokens = false
    const other = await open()
    const [cookie, expiring] = [await signIn(), await signIn()]
    const elsewhere = signalOf(await sessionOf(other, cookie))
    const late = signalOf(await sessionOf(menshen, expiring))
    await menshen.fetch(request(cookie, 'POST', '/logout'))
    await aborted(elsewhere)
    assert.equal(late.aborted, false)
    clock.now += TOKEN_LIFE * 1000
    await aborted(late)
  })

  test('the signal aborts when the provider refuses the refresh that an open stream needs', async t => {
    const { menshen, signIn, clock, provider } = await setUpEmbedded(t)
    const signal = signalOf(await sessionOf(menshen, await signIn()))
    const ended = once(signal, 'abort')
    clock.now += (TOKEN_LIFE - 60) * 1000
    await provider.called('refresh')
    provider.answer('refresh', { kind: 'json', status: 400, body: { error: 'invalid_grant' } })
    clock.now += TOKEN_LIFE * 1000
    await ended
  })

  test('a signal without listeners neither refreshes nor prolongs its session, even if another signal depends on it', async t => {
    const { menshen, signIn, clock, provider } = await setUpEmbedded(t)
    const signal = signalOf(await sessionOf(menshen, await signIn()))
    const dependent = AbortSignal.any([signal])
    const ended = once(dependent, 'abort')
    clock.now += (TOKEN_LIFE - 60) * 1000
    const looked = signalOf(await sessionOf(menshen, await signIn()))
    clock.now += TOKEN_LIFE * 1000
    // Both are looked at in the same turn. A listener now would ask for a refresh.
    await until(() => signal.aborted && looked.aborted)
    await ended
    assert.equal(provider.callsTo('refresh').length, 0)
  })

  test('a signal that is not read sets no timer, and is not an enumerable field of the user', async t => {
    const setTimer = t.mock.method(globalThis, 'setInterval')
    const { menshen, signIn } = await setUpEmbedded(t)
    const cookie = await signIn()
    const { user } = await menshen.admit(request(cookie))
    const session = await sessionOf(menshen, cookie)
    const before = setTimer.mock.callCount()
    for (const one of [session, user ?? assert.fail()]) {
      assert.ok(!Object.keys(one).includes('signal'))
      assert.ok(!('signal' in { ...one }))
      assert.ok(!JSON.stringify(one).includes('signal'))
      structuredClone(one)
    }
    assert.equal(setTimer.mock.callCount(), before)
    assert.ok(session.signal instanceof AbortSignal)
    assert.equal(setTimer.mock.callCount(), before + 1)
  })

  test('thousands of requests of one session share one signal, and leave no listeners and no warnings', async t => {
    const warnings: Error[] = []
    const onWarning = (warning: Error) => warnings.push(warning)
    process.on('warning', onWarning)
    t.after(() => process.off('warning', onWarning))
    const { menshen, signIn } = await setUpEmbedded(t)
    const cookie = await signIn()
    const signals = new Set<AbortSignal>()
    for (let n = 0; n < 3000; n++) signals.add(signalOf(await sessionOf(menshen, cookie)))
    assert.equal(signals.size, 1)
    const signal = signalOf(await sessionOf(menshen, cookie))
    assert.equal(getEventListeners(signal, 'abort').length, 0)
    let closed = 0
    for (let n = 0; n < 100; n++) signal.addEventListener('abort', () => closed++)
    await menshen.fetch(request(cookie, 'POST', '/logout'))
    await aborted(signal)
    await new Promise(setImmediate)
    assert.equal(closed, 100)
    assert.deepEqual(warnings, [])
  })

  test('a caller with a key has neither an id nor a signal, and no data to update', async t => {
    const key = newKey()
    const { menshen } = await setUpEmbedded(t, {
      machines: [{ name: 'backup', keySha256: keySha256(key) }],
      rules: [{ path: '/api', users: ['machine:backup'], keys: true }],
    })
    const machine = new Request(`${EMBEDDED_URL}/api`, { headers: { 'x-menshen-key': key } })
    const { user } = await menshen.admit(machine)
    assert.equal(user?.machine, true)
    assert.deepEqual([user.id, user.signal], [undefined, undefined])
    const again = await menshen.session(machine)
    assert.deepEqual([again?.machine, again?.id, again?.signal], [true, undefined, undefined])
    await assert.rejects(menshen.updateData(machine, {}), { code: 'no_session' })
  })

  test('close aborts every signal, including one that is read afterwards', async t => {
    const { menshen, signIn } = await setUpEmbedded(t)
    const cookie = await signIn()
    const [session, unread] = [await sessionOf(menshen, cookie), await sessionOf(menshen, cookie)]
    const signal = signalOf(session)
    await menshen.close()
    assert.equal(signal.aborted, true)
    assert.equal(signalOf(unread).aborted, true)
  })
})

suite('updateData', () => {
  test('updateData replaces the data of the session for all requests and processes', async t => {
    const { menshen, open, signIn } = await setUpEmbedded(t, {
      store: `sqlite:${join(tempFolder(t), 'menshen.db')}`,
      onSignIn: () => ({ tenant: 7, theme: 'dark' }),
    })
    const other = await open()
    const cookie = await signIn()
    assert.deepEqual((await sessionOf(other, cookie)).data, { tenant: 7, theme: 'dark' })
    const data = { tenant: 8, nested: { list: [1] } }
    await menshen.updateData(request(cookie), data)
    data.nested.list.push(2)
    assert.deepEqual((await sessionOf(menshen, cookie)).data, { tenant: 8, nested: { list: [1] } })
    assert.deepEqual((await menshen.admit(request(cookie))).user?.data, { tenant: 8, nested: { list: [1] } })
    assert.deepEqual((await sessionOf(other, cookie)).data, { tenant: 8, nested: { list: [1] } })
    await other.updateData({ headers: { cookie } }, {})
    assert.deepEqual((await sessionOf(menshen, cookie)).data, {})
  })

  test('updateData during a refresh loses neither the data nor the new tokens', async t => {
    const { menshen, open, signIn, clock, provider } = await setUpEmbedded(t, {
      store: `sqlite:${join(tempFolder(t), 'menshen.db')}`,
    })
    const other = await open()
    const cookie = await signIn()
    const before = await menshen.accessToken(request(cookie))
    // Its request takes part in no refresh.
    clock.now += (TOKEN_LIFE - 60) * 1000
    const release = provider.hold('refresh')
    const refreshing = menshen.accessToken(request(cookie))
    await provider.called('refresh')
    const updates = [menshen, other].map((one, n) => one.updateData(request(cookie), { n }))
    release()
    const after = await refreshing
    await Promise.all(updates)
    assert.notEqual(after, before)
    assert.equal(provider.callsTo('refresh').length, 1)
    for (const one of [menshen, other]) {
      assert.equal(await one.accessToken(request(cookie)), after)
      assert.equal(typeof (await sessionOf(one, cookie)).data?.n, 'number')
    }
  })

  test('updateData accepts plain JSON objects of up to 16 KB, as onSignIn does, and rejects anything else without changing the data', async t => {
    const returned: { data?: unknown } = {}
    const { menshen, signIn, get, provider } = await setUpEmbedded(t, { onSignIn: () => returned.data as object })
    const cookie = await signIn()
    const fits = { text: 'x'.repeat(16 * 1024 - '{"text":""}'.length) }
    await menshen.updateData(request(cookie), fits)
    const circular: Record<string, unknown> = {}
    circular.self = circular
    const wrong: [unknown, RegExp][] = [
      [{ text: `${fits.text}x` }, /^updateData: the data has 16385 bytes of JSON; expected at most 16384, /],
      [{ big: 1n }, /^updateData: the data cannot be written as JSON: .*BigInt\.$/],
      [circular, /^updateData: the data cannot be written as JSON: Converting circular structure to JSON\.$/],
      [[1], /^updateData: expected an object\.$/],
      [null, /^updateData: expected an object\.$/],
      ['text', /^updateData: expected an object\.$/],
      [undefined, /^updateData: expected an object\.$/],
      [{ map: new Map() }, /^updateData: expected plain objects, which JSON can keep, and not a Map\.$/],
    ]
    for (const [data, message] of wrong)
      await assert.rejects(menshen.updateData(request(cookie), data as never), { code: 'bad_settings', message })
    assert.deepEqual((await sessionOf(menshen, cookie)).data, fits)

    // A hook that returns nothing, or null, stores no data.
    for (const [data] of wrong.filter(([data]) => data !== undefined && data !== null)) {
      returned.data = data
      const refused = await get(`/callback?code=${provider.codeFor()}&state=abc_idp`)
      assert.equal(refused?.headers.get('location'), '/login?error=callback_error', typeof data)
    }
    returned.data = fits
    assert.deepEqual((await sessionOf(menshen, await signIn())).data, fits)
  })

  test('updateData rejects without a session, and does not revive a session that has ended', async t => {
    const { menshen, signIn } = await setUpEmbedded(t)
    const cookie = await signIn()
    await assert.rejects(menshen.updateData(request(), { a: 1 }), {
      code: 'no_session',
      message: 'updateData: no user is signed in with this request.',
    })
    await assert.rejects(menshen.updateData(request('menshen_session=forged'), { a: 1 }), { code: 'no_session' })
    const updates = Array.from({ length: 20 }, (_, n) => menshen.updateData(request(cookie), { n }).catch(() => {}))
    await menshen.fetch(request(cookie, 'POST', '/logout'))
    await Promise.all(updates)
    assert.equal(await menshen.session(request(cookie)), undefined)
    await assert.rejects(menshen.updateData(request(cookie), { a: 1 }), { code: 'no_session' })
    await menshen.close()
    await assert.rejects(menshen.updateData(request(cookie), { a: 1 }), { code: 'store_unavailable' })
  })
})
