// S72: every secret can be replaced without signing anybody out, everybody is still found, and the old one stops working when
// it is taken away.

import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { type Client, createClient, signIn } from '../kit/client.ts'
import { openScriptedProvider } from '../kit/scripted-provider.ts'
import { type Gateway, openGateway } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'

const OLD = 'the old secret of this test; it is long enough'
const NEW = 'the new secret of this test; it is long enough'

type Secrets = Record<string, string>

/** One store and one provider, and starts of Menshen one after the other. */
async function prepare(t: TestContext) {
  const provider = await openScriptedProvider(t)
  const STORE = `sqlite:${tempFolder(t)}/menshen.db`
  let running: Gateway | undefined

  async function start(secrets: Secrets) {
    await running?.close()
    running = await openGateway(t, { ...provider.settings, STORE, ...secrets })
    return running
  }
  /** Signs in, and gives the ticket. */
  async function user(username: string): Promise<string> {
    assert.ok(running)
    const client = running.visitor()
    await signIn(client, provider, { username })
    return `menshen_session=${client.cookies.get('menshen_session')}`
  }
  const at = (): Client => createClient(running?.url ?? '')
  const isIn = async (cookie: string) => (await at().get('/_menshen/me', { headers: { cookie } })).status === 200
  const names = async (cookie: string) =>
    [...(await at().get('/_menshen/console/sessions', { headers: { cookie } })).text.matchAll(/user-[a-z]+/g)].map(
      ([name]) => name,
    )
  const endEverywhere = (cookie: string) => at().post('/_menshen/sign-out-everywhere', '', { headers: { cookie } })
  const keyIds = async () =>
    (await at().get('/_menshen/jwks.json')).json<{ keys: { kid: string }[] }>().keys.map(({ kid }) => kid)
  const lines = () => running?.lines ?? []
  const log = () => lines().map(({ event }) => event)
  return { start, user, isIn, names, endEverywhere, keyIds, lines, log, at, provider }
}

const ROTATIONS: Record<string, Secrets[]> = {
  'replacing SECRET with the new secret listed first': [{ SECRET: OLD }, { SECRET: `${NEW},${OLD}` }, { SECRET: NEW }],
  'announcing the new secret before replacing SECRET': [
    { SECRET: OLD },
    { SECRET: `${OLD},${NEW}` },
    { SECRET: `${NEW}\n${OLD}` },
    { SECRET: NEW },
  ],
  'setting SECRET for the first time': [{}, { SECRET: NEW }, { SECRET: NEW }],
  'changing the client secret with SECRET set': [{ SECRET: OLD }, { SECRET: OLD, CLIENT_SECRET: 'another' }],
}

for (const [what, steps] of Object.entries(ROTATIONS))
  test(`${what} signs no user out, and sessions without a request since can still be listed and ended`, async t => {
    const { start, user, isIn, names, endEverywhere, keyIds, log } = await prepare(t)
    const [first = {}, ...others] = steps
    await start(first)
    const [absent, present] = [await user('user-absent'), await user('user-absent')]
    const developer = await user('admin')
    const [published, listed] = [await keyIds(), await names(developer)]
    assert.ok(listed.length > 0)
    // No request in between: what a rotation needs is done at the start.
    for (const secrets of others) await start(secrets)
    assert.deepEqual(await keyIds(), published, 'no application has to learn another key')
    assert.deepEqual(await names(developer), listed)
    for (const cookie of [absent, present, developer]) assert.ok(await isIn(cookie))
    assert.equal((await endEverywhere(present)).status, 303)
    for (const cookie of [absent, present]) assert.ok(!(await isIn(cookie)))
    assert.ok(await isIn(developer))
    assert.ok(!log().some(event => event === 'data_keys_closed'))
  })

test('a return path signed with the old secret is valid while that secret is listed, and not after its removal', async t => {
  const { start, at, provider } = await prepare(t)
  await start({ SECRET: OLD })
  const visitor = at()
  await visitor.get('/reports?year=2026', { headers: { accept: 'text/html' } })
  const cookie = `menshen_return=${visitor.cookies.get('menshen_return')}`
  const comeBack = async () =>
    (await at().get(`/callback?code=${provider.codeFor()}&state=a_idp`, { headers: { cookie } })).headers.location
  assert.equal(await comeBack(), '/reports?year=2026')
  await start({ SECRET: `${NEW},${OLD}` })
  assert.equal(await comeBack(), '/reports?year=2026')
  await start({ SECRET: NEW })
  assert.equal(await comeBack(), '/')
})

test('a removed secret decrypts neither session names nor signing keys, and the log names the remedy', async t => {
  const { start, user, names, isIn, keyIds, lines } = await prepare(t)
  await start({ SECRET: OLD })
  await user('user-one')
  const developer = await user('admin')
  const published = await keyIds()
  await start({ SECRET: `${NEW},${OLD}` })
  await start({ SECRET: NEW })
  await start({ SECRET: OLD })
  const closed = lines().find(({ event }) => event === 'data_keys_closed')
  assert.match(String(closed?.fields.remedy), /append the previous secret.*until they expire/)
  assert.ok(await isIn(developer), 'a session needs its ticket alone')
  assert.deepEqual(await names(developer), [])
  assert.ok((await keyIds()).every(id => !published.includes(id)))
})

test('a start with a wrong secret does not damage the store for the right one', async t => {
  const { start, user, names, endEverywhere, isIn, log } = await prepare(t)
  await start({ SECRET: OLD })
  const [one, other, developer] = [await user('user-one'), await user('user-one'), await user('admin')]
  const listed = await names(developer)
  await start({ SECRET: 'a secret with a misprint; it is long enough' })
  assert.deepEqual(await names(developer), [])
  await start({ SECRET: OLD })
  assert.ok(!log().includes('data_keys_closed'))
  assert.deepEqual(await names(developer), listed)
  await endEverywhere(one)
  assert.ok(!(await isIn(other)))
})

test('without SECRET, a new client secret signs no user out, but the console no longer lists usernames', async t => {
  const { start, user, names, isIn, log } = await prepare(t)
  await start({})
  const [one, developer] = [await user('user-one'), await user('admin')]
  await start({ CLIENT_SECRET: 'another' })
  assert.ok(await isIn(one))
  assert.deepEqual(await names(developer), [])
  assert.ok(log().includes('data_keys_closed'))
})
