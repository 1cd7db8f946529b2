// Menshen as its operators run it, and the provider that it signs users in with, each in a process of its own.

import { performance } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { freePort } from '../../test/kit/free-port.ts'
import { type Answer, ask } from '../measure/answer.ts'
import { CLIENT_SECRET } from './client-secret.ts'
import { writeConfiguration } from './configuration.ts'
import type { Cores } from './cores.ts'
import { type Served, script, served, start, startScript } from './processes.ts'

export interface Menshen extends Served {
  /** From the start of the process to the first response that reports ready. */
  readonly startMs: number
}

const DAY_SECONDS = 86_400
const START_DEADLINE_MS = 30_000
const POLL_MS = 10

/** With the lifetimes of the tokens that a sign-in and a refresh give, in seconds. */
export async function startProvider(expiresIn = DAY_SECONDS, refreshedExpiresIn = DAY_SECONDS): Promise<Served> {
  return startScript('provider.ts', [], expiresIn, refreshedExpiresIn)
}

export async function startMenshen(
  store: string,
  provider: Served,
  cores: Cores,
  more: Readonly<Record<string, string>> = {},
): Promise<Menshen> {
  const port = await freePort()
  const startedAt = performance.now()
  const running = start(script('../../src/cli/main.ts'), {
    on: cores.server,
    env: {
      BASE_URL: `http://127.0.0.1:${port}`,
      PORT: String(port),
      AUTH_URL: provider.url,
      CLIENT_ID: 'bench',
      CLIENT_SECRET,
      STORE: store,
      LOG_LEVEL: 'error',
      RATE_LIMIT_PER_MINUTE: '0',
      TRUSTED_PROXIES: '127.0.0.1',
      CONFIG: writeConfiguration(),
      ...more,
    },
  })
  const menshen = served(port, running)
  // No one reads an access log of that size.
  if (more.ACCESS_LOG) running.child.stdout?.resume()
  else running.child.stdout?.pipe(process.stderr)
  while (!(await isReady(menshen))) {
    const { exitCode, signalCode } = running.child
    const ended = exitCode !== null || signalCode !== null
    if (ended || performance.now() - startedAt > START_DEADLINE_MS) {
      await running[Symbol.asyncDispose]()
      throw new Error(`Menshen did not get ready with STORE=${store}`)
    }
    await pause(POLL_MS)
  }
  return { ...menshen, startMs: performance.now() - startedAt }
}

/** The cookie of a new session. */
export async function signIn({ url }: Served, username: string): Promise<string> {
  return cookieOf(await ask(`${url}/callback?code=${username}&state=bench_idp`), username)
}

/** The cookies of a new session that is bound to a device (DEVICE_BOUND_SESSIONS). */
export async function signInBound({ url }: Served, username: string): Promise<string> {
  const answer = await ask(`${url}/callback?code=${username}&state=bench_idp`)
  const ticket = cookieOf(answer, username)
  const [, challenge = ''] = /challenge="([^"]+)"/.exec(String(answer.headers['secure-session-registration'])) ?? []
  const { privateKey, publicKey } = await generateKeyPair('ES256')
  const header = { alg: 'ES256', typ: 'dbsc+jwt', jwk: await exportJWK(publicKey) }
  const proof = await new SignJWT({ jti: challenge }).setProtectedHeader(header).sign(privateKey)
  const registered = await fetch(`${url}/_menshen/dbsc/register`, {
    method: 'POST',
    headers: { cookie: ticket, 'secure-session-response': proof },
  })
  const [bound] = registered.headers.getSetCookie().map(cookie => cookie.split(';')[0])
  if (registered.status !== 200 || !bound) throw new Error(`the session of ${username} was not bound`)
  const cookies = `${ticket}; ${bound}`
  // Once the second cookie has been seen, the ticket alone is not valid.
  await ask(`${url}/_menshen/me`, cookies)
  return cookies
}

/** Signs in where there are several providers. */
export async function signInBy({ url }: Served, username: string, provider: string): Promise<string> {
  const begun = await fetch(`${url}/login`, {
    method: 'POST',
    body: new URLSearchParams({ provider }),
    headers: { origin: url },
    redirect: 'manual',
  })
  const state = new URL(begun.headers.get('location') ?? '', url).searchParams.get('state')
  const attempt = begun.headers.getSetCookie().map(cookie => cookie.split(';')[0])
  return cookieOf(
    await ask(`${url}/callback/${provider}?code=${username}&state=${state}`, attempt.join('; ')),
    username,
  )
}

function cookieOf({ headers }: Answer, username: string): string {
  const [cookie] = /(?:__Host-)?menshen_session=[^;]+/.exec(headers['set-cookie'] ?? '') ?? []
  if (!cookie) throw new Error(`${username} was not signed in but sent to ${headers.location}`)
  return cookie
}

async function isReady({ url }: Served): Promise<boolean> {
  return ask(`${url}/_menshen/ready`).then(
    ({ status }) => status === 200,
    () => false,
  )
}
