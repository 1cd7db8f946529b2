// An application, the gateway in front of it and a provider, all in the test's own process, with a clock that it sets.
import type { RequestListener } from 'node:http'
import type { TestContext } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { serve } from '../../src/cli/serve.ts'
import { type Config, createMenshen, readSettings } from '../../src/index.ts'
import { createEventLog } from '../../src/log.ts'
import { type Client, createClient, signIn } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import type { Environment } from '../kit/process.ts'
import { startScriptedProvider } from '../kit/scripted-provider.ts'
import type { User } from '../kit/strict-provider.ts'
import { createTestLog } from '../kit/test-log.ts'
import { startUpstream } from './upstream.ts'

export interface Wishes {
  env?: Environment
  config?: Config
  /** How the application answers; otherwise with `hello`. */
  answer?: RequestListener
}

export type Scene = Awaited<ReturnType<typeof openScene>>

export async function openScene(t: TestContext, { env = {}, config = {}, answer }: Wishes = {}) {
  const provider = await startScriptedProvider()
  t.after(() => provider.close())
  const upstream = await startUpstream(t, answer)
  const gateway = await openGateway(t, { UPSTREAM: upstream.url, ...provider.settings, ...env }, config)

  return {
    ...gateway,
    provider,
    upstream,
    visitor: () => createClient(gateway.url, gateway.now),
    /** Signed in as this user. */
    async user(username = 'zhangsan', more: Partial<User> = {}): Promise<Client> {
      const client = createClient(gateway.url, gateway.now)
      await signIn(client, provider, { username, ...more })
      return client
    },
  }
}

/** The gateway alone, as the command serves it. */
export async function openGateway(t: TestContext, env: Environment, config: Config = {}) {
  const port = Number(env.PORT ?? (await freePort()))
  const clock = { now: Date.parse('2026-03-01T08:00:00Z') }
  const { lines, log } = createTestLog()
  const settings = readSettings({ STORE: 'memory:', PORT: String(port), RATE_LIMIT_PER_MINUTE: '0', ...env })
  const menshen = await createMenshen({ settings, config, log, now: () => clock.now })
  const { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile } = settings
  const tls = certFile && keyFile ? { certFile, keyFile } : undefined
  const serving = await serve(
    menshen,
    { port, host: '127.0.0.1', ...(tls && { tls }) },
    createEventLog(log, Date.now).report,
  )
  let ended: Promise<void> | undefined
  const end = (patienceMs: number) => {
    ended ??= serving.close(patienceMs)
    return ended
  }
  t.after(async () => {
    await end(0)
    await menshen.close()
  })
  return {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    baseUrl: settings.BASE_URL,
    lines,
    now: () => clock.now,
    /** As SIGTERM does. */
    end,
    passSeconds(seconds: number): void {
      clock.now += seconds * 1000
    },
  }
}

/** For a Cookie header of its own. */
export function cookieOf(client: Client): string {
  return [...client.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
}

/** Resolves when it is so; throws when it is not after a generous while. */
export async function until(isSo: () => boolean | Promise<boolean>, deadlineMs = 10_000): Promise<void> {
  const deadline = performance.now() + deadlineMs
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`not so after ${deadlineMs} ms`)
    await pause(10)
  }
}
