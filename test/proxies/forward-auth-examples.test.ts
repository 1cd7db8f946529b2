// The examples hold what the code says, and each is run by a test of its own or, where it cannot be, read as far as possible.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { basename } from 'node:path'
import test from 'node:test'
import { z } from 'zod'
import { readExample } from '../../examples/claims.ts'
import { requirePython } from '../kit/requirements.ts'
import { IDENTITY } from '../proxy/claim-headers.ts'

const READ_FIRST = ['nginx/menshen.conf', 'caddy/Caddyfile', 'haproxy/haproxy.cfg', 'traefik/dynamic.yml']

test('the main file of each forward-auth example has at most 40 lines and does not list the headers to drop', () => {
  for (const example of READ_FIRST) {
    const lines = readExample(example)
      .split('\n')
      .filter(line => line.trim() !== '' && !line.trim().startsWith('#'))
    assert.ok(lines.length <= 40, `${example}: ${lines.length} lines`)
    assert.doesNotMatch(readExample(example), /x-http-method-override/i)
  }
})

test('every example has a test that runs it, or says that it was not run', () => {
  const tests = readdirSync(new URL('..', import.meta.url), { recursive: true, encoding: 'utf8' }).map(path =>
    basename(path),
  )
  const folders = readdirSync(new URL('../../examples/', import.meta.url), { withFileTypes: true })
  const unrun = folders.filter(entry => entry.isDirectory() && !tests.includes(`${entry.name}.test.ts`))
  assert.deepEqual(
    unrun.map(({ name }) => name),
    // The dashboard is looked at beside the metrics that it shows, in prometheus.test.ts; compose in container.test.ts.
    ['compose', 'envoy-gateway', 'grafana', 'istio', 'nginx-gateway-fabric', 'traefik'],
  )
  for (const example of ['traefik/dynamic.yml', 'envoy-gateway/menshen.yaml', 'istio/menshen.yaml'])
    assert.match(readExample(example), /but not run/)
  assert.match(readExample('nginx-gateway-fabric/menshen.yaml'), /but not run/)
  assert.match(readExample('envoy/envoy.yaml'), /with Envoy itself it was not run/)
})

/** As far as the example uses it. */
const Traefik = z.object({
  http: z.strictObject({
    routers: z.record(
      z.string(),
      z.strictObject({
        rule: z.string(),
        priority: z.number(),
        middlewares: z.array(z.string()),
        service: z.string(),
        tls: z.strictObject({}),
      }),
    ),
    services: z.record(
      z.string(),
      z.strictObject({ loadBalancer: z.strictObject({ servers: z.array(z.strictObject({ url: z.url() })) }) }),
    ),
  }),
})

/** The file beside it. */
const TraefikHeaders = z.object({
  http: z.strictObject({
    middlewares: z.strictObject({
      'nothing-there': z.strictObject({ replacePath: z.strictObject({ path: z.string() }) }),
      'signed-in': z.strictObject({
        forwardAuth: z.strictObject({
          address: z.url(),
          authResponseHeadersRegex: z.string(),
          addAuthCookiesToResponse: z.array(z.string()),
        }),
      }),
      'without-claims': z.strictObject({
        headers: z.strictObject({ customRequestHeaders: z.record(z.string(), z.literal('')) }),
      }),
      'without-request-id': z.strictObject({
        headers: z.strictObject({ customRequestHeaders: z.strictObject({ 'X-Request-Id': z.literal('') }) }),
      }),
      'not-kept': z.strictObject({
        headers: z.strictObject({
          customResponseHeaders: z.object({ 'Cache-Control': z.literal('no-store') }).catchall(z.literal('')),
        }),
      }),
    }),
  }),
})

test('the Traefik example has Traefik’s format and removes spoofable headers, also in unusual spellings', () => {
  const toJson = 'import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)'
  const read = (file: string) =>
    JSON.parse(
      execFileSync(requirePython('yaml'), ['-c', toJson], { input: readExample(`traefik/${file}`), encoding: 'utf8' }),
    )
  const { routers, services } = Traefik.parse(read('dynamic.yml')).http
  const { middlewares } = TraefikHeaders.parse(read('menshen-headers.yml')).http
  for (const { middlewares: used, service } of Object.values(routers)) {
    assert.ok(service in services)
    assert.deepEqual(
      used.filter(name => !(name in middlewares)),
      [],
    )
  }
  // The outermost has the last word on the answer.
  assert.equal(routers.application?.middlewares[0], 'not-kept')
  assert.ok('cdn-cache-control' in middlewares['not-kept'].headers.customResponseHeaders)
  // What reaches Menshen has no id that a client chose.
  for (const name of ['menshen', 'application']) assert.ok(routers[name]?.middlewares.includes('without-request-id'))
  assert.ok((routers.questions?.priority ?? 0) > (routers.menshen?.priority ?? 0))
  // The application's own, and what Traefik and Menshen say.
  const { forwardAuth } = middlewares['signed-in']
  const copied = new RegExp(forwardAuth.authResponseHeadersRegex.replace('(?i)', ''), 'i')
  for (const name of IDENTITY) assert.match(name, copied)
  for (const sign of "!#$%&'*+.^_`|~") assert.match(`X${sign}Forwarded-User`, copied)
  for (const name of ['Authorization', 'X-Forwarded-For', 'Cookie', 'Sec-WebSocket-Key'])
    assert.doesNotMatch(name, copied)
  const { customRequestHeaders } = middlewares['without-claims'].headers
  for (const name of ['remote-user', 'x-http-method-override', 'x-original-url', 'x-auth-request-user', 'proxy'])
    assert.ok(name in customRequestHeaders, name)
})
