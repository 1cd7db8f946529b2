// A development provider on a free port with a clock that stands still, and the steps that an application takes with it.

import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { startDevProvider } from '../../src/dev-provider/dev-provider.ts'

export const CLIENT = {
  clientId: 'test-app',
  clientSecret: 'a secret & a half',
  redirectUri: 'http://localhost:4000/callback',
}

export const CREDENTIALS = { client_id: CLIENT.clientId, client_secret: CLIENT.clientSecret }

interface Tokens {
  access_token: string
  refresh_token: string
  expires_in: number
}

type Params = Record<string, string>

type Options = Partial<Parameters<typeof startDevProvider>[0]>

export async function start(t: TestContext, options: Options = {}) {
  let time = Date.UTC(2026, 0, 1)
  const provider = await startDevProvider({ port: 0, ...CLIENT, now: () => time, ...options })
  t.after(() => provider.close())

  const at = (path: string) => `${provider.url}${path}`
  const postForm = (path: string, form: Params, headers: Params = {}) =>
    fetch(at(path), { method: 'POST', body: new URLSearchParams(form), headers, redirect: 'manual' })

  const authorizePath = (changes: Params = {}) =>
    `/oauth/authorize?${new URLSearchParams({
      response_type: 'code',
      scope: 'read',
      client_id: CLIENT.clientId,
      redirect_uri: CLIENT.redirectUri,
      state: 'random_idp',
      ...changes,
    })}`

  async function signIn(username: string, changes: Params = {}): Promise<string> {
    const response = await postForm(authorizePath(changes), { username })
    return landing(response).get('code') ?? assert.fail('no code came back')
  }

  const redeem = (code: string, changes: Params = {}) =>
    postForm('/oauth/token', {
      grant_type: 'authorization_code',
      code,
      redirect_uri: CLIENT.redirectUri,
      ...CREDENTIALS,
      ...changes,
    })

  const refresh = (refresh_token: string, changes: Params = {}) =>
    postForm('/oauth/token', { grant_type: 'refresh_token', refresh_token, ...CREDENTIALS, ...changes })

  return {
    provider,
    at,
    get: (path: string, headers: Params = {}) => fetch(at(path), { redirect: 'manual', headers }),
    postForm,
    authorizePath,
    signIn,
    redeem,
    refresh,
    pass: (seconds: number) => {
      time += seconds * 1000
    },
    tokensFor: async (username: string) => tokensOf(await redeem(await signIn(username))),
    userInfo: (accessToken: string) =>
      fetch(at('/api/bff/v1.2/oauth2/userinfo'), { headers: { authorization: `Bearer ${accessToken}` } }),
    misbehave: async (change: Params) => {
      const response = await postForm('/panel', change, { origin: provider.url })
      assert.equal(response.status, 303)
    },
  }
}

export async function tokensOf(response: Response): Promise<Tokens> {
  assert.equal(response.status, 200)
  return (await response.json()) as Tokens
}

export async function assertError(response: Response, status: number, error: string) {
  assert.equal(response.status, status)
  const body = (await response.json()) as Params
  assert.deepEqual(Object.keys(body), ['error', 'error_description'])
  assert.equal(body.error, error)
}

/** The parameters with which a redirect comes back to the application. */
export function landing(response: Response): URLSearchParams {
  const location = new URL(response.headers.get('location') ?? assert.fail(`no redirect: ${response.status}`))
  assert.equal(location.origin + location.pathname, CLIENT.redirectUri)
  return location.searchParams
}
