// The examples hold what the code says, and each is run by a test of its own or, where it cannot be, read as far as possible.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { basename } from 'node:path'
import test from 'node:test'
import { z } from 'zod'
import { EXAMPLES, exampleWithClaims, readExample } from '../../examples/claims.ts'
import { IDENTITY } from './claims.ts'

for (const example of Object.keys(EXAMPLES))
  test(`examples/${example} drops the claims that the gateway drops, as \`npm run docs\` writes them`, () => {
    assert.equal(readExample(example), exampleWithClaims(example, readExample(example)))
  })

test('every example has a test that runs it, or says that it was not run', () => {
  const tests = readdirSync(new URL('..', import.meta.url), { recursive: true, encoding: 'utf8' }).map(path =>
    basename(path),
  )
  const folders = readdirSync(new URL('../../examples/', import.meta.url), { withFileTypes: true })
  const unrun = folders.filter(entry => entry.isDirectory() && !tests.includes(`${entry.name}.test.ts`))
  assert.deepEqual(
    unrun.map(({ name }) => name),
    // The dashboard is looked at beside the metrics that it shows, in prometheus.test.ts; containers in container.test.ts.
    ['compose', 'grafana', 'kubernetes', 'traefik'],
  )
  assert.match(readExample('traefik/dynamic.yml'), /but not run/)
})

/** As far as the example uses it. */
const Traefik = z.object({
  http: z.strictObject({
    routers: z.record(
      z.string(),
      z.strictObject({
        rule: z.string(),
        priority: z.number(),
        middlewares: z.array(z.string()).default([]),
        service: z.string(),
        tls: z.strictObject({}),
      }),
    ),
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
    }),
    services: z.record(
      z.string(),
      z.strictObject({ loadBalancer: z.strictObject({ servers: z.array(z.strictObject({ url: z.url() })) }) }),
    ),
  }),
})

test('the example for Traefik is what Traefik reads, and leaves no claim and no odd name', () => {
  const toJson = 'import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)'
  const json = execFileSync('python3', ['-c', toJson], { input: readExample('traefik/dynamic.yml'), encoding: 'utf8' })
  const { routers, middlewares, services } = Traefik.parse(JSON.parse(json)).http
  for (const { middlewares: used, service } of Object.values(routers)) {
    assert.ok(service in services)
    assert.deepEqual(
      used.filter(name => !(name in middlewares)),
      [],
    )
  }
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
