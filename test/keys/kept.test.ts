// Personal keys do not depend on the session in which they were made: only the end of the user everywhere revokes them.

import assert from 'node:assert/strict'
import test from 'node:test'
import type { Client } from '../kit/client.ts'
import { createClient } from '../kit/client.ts'
import type { Environment } from '../kit/instance.ts'
import { setUpOidc } from '../kit/set-up.ts'

type Scene = Awaited<ReturnType<typeof setUpOidc>>

const PAGE = { accept: 'text/html', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
const HOUR = 3600

const ENDS: readonly [what: string, env: Environment, end: (scene: Scene, user: Client) => unknown][] = [
  ['is signed out', {}, ({ url }, user) => user.post('/logout', '', { headers: { origin: url } })],
  ['exceeds SESSIONS_PER_USER', { SESSIONS_PER_USER: '1' }, scene => scene.user()],
  ['is idle for longer than SESSION_IDLE_MINUTES', { SESSION_IDLE_MINUTES: '30' }, scene => scene.passSeconds(HOUR)],
  ['reaches SESSION_MAX_HOURS', { SESSION_MAX_HOURS: '1' }, scene => scene.passSeconds(HOUR)],
  [
    'ends because the provider refuses a refresh',
    {},
    ({ provider, passSeconds }) => {
      provider.intercept = ({ path }, response) =>
        path === '/token' &&
        response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":"invalid_grant"}')
      passSeconds(2 * HOUR)
    },
  ],
  [
    'ends because it cannot be refreshed, with REFRESH_FAILURE=clear',
    { REFRESH_FAILURE: 'clear' },
    ({ provider, passSeconds }) => {
      provider.isAway = true
      passSeconds(2 * HOUR)
    },
  ],
]

for (const [what, env, end] of ENDS)
  test(`a personal key stays valid when its owner’s session ${what}`, async t => {
    const scene = await setUpOidc(t, { env, config: { rules: [{ path: '/', roles: ['*'], keys: 'personal' }] } })
    scene.provider.idClaims = { auth_time: Math.floor(scene.now() / 1000) }
    const user = await scene.user()
    const headers = { origin: scene.url }
    const { text } = await user.post('/_menshen/account/keys', { name: 'laptop', days: '30' }, { headers })
    const [key = assert.fail(text)] = /mk_[\w-]{43}/.exec(text) ?? []
    await end(scene, user)
    assert.equal((await user.get('/', { headers: PAGE })).headers.location, '/login')
    assert.equal((await createClient(scene.url).get('/', { headers: { 'x-menshen-key': key } })).status, 200)
  })
