// Without OpenTelemetry, or without an SDK of it, nothing is traced and nothing is in the way.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { trace } from '@opentelemetry/api'
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node'
import { createObservation } from '../../src/observe/observation.ts'
import { openTracing } from '../../src/observe/tracing.ts'
import { DEFAULT_SIGN_IN_PATHS } from '../../src/paths.ts'
import { createClient } from '../kit/client.ts'
import { startInstance } from '../kit/instance.ts'
import { setUp } from '../kit/set-up.ts'
import { readPage, snippetsIn } from '../kit/snippets.ts'
import { until } from '../kit/until.ts'

const OPTIONS = { baseUrl: 'http://localhost:3000', store: 'memory:', signInPaths: DEFAULT_SIGN_IN_PATHS }

test('without tracing, traceparent and tracestate reach the application as the browser sent them', async t => {
  const scene = await setUp(t)
  const user = await scene.user()
  const sent = { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', tracestate: 'a=b,c=d' }
  await user.get('/', { headers: sent })
  const { traceparent, tracestate } = scene.upstream.last().headers
  assert.deepEqual({ traceparent, tracestate }, sent)
})

test('without an OpenTelemetry SDK there is no tracing, and no request starts a span', async () => {
  assert.equal(await openTracing(OPTIONS), undefined)
  assert.equal(createObservation([], () => 'default', undefined).begun, undefined)
})

test('without an SDK the OpenTelemetry package is not loaded; with one, a package that fails to load is an error', async t => {
  const failing = () => Promise.reject(new Error('it was looked for'))
  assert.equal(await openTracing(OPTIONS, failing), undefined)
  trace.setGlobalTracerProvider(new NodeTracerProvider())
  t.after(() => trace.disable())
  await assert.rejects(openTracing(OPTIONS, failing), { message: 'it was looked for' })
})

test('the snippet of docs/monitoring.md turns tracing on', async t => {
  const snippet = snippetsIn('docs/monitoring.md', readPage('docs/monitoring.md')).find(
    ({ language }) => language === 'js',
  )
  // Where the packages are found.
  const folder = mkdtempSync(fileURLToPath(new URL('../../node_modules/.traced-', import.meta.url)))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'otel.mjs')
  writeFileSync(file, snippet?.text ?? '')
  const menshen = await startInstance({ STORE: 'memory:', NODE_OPTIONS: `--import=${file}` })
  t.after(() => menshen.stop())
  await createClient(menshen.url).get('/login')
  await until(() => menshen.output.some(line => line.includes("name: 'GET /login'")))
})
