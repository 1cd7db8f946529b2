// Whole sign-ins through providers with ways of their own: WeCom without tokens of users, DingTalk with two names for a code,
// GitHub whose list of addresses fails.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { type TestContext, test } from 'node:test'
import { createClient } from '../kit/client.ts'
import { listen } from '../kit/listen.ts'
import { openGateway } from '../kit/set-up.ts'
import { startUpstream } from '../kit/upstream.ts'

type Replies = Record<string, { status?: number; body: unknown } | 'reset'>

/** Answers JSON by path, and resets the connection where it is said. */
async function startProvider(t: TestContext, replies: Replies) {
  const asked: string[] = []
  const server = createServer((request, response) => {
    const [path = ''] = (request.url ?? '').split('?')
    asked.push(path)
    const reply = replies[path] ?? { status: 404, body: {} }
    if (reply === 'reset') return void request.socket.resetAndDestroy()
    response.writeHead(reply.status ?? 200, { 'content-type': 'application/json' }).end(JSON.stringify(reply.body))
  })
  const { url } = await listen(t, server)
  return { url, asked, replies }
}

/** A gateway that uses this preset, with a provider that answers as `replies` say. */
async function setUpPreset(
  t: TestContext,
  preset: string,
  vars: string,
  replies: Replies,
  env: Record<string, string> = {},
) {
  const provider = await startProvider(t, replies)
  const upstream = await startUpstream(t)
  const gateway = await openGateway(t, {
    PROVIDER: preset,
    AUTH_URL: provider.url,
    PROVIDER_VARS: vars.replaceAll('URL', provider.url),
    CLIENT_ID: 'app-1',
    CLIENT_SECRET: 'secret-of-the-application',
    UPSTREAM: upstream.url,
    ...env,
  })
  return {
    ...gateway,
    provider,
    upstream,
    /** Starts a sign-in and comes back with these parameters besides the state. */
    async comeBack(params: [string, string][]) {
      const client = createClient(gateway.url, gateway.now)
      const { headers } = await client.post('/login')
      const state = new URL(String(headers.location)).searchParams.get('state') ?? ''
      const query = new URLSearchParams([...params, ['state', state]])
      return { client, location: (await client.get(`/callback?${query}`)).headers.location }
    },
  }
}

test('wecom: no user token is forwarded, because there is none', async t => {
  const replies: Replies = {
    '/cgi-bin/gettoken': { body: { errcode: 0, access_token: 'of-the-company', expires_in: 7200 } },
    '/cgi-bin/auth/getuserinfo': { body: { errcode: 0, userid: 'lisi' } },
    '/cgi-bin/user/get': { body: { errcode: 0, userid: 'lisi', name: '李四' } },
  }
  const stage = await setUpPreset(t, 'wecom', 'agent=7,api_url=URL', replies, { FORWARD_ACCESS_TOKEN: 'true' })
  const { client, location } = await stage.comeBack([['code', 'c-1']])
  assert.equal(location, '/')
  assert.equal((await client.get('/', { headers: { authorization: 'Bearer forged' } })).status, 200)
  assert.equal(stage.upstream.last().headers.authorization, undefined)
  assert.equal(stage.upstream.last().headers['x-forwarded-user'], 'lisi')
})

test('dingtalk: the same code in both parameters is accepted; different codes or a repeated parameter are refused', async t => {
  const replies: Replies = {
    '/v1.0/oauth2/userAccessToken': { body: { accessToken: 'at-1', refreshToken: 'rt-1', expireIn: 7200 } },
    '/v1.0/contact/users/me': { body: { unionId: 'u-1', nick: '李四' } },
  }
  const stage = await setUpPreset(t, 'dingtalk', 'api_url=URL', replies)
  for (const params of [
    [['authCode', 'c-1']],
    [['code', 'c-1']],
    [
      ['authCode', 'c-1'],
      ['code', 'c-1'],
    ],
  ] as [string, string][][])
    assert.equal((await stage.comeBack(params)).location, '/', JSON.stringify(params))
  const spent = stage.provider.asked.length
  for (const params of [
    [
      ['authCode', 'c-1'],
      ['code', 'c-2'],
    ],
    [
      ['code', 'c-1'],
      ['code', 'c-1'],
    ],
  ] as [string, string][][])
    assert.equal((await stage.comeBack(params)).location, '/login?error=callback_error', JSON.stringify(params))
  assert.equal(stage.provider.asked.length, spent)
})

test('github: the sign-in succeeds without an e-mail if the address list fails; a self-hosted server gets the calls', async t => {
  const replies: Replies = {
    '/login/oauth/access_token': { body: { access_token: 'at-1', token_type: 'bearer' } },
    '/api/v3/user': { body: { id: 7, login: 'octocat', email: 'typed@by.user' } },
  }
  const stage = await setUpPreset(t, 'github', 'unused=1', replies)
  for (const reply of [
    'reset',
    { status: 403, body: {} },
    { status: 500, body: [] },
    { body: { message: 'no' } },
  ] as const) {
    stage.provider.replies['/api/v3/user/emails'] = reply
    const { client, location } = await stage.comeBack([['code', 'c-1']])
    assert.equal(location, '/', JSON.stringify(reply))
    await client.get('/')
    const { headers } = stage.upstream.last()
    assert.deepEqual([headers['x-forwarded-user'], headers['x-forwarded-email']], ['octocat', ''])
  }
  assert.equal(stage.lines.filter(({ event }) => event === 'email_step_failed').length, 4)
  assert.equal(stage.provider.asked.filter(path => path === '/api/v3/user').length, 4)
})
