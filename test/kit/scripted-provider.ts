// An identity provider for tests: it records every call, and answers as a correct strict provider or as a test says.

import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { type Answer, deliver } from './answers.ts'
import { type Call, type Endpoint, readCall } from './calls.ts'
import { type Behaviour, CLIENT_ID, CLIENT_SECRET, createStrictProvider } from './strict-provider.ts'
import { HANG_MS } from './until.ts'

export type ScriptedProvider = Awaited<ReturnType<typeof startScriptedProvider>>

/** A provider that ends with the test. */
export async function openScriptedProvider(t: Pick<TestContext, 'after'>, behaviour?: Partial<Behaviour>) {
  const provider = await startScriptedProvider(behaviour)
  t.after(() => provider.close())
  return provider
}

export async function startScriptedProvider(options: Partial<Behaviour> = {}) {
  const behaviour: Behaviour = { expiresIn: 7200, rotate: true, refreshTokens: true, user: {}, extras: {}, ...options }
  const strict = createStrictProvider(behaviour)
  const calls: Call[] = []
  const waiting = new Set<() => void>()
  const onceAnswers = new Map<Endpoint, Answer[]>()
  const alwaysAnswers = new Map<Endpoint, Answer>()
  const gates = new Map<Endpoint, Promise<void>>()

  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const call = await readCall(request).catch(() => undefined)
    // The caller went away in the middle of its request.
    if (!call) return
    calls.push(call)
    for (const wake of waiting) wake()
    await gates.get(call.endpoint)
    await deliver(nextAnswer(call.endpoint), response, () => strict.answers[call.endpoint](call))
  }

  function nextAnswer(endpoint: Endpoint): Answer {
    return onceAnswers.get(endpoint)?.shift() ?? alwaysAnswers.get(endpoint) ?? { kind: 'normal' }
  }

  const callsTo = (endpoint: Endpoint) => calls.filter(call => call.endpoint === endpoint)

  const server = createServer(take).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  return {
    url,
    /** The settings that make Menshen use this provider. */
    settings: { AUTH_URL: url, CLIENT_ID, CLIENT_SECRET },
    /** The same for the library, with sessions in memory. */
    options: { store: 'memory:', authUrl: url, clientId: CLIENT_ID, clientSecret: CLIENT_SECRET },
    /** May be changed at any time: `provider.behaviour.expiresIn = 60`. */
    behaviour,
    /** Every call, in the order of arrival. */
    calls,
    callsTo,
    /** A fresh code that signs in this user. */
    codeFor: strict.codeFor,
    /** How often a spent refresh token was used again. */
    get reuses() {
      return strict.reuses()
    },
    /** Every token that it has issued and that still works. */
    get livingTokens() {
      return strict.living()
    },

    /** Answers given for `once` come first, in their order; `{ kind: 'normal' }` ends an `always`. */
    answer(endpoint: Endpoint, answer: Answer, times: 'once' | 'always' = 'always'): void {
      if (times === 'always') alwaysAnswers.set(endpoint, answer)
      else onceAnswers.set(endpoint, [...(onceAnswers.get(endpoint) ?? []), answer])
    },

    /** Calls wait from now on, before anything is done for them, until the returned function is called. */
    hold(endpoint: Endpoint): () => void {
      const gate = Promise.withResolvers<void>()
      gates.set(endpoint, gate.promise)
      return () => {
        gates.delete(endpoint)
        gate.resolve()
      }
    },

    /** Resolves with the n-th call to the endpoint as soon as it has arrived, answered or not. */
    async called(endpoint: Endpoint, n = 1): Promise<Call> {
      const arrived = Promise.withResolvers<Call>()
      const look = () => {
        const call = callsTo(endpoint)[n - 1]
        if (call) arrived.resolve(call)
      }
      const timer = setTimeout(() => {
        arrived.reject(new Error(`call ${n} of ${endpoint} did not arrive; there were ${callsTo(endpoint).length}`))
      }, HANG_MS)
      waiting.add(look)
      look()
      return arrived.promise.finally(() => {
        clearTimeout(timer)
        waiting.delete(look)
      })
    },

    /** Ends every connection at once, the hanging ones too. */
    async close(): Promise<void> {
      if (!server.listening) return
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}
