// Menshen inside an application of the test: called with a Request, without a server.

import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { createMenshen, type MenshenOptions } from '../../src/index.ts'
import { openScriptedProvider, type ScriptedProvider } from './scripted-provider.ts'
import type { User } from './strict-provider.ts'
import { createTestLog } from './test-log.ts'

/** Where the application is. */
export const EMBEDDED_URL = 'http://localhost:3000'
/** How long an access token is valid, in seconds. */
export const TOKEN_LIFE = 7200

/** All of it ends with the test. */
export async function setUpEmbedded(t: TestContext, options: MenshenOptions = {}) {
  const provider = await openScriptedProvider(t, { expiresIn: TOKEN_LIFE })
  const clock = { now: Date.parse('2026-03-01T08:00:00Z') }
  const { log, lines } = createTestLog()

  async function open() {
    const usual = { ...provider.options, baseUrl: EMBEDDED_URL, log, now: () => clock.now }
    const menshen = await createMenshen({ ...usual, ...options } as MenshenOptions)
    t.after(() => menshen.close())
    return menshen
  }

  const menshen = await open()
  const get = (path: string, headers: Record<string, string> = {}, source = {}) =>
    menshen.fetch(new Request(EMBEDDED_URL + path, { headers }), source)
  return {
    menshen,
    provider,
    clock,
    lines,
    /** Another process of the same application. */
    open,
    get,
    /** Returns the cookie of the session. */
    signIn: (user: Partial<User> = {}) => signInEmbedded(get, provider, user),
  }
}

async function signInEmbedded(
  get: (path: string) => Promise<Response | undefined>,
  provider: ScriptedProvider,
  user: Partial<User> = {},
): Promise<string> {
  const answer = await get(`/callback?code=${provider.codeFor(user)}&state=abc_idp`)
  assert.equal(answer?.headers.get('location'), '/')
  const cookie = answer.headers.getSetCookie().find(one => one.startsWith('menshen_session='))
  return cookie?.split(';')[0] ?? assert.fail('no session')
}
