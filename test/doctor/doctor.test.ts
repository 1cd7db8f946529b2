// `menshen doctor` as operators run it: what it says of a provider, a store, an application and a proxy that are right, wrong,
// slow, away, or full of garbage.

import assert from 'node:assert/strict'
import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { createServer as createNetServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { pipeline, Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { suite, type TestContext, test } from 'node:test'
import { decodeJwt, exportJWK, exportPKCS8, generateKeyPair } from 'jose'
import { runDoctorCommand } from '../../src/cli/commands/doctor.ts'
import { createPaint } from '../../src/cli/terminal.ts'
import { diskFindings } from '../../src/doctor/store-probes.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { phraseIn } from '../../src/text/text.ts'
import { createCommandRunner } from '../kit/command-runner.ts'
import { freePort } from '../kit/free-port.ts'
import { type Environment, runMenshen, startInstance } from '../kit/instance.ts'
import { listen } from '../kit/listen.ts'
import { startRedis } from '../kit/redis-server.ts'
import { takeRs256Pair } from '../kit/rsa-keys.ts'
import { openScriptedProvider } from '../kit/scripted-provider.ts'
import { openGateway } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { filesOf, makeAuthority, makeCertificate } from '../proxies/certificates.ts'

interface Check {
  name: string
  ok: boolean
  level: 'good' | 'warning' | 'failure'
  seen: string
  remedy: string
}

interface Diagnosis {
  code: number | null
  output: string
  checks: Check[]
  /** The only check of this name. */
  check(name: string): Check
}

const commands = createCommandRunner()

/** As operators run it, where its folder matters. */
async function runDoctorIn(cwd: string, env: Environment): Promise<Diagnosis> {
  const { code, output } = await commands.run(env, { args: ['doctor', '--json'], cwd })
  return readDiagnosis(code, output)
}

/** In a process of its own, where that matters: the variables of Node, its end in spite of all that hangs. */
async function runDoctor(env: Environment): Promise<Diagnosis> {
  const { code, output } = await runMenshen(env, { args: ['doctor', '--json'] })
  return readDiagnosis(code, output)
}

/** What the command does, without a process of its own. */
async function doctor(environment: Environment): Promise<Diagnosis> {
  const { ok, text } = await runDoctorCommand(['--json'], { environment, now: Date.now, paint: createPaint(false) })
  return readDiagnosis(ok ? 0 : 1, text)
}

function readDiagnosis(code: number | null, output: string): Diagnosis {
  // Nothing but the document may be there.
  const { checks } = JSON.parse(output) as { checks: Check[] }
  const check = (name: string) => {
    const found = checks.filter(one => one.name === name)
    assert.equal(found.length, 1, `${name}: ${output}`)
    return found[0] as Check
  }
  assert.equal(code, checks.some(({ ok }) => !ok) ? 1 : 0, output)
  return { code, output, checks, check }
}

async function serve(t: TestContext, listener: RequestListener): Promise<string> {
  return (await listen(t, createServer(listener))).url
}

const INTROSPECTING_SECRET = 'the-right-secret'

/** An OpenID Connect provider below a path. `answer` is that of its token endpoint. */
async function openIdProvider(
  t: TestContext,
  path: string,
  answer: (body: URLSearchParams, headers: IncomingHttpHeaders) => readonly [status: number, body: object],
) {
  const document: Record<string, unknown> = {}
  const url = await serve(t, async (request, response) => {
    const send = (status: number, body: object) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    const asked = (request.url ?? '').split('?')[0]
    if (asked === `${path}/.well-known/openid-configuration`) return send(200, document)
    if (asked === `${path}/jwks`) return send(200, { keys: [{ kty: 'RSA' }] })
    if (asked === `${path}/token`) return send(...answer(new URLSearchParams(await text(request)), request.headers))
    const basic = `Basic ${Buffer.from(`a:${INTROSPECTING_SECRET}`).toString('base64')}`
    const isKnown = request.headers.authorization === basic
    if (asked === `${path}/introspect`)
      return isKnown ? send(200, { active: false }) : send(401, { error: 'invalid_client' })
    return asked === `${path}/auth` ? response.end() : send(404, { message: 'not found' })
  })
  const at = (name: string) => `${url}${path}/${name}`
  Object.assign(document, {
    issuer: `${url}${path}`,
    authorization_endpoint: at('auth'),
    token_endpoint: at('token'),
    jwks_uri: at('jwks'),
  })
  return { url, document }
}

const PUBLIC_CLIENT = { CLIENT_AUTH: 'none', CLIENT_SECRET: '', SECRET: 's'.repeat(32) }
const ALONE = { BASE_URL: 'http://localhost:9', STORE: 'memory:' }

suite('menshen doctor', { concurrency: 2 }, () => {
  test('menshen doctor without configuration reports the development provider and creates no store', async t => {
    const cwd = tempFolder(t)
    const { code, check } = await runDoctorIn(cwd, { PORT: String(await freePort()) })
    assert.equal(code, 0)
    assert.match(check('provider').seen, /development provider/)
    assert.match(check('store').seen, /does not exist yet/)
    assert.equal(check('proxy').level, 'warning')
    assert.ok(!existsSync(join(cwd, 'data')))
  })

  test('menshen doctor does not call a store absent that exists but cannot be opened', async t => {
    const cwd = tempFolder(t)
    // Like a file in a folder of another account, it cannot be looked at.
    symlinkSync('loop', join(cwd, 'loop'))
    const { code, check } = await runDoctorIn(cwd, { STORE: 'sqlite:./loop', PORT: String(await freePort()) })
    assert.equal(code, 1)
    assert.equal(check('store').level, 'failure')
    assert.match(check('store').seen, /^Cannot open the store \.\/loop/)
  })

  test('menshen doctor prints one line per check with a mark, the finding and the remedy, without colours in a pipe', async () => {
    const { code, output } = await runMenshen(ALONE, { args: ['doctor'] })
    assert.equal(code, 0)
    const lines = output.split('\n')
    assert.match(lines.pop() ?? '', /^\d+ good, (1 warning|\d+ warnings), 0 failures$/)
    for (const line of lines) assert.match(line, /^[✔!✖] [\w /-]+: .+/)
    assert.match(output, /^! proxy: .+ → .+\.$/m)
    // The development provider signs anyone in, whatever the state.
    assert.match(output, /^✔ settings: /m)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what must not be there
    assert.doesNotMatch(output, /\x1b/)
  })

  test('menshen doctor accepts cookies over plain http on a local machine and warns about them in production', async () => {
    const cookies = async (more: Environment) => (await doctor({ ...ALONE, ...more })).check('cookies')
    assert.match((await cookies({})).seen, /traffic stays on this machine$/)
    const { level, seen, remedy } = await cookies({ NODE_ENV: 'production' })
    assert.deepEqual([level, seen.includes('stays')], ['warning', false])
    assert.match(remedy, /^Set BASE_URL/)
  })

  test('menshen doctor rejects unknown options and arguments with the problem and the usage', async () => {
    const run = { environment: {}, now: Date.now, paint: createPaint(false) }
    const refused = (argument: string, says: RegExp) => assert.rejects(runDoctorCommand([argument], run), says)
    await refused(
      '--jsn',
      /^UsageError: Unknown option '--jsn'; did you mean --json\? Expected menshen doctor \[--json\]/,
    )
    await refused('all', /^UsageError: Unexpected argument "all"; expected menshen doctor/)
  })

  test('menshen doctor with a broken configuration names every problem at once', async t => {
    const cwd = tempFolder(t)
    writeFileSync(join(cwd, 'menshen.config.mjs'), 'export default { rules: 1, colour: "red" }\n')
    const { code, checks } = await runDoctorIn(cwd, { PORT: 'x', STORE: 'nowhere', CLIENT_SECRTE: 'hush-hush' })
    assert.equal(code, 1)
    const seen = checks.map(check => check.seen).join('\n')
    for (const wrong of [/PORT is "x"/, /STORE is "nowhere"/, /CLIENT_SECRTE/, /rules/, /colour/])
      assert.match(seen, wrong)
    assert.doesNotMatch(seen, /hush/)
  })

  test('menshen doctor does not report variables that the configuration references as misspelt settings', async t => {
    const cwd = tempFolder(t)
    const provider = `{ preset: oauth2, clientSecret: { env: CLIENT_SECRETT }, tokenRequest: { headers: { x: { env: STORRE } } } }`
    writeFileSync(join(cwd, 'menshen.config.yaml'), `provider: ${provider}\n`)
    const env = { ...ALONE, CLIENT_SECRETT: 'hush-hush', UPSTREM: 'x' }
    for (const more of [{ STORRE: 'x' }, {}]) {
      const { output } = await runDoctorIn(cwd, { ...env, ...more })
      assert.doesNotMatch(output, /CLIENT_SECRETT is not|STORRE is not|hush/)
      assert.match(output, /UPSTREM is not a Menshen setting/)
    }
  })

  test('menshen doctor names the missing provider settings', async () => {
    const { code, check } = await doctor({ ...ALONE, AUTH_URL: 'http://127.0.0.1:9' })
    assert.equal(code, 1)
    assert.match(check('provider settings').seen, /CLIENT_ID, CLIENT_SECRET/)
  })
})

suite('menshen doctor and the provider', { concurrency: 2 }, () => {
  test('menshen doctor reports no problem with a working provider and signs no user in', async t => {
    const { settings, callsTo } = await openScriptedProvider(t)
    const { code, check, output } = await doctor({ ...ALONE, ...settings })
    assert.equal(code, 0, output)
    assert.match(check('provider client').seen, /invalid_grant/)
    assert.match(check('provider redirect address').seen, /^http:\/\/localhost:9\/callback is accepted/)
    for (const name of ['dns', 'connection', 'clock']) assert.equal(check(`provider ${name}`).level, 'good')
    assert.deepEqual([callsTo('token').length, callsTo('userinfo').length], [1, 0])
    assert.doesNotMatch(output, /CANARY/)
  })

  test('menshen doctor distinguishes a wrong client secret from a wrong redirect address', async t => {
    const { settings, answer } = await openScriptedProvider(t)
    const wrong = await doctor({ ...ALONE, ...settings, CLIENT_SECRET: 'another-CANARY' })
    assert.match(wrong.check('provider client').remedy, /CLIENT_SECRET/)
    assert.doesNotMatch(wrong.output, /CANARY/)
    answer('token', {
      kind: 'json',
      status: 400,
      body: { error: 'redirect_uri_mismatch', error_description: 'CANARY' },
    })
    answer('authorize', { kind: 'bytes', status: 400, body: 'Invalid redirect_uri CANARY' })
    const { code, check, output } = await doctor({ ...ALONE, ...settings })
    assert.equal(code, 1)
    for (const name of ['provider client', 'provider redirect address']) {
      assert.equal(check(name).ok, false)
      assert.match(check(name).remedy, /Register exactly http:\/\/localhost:9\/callback/)
    }
    assert.doesNotMatch(output, /CANARY/)
  })

  test('menshen doctor reports within the deadline that a provider is down, hangs or returns garbage', async t => {
    const { settings, answer, close } = await openScriptedProvider(t)
    const env = { ...ALONE, ...settings }
    const briefly = { ...env, PROVIDER_TIMEOUT_MS: '500' }
    for (const kind of ['hang', 'endless', 'drip'] as const) {
      for (const endpoint of ['token', 'authorize'] as const) answer(endpoint, { kind })
      // Its process has to end in spite of it.
      const { check } = kind === 'hang' ? await runDoctor(briefly) : await doctor(briefly)
      assert.equal(check('provider client').ok, false, kind)
    }
    const esc = '\u001b[31mred'
    answer('token', { kind: 'bytes', body: `<html>${esc}`, headers: { 'content-type': 'text/html' } })
    answer('authorize', {
      kind: 'redirect',
      to: `http://localhost:9/callback?error=${encodeURIComponent(`${esc}\nforged`)}`,
    })
    const garbage = await doctor(env)
    assert.match(garbage.check('provider client').seen, /not JSON/)
    assert.doesNotMatch(garbage.check('provider redirect address').seen, /\p{Cc}/u)
    await close()
    const away = await doctor(env)
    assert.match(away.check('provider connection').seen, /ECONNREFUSED/)
    assert.equal(away.code, 1)
  })

  test('menshen doctor names a host that does not resolve', async () => {
    const env = { ...ALONE, AUTH_URL: 'https://idp.invalid', CLIENT_ID: 'a', CLIENT_SECRET: 'b' }
    const { check } = await doctor(env)
    assert.match(check('provider dns').seen, /idp\.invalid has no address/)
  })

  test('menshen doctor checks discovery, keys and the clock of an OpenID Connect provider', async t => {
    const { publicKey } = takeRs256Pair()
    const jwk = await exportJWK(publicKey)
    let keys: object[] = [{ ...jwk, kid: 'k' }]
    let behindMs = 600_000
    let issuer: string | undefined
    const url = await serve(t, (request, response) => {
      const path = (request.url ?? '').split('?')[0]
      const json = (body: object, status = 200) =>
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
      const at = (name: string) => `${url}/${name}`
      if (path === '/.well-known/openid-configuration')
        return json({
          issuer: issuer ?? url,
          authorization_endpoint: at('auth'),
          token_endpoint: at('token'),
          jwks_uri: at('jwks'),
        })
      if (path === '/jwks') return json({ keys })
      if (path === '/token') return json({ error: 'invalid_client' }, 401)
      response.setHeader('date', new Date(Date.now() - behindMs).toUTCString())
      return json({})
    })
    const env = { ...ALONE, PROVIDER: 'oidc', AUTH_URL: url, CLIENT_ID: 'a', CLIENT_SECRET: 'b' }
    const { check } = await doctor(env)
    assert.equal(check('provider discovery').level, 'good')
    assert.equal(check('provider keys').seen, '1 published')
    assert.match(check('provider client').seen, /401 invalid_client/)
    assert.equal(check('provider clock').level, 'failure')
    assert.match(check('provider clock').seen, /^this machine is (599|600|601) s ahead of the provider$/)
    keys = []
    behindMs = 0
    const later = await doctor(env)
    assert.equal(later.check('provider keys').ok, false)
    assert.equal(later.check('provider clock').seen, 'this machine and the provider have the same time')
    issuer = 'https://somebody.else'
    assert.match((await doctor(env)).check('provider discovery').seen, /another issuer/)
  })

  test('menshen doctor reports requirements in the metadata that Menshen or the settings do not meet', async t => {
    let said: object = {}
    const url = await serve(t, (request, response) => {
      const path = (request.url ?? '').split('?')[0]
      const json = (body: object, status = 200) =>
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
      if (path === '/.well-known/openid-configuration')
        return json({
          issuer: url,
          authorization_endpoint: `${url}/auth`,
          token_endpoint: `${url}/token`,
          jwks_uri: `${url}/jwks`,
          ...said,
        })
      if (path === '/jwks') return json({ keys: [{ kty: 'RSA' }] })
      if (path === '/token') return json({ error: 'invalid_grant' }, 400)
      return response.end()
    })
    const env = { ...ALONE, PROVIDER: 'oidc', AUTH_URL: url, CLIENT_ID: 'a', CLIENT_SECRET: 'b' }
    const cases: [said: object, level: Check['level'], seen: RegExp, remedy: RegExp, env?: Environment][] = [
      [{}, 'good', /requirements are met/, /^$/],
      [{ require_pushed_authorization_requests: true }, 'failure', /\(PAR\)/, /PAR=on/, { PAR: 'off' }],
      [{ require_pushed_authorization_requests: true }, 'failure', /\(PAR\).*no endpoint/, /parUrl/],
      [{}, 'failure', /\(PAR\).*no endpoint/, /parUrl/, { PAR: 'on' }],
      [
        { dpop_signing_alg_values_supported: ['RS256'] },
        'failure',
        /DPoP proofs only with RS256/,
        /Allow ES256/,
        { DPOP: 'on' },
      ],
      [{}, 'failure', /^SCOPE is profile: without openid/, /SCOPE="openid profile"/, { SCOPE: 'profile' }],
      [{ require_signed_request_object: true }, 'failure', /\(JAR\)/, /Turn that off/],
      [{ response_modes_supported: ['form_post'] }, 'failure', /form_post/, /"query"/],
      [{ response_types_supported: ['id_token'] }, 'failure', /response type code/, /authorization code/],
      [{ id_token_signing_alg_values_supported: ['HS256'] }, 'failure', /only with HS256/, /RS256 or ES256/],
      [
        { token_endpoint_auth_methods_supported: ['client_secret_jwt'] },
        'failure',
        /only by client_secret_jwt/,
        /private_key_jwt/,
      ],
      [
        { token_endpoint_auth_methods_supported: ['client_secret_post'] },
        'warning',
        /only by client_secret_post, not by client_secret_basic/,
        /CLIENT_AUTH to one of: post/,
        { CLIENT_AUTH: 'basic' },
      ],
      [
        { code_challenge_methods_supported: ['S256'] },
        'warning',
        /PKCE \(S256\), which is off/,
        /PKCE=S256/,
        { PKCE: 'off' },
      ],
      [
        { token_endpoint_auth_methods_supported: ['client_secret_post'] },
        'good',
        /requirements are met/,
        /^$/,
        PUBLIC_CLIENT,
      ],
      [{}, 'warning', /no revocation endpoint: tokens stay valid/, /REVOKE=never/, { REVOKE: 'always' }],
      [{ revocation_endpoint: `${url}/revoke` }, 'good', /requirements are met/, /^$/, { REVOKE: 'always' }],
      [{ scopes_supported: ['openid', 'email'] }, 'warning', /does not list the scope profile$/, /SCOPE/],
    ]
    for (const [document, level, seen, remedy, more = {}] of cases) {
      said = document
      const { check } = await doctor({ ...env, ...more })
      const found = check('provider demands')
      assert.equal(found.level, level, JSON.stringify(document))
      assert.match(found.seen, seen)
      assert.match(found.remedy, remedy)
    }
    said = { id_token_signing_alg_values_supported: ['RS256', 'HS256'] }
    const both = (await doctor(env)).checks.filter(({ name }) => name === 'provider demands')
    assert.deepEqual([...new Set(both.map(({ level }) => level))], ['good'])
    assert.match(
      both[1]?.seen ?? '',
      /also sign id_tokens with HS256.*sign-ins fail \(check with menshen doctor --sign-in/,
    )
    said = { issuer: 'https://somebody.else' }
    assert.match(
      (await doctor(env)).check('provider discovery').seen,
      /another issuer: https:\/\/somebody\.else; expected/,
    )
  })

  test('menshen doctor suggests PROVIDER=oidc if the preset’s endpoints do not exist but metadata does', async t => {
    const { url, document } = await openIdProvider(t, '/realms/staff', () => [400, { error: 'invalid_grant' }])
    const env = { ...ALONE, AUTH_URL: `${url}/realms/staff`, CLIENT_ID: 'a', CLIENT_SECRET: 'b' }
    for (const more of [{}, { PROVIDER: 'maxkey' }]) {
      const { checks } = await doctor({ ...env, ...more })
      const first = checks.find(({ ok }) => !ok)
      assert.equal(first?.name, 'provider settings')
      assert.match(
        first?.seen ?? '',
        /^the endpoints of the preset (idaas|maxkey) do not exist there: this is an OpenID/,
      )
      assert.equal(first?.remedy, `Set PROVIDER=oidc and AUTH_URL=${url}/realms/staff.`)
    }
    const twice = await doctor({ ...env, PROVIDER: 'keycloak', PROVIDER_VARS: 'realm=staff' })
    assert.equal(twice.check('provider discovery').remedy, `Set PROVIDER=oidc and AUTH_URL=${url}/realms/staff.`)
    const deeper = await doctor({ ...env, PROVIDER: 'oidc', AUTH_URL: `${url}/realms/staff/protocol` })
    assert.match(deeper.check('provider discovery').remedy, new RegExp(`^Set AUTH_URL=${url}/realms/staff \\(or`))
    assert.equal((await doctor({ ...env, PROVIDER: 'oidc' })).check('provider client').level, 'good')
    document.issuer = 'https://another.example'
    assert.equal((await doctor(env)).checks.filter(({ name }) => name === 'provider settings').length, 0)
  })

  test('menshen doctor finds the private_key_jwt audience and the CLIENT_AUTH method that a provider accepts', async t => {
    let isAccepted = (_audience: unknown, _headers: IncomingHttpHeaders): boolean => false
    let refusal: [number, object] = [401, { error: 'invalid_client' }]
    const { url } = await openIdProvider(t, '', (body, headers) => {
      const assertion = body.get('client_assertion')
      const audience = assertion === null ? undefined : decodeJwt(assertion).aud
      return isAccepted(audience, headers) ? [400, { error: 'invalid_grant' }] : refusal
    })
    const env = { ...ALONE, PROVIDER: 'oidc', AUTH_URL: url, CLIENT_ID: 'a' }
    const client = async (more: Environment) => (await doctor({ ...env, ...more })).check('provider client')
    const folder = tempFolder(t)
    const { privateKey } = await generateKeyPair('ES256', { extractable: true })
    writeFileSync(join(folder, 'key.pem'), await exportPKCS8(privateKey))
    const byKey = { CLIENT_KEY_FILE: join(folder, 'key.pem'), SECRET: 's'.repeat(32) }
    for (const answer of [
      [401, { error: 'invalid_client' }],
      [400, { problem: 'aud' }],
      [500, {}],
    ] as const) {
      refusal = [...answer]
      isAccepted = audience => audience === `${url}/token`
      assert.match(
        (await client(byKey)).remedy,
        /^Set CLIENT_ASSERTION_AUDIENCE=token_endpoint: the provider then accepts/,
      )
      isAccepted = audience => audience === url
      const wrong = { ...byKey, CLIENT_ASSERTION_AUDIENCE: 'token_endpoint' }
      assert.match((await client(wrong)).remedy, /^Set CLIENT_ASSERTION_AUDIENCE=issuer: the provider then accepts/)
      assert.equal((await client(byKey)).level, 'good')
    }
    refusal = [401, { error: 'invalid_client' }]
    isAccepted = (_audience, { authorization }) => authorization === undefined
    assert.match((await client({ CLIENT_SECRET: 'b' })).remedy, /^Set CLIENT_AUTH=post: the provider then accepts/)
    isAccepted = () => false
    assert.match((await client({ CLIENT_SECRET: 'b' })).remedy, /CLIENT_SECRET is wrong/)
  })

  test('menshen doctor checks the client by introspection if the provider returns invalid_grant to every client', async t => {
    const { url, document } = await openIdProvider(t, '', () => [400, { error: 'invalid_grant' }])
    document.introspection_endpoint = `${url}/introspect`
    const env = { ...ALONE, PROVIDER: 'oidc', AUTH_URL: url, CLIENT_ID: 'a' }
    const right = await doctor({ ...env, CLIENT_SECRET: INTROSPECTING_SECRET })
    assert.equal(right.check('provider client').level, 'good')
    const wrong = await doctor({ ...env, CLIENT_SECRET: 'wrong-CANARY' })
    assert.match(wrong.check('provider client').seen, /401 invalid_client/)
    assert.doesNotMatch(wrong.output, /CANARY/)
    assert.equal((await doctor({ ...env, ...PUBLIC_CLIENT })).check('provider client').level, 'good')
  })

  test('menshen doctor does not accept a redirect address that leads to an error page or a missing sign-in page', async t => {
    const { settings, answer } = await openScriptedProvider(t)
    const redirect = async () => (await doctor({ ...ALONE, ...settings })).check('provider redirect address')
    answer('authorize', { kind: 'redirect', to: 'http://localhost:8/error?error=invalid_redirect' })
    const shown = await redirect()
    assert.match(shown.seen, /its own error page \(invalid_redirect\)/)
    assert.match(shown.remedy, /^Register exactly http:\/\/localhost:9\/callback/)
    answer('authorize', { kind: 'redirect', to: 'http://localhost:8/login?error=login_required' })
    assert.equal((await redirect()).level, 'good')
    answer('authorize', { kind: 'bytes', status: 404, body: '' })
    assert.match((await redirect()).remedy, /^There is no sign-in page there: check PROVIDER, AUTH_URL and CLIENT_ID/)
  })

  test('menshen doctor reports an HTML page in place of the discovery document as not JSON', async t => {
    const url = await serve(t, (_request, response) =>
      response
        .writeHead(200, { 'content-type': 'text/html; charset=utf-8' })
        .end('<!doctype html><title>Hello</title>'),
    )
    const env = { ...ALONE, PROVIDER: 'oidc', AUTH_URL: url, CLIENT_ID: 'a', CLIENT_SECRET: 'b' }
    assert.match((await doctor(env)).check('provider discovery').seen, /text\/html, not JSON/)
  })

  test('menshen doctor suggests PKCE=S256 if the provider returns invalid_request while PKCE is off', async t => {
    const { settings, answer } = await openScriptedProvider(t)
    const to = 'http://localhost:9/callback?error=invalid_request&error_description=code_challenge+CANARY&state=x'
    answer('authorize', { kind: 'redirect', to })
    const { check, output } = await doctor({ ...ALONE, ...settings })
    assert.match(check('provider redirect address').seen, /invalid_request: the provider might require PKCE/)
    assert.match(check('provider redirect address').remedy, /PKCE=S256/)
    assert.doesNotMatch(output, /CANARY/)
  })

  test('menshen doctor fails wherever `menshen check` would', async t => {
    const cwd = tempFolder(t)
    writeFileSync(join(cwd, 'ca.pem'), 'no certificate')
    const config = "export default { provider: { preset: 'oauth2', authorizationParams: { state: 'x' } } }\n"
    for (const [env, file, says] of [
      [{ UPSTREAM_CA_FILE: join(cwd, 'ca.pem') }, 'export default {}\n', /UPSTREAM_CA_FILE/],
      [{ PAGE_LANGUAGE: 'xx' }, 'export default {}\n', /PAGE_LANGUAGE/],
      [{}, config, /authorizationParams\.state/],
    ] as const) {
      writeFileSync(join(cwd, 'menshen.config.mjs'), file)
      const checked = await commands.run({ ...ALONE, ...env }, { args: ['check'], cwd })
      assert.equal(checked.code, 1, checked.output)
      const { code, checks } = await runDoctorIn(cwd, { ...ALONE, ...env })
      assert.equal(code, 1)
      assert.equal(checks.filter(({ ok, seen }) => !ok && says.test(seen)).length, 1, JSON.stringify(checks))
    }
  })

  test('menshen doctor reports a certificate from an unknown authority and one that expires soon', async t => {
    const folder = tempFolder(t)
    const ca = makeAuthority(folder)
    const server = createSecureServer(filesOf(makeCertificate(folder, 'idp', ca)), (_request, response) =>
      response.end(),
    )
    const AUTH_URL = `https://localhost:${(await listen(t, server)).port}`
    const env = { ...ALONE, AUTH_URL, CLIENT_ID: 'a', CLIENT_SECRET: 'b' }
    const unknown = await doctor(env)
    assert.equal(unknown.check('provider tls').ok, false)
    assert.match(unknown.check('provider tls').remedy, /NODE_EXTRA_CA_CERTS/)
    const known = await runDoctor({ ...env, NODE_EXTRA_CA_CERTS: ca.certFile })
    assert.equal(known.check('provider tls').level, 'warning')
    assert.match(known.check('provider tls').seen, /valid for [12] more days/)
  })

  test('menshen doctor uses the client certificate and the CA file of an upstream', async t => {
    const [folder, cwd] = [tempFolder(t), tempFolder(t)]
    const ca = makeAuthority(folder)
    const { certFile, keyFile } = makeCertificate(folder, 'menshen', ca, 'menshen.example')
    const server = createSecureServer(
      { ...filesOf(makeCertificate(folder, 'app', ca)), ca: filesOf(ca).cert, requestCert: true },
      (_request, response) => response.end(),
    )
    const url = `https://localhost:${(await listen(t, server)).port}`
    const upstreams = {
      '/with': { url, caFile: ca.certFile, certFile, keyFile },
      '/without': { url, caFile: ca.certFile },
    }
    writeFileSync(join(cwd, 'menshen.config.mjs'), `export default ${JSON.stringify({ upstreams })}\n`)
    const { check } = await runDoctorIn(cwd, ALONE)
    assert.equal(check('upstream /with tls').level, 'warning', 'it expires soon')
    assert.deepEqual([check('upstream /with').ok, check('upstream /without').ok], [true, false])
  })

  test('menshen doctor checks each of several providers under its own name', async t => {
    const { url } = await openScriptedProvider(t)
    const cwd = tempFolder(t)
    const one = `{ preset: 'oauth2', authorizationUrl: '${url}/oauth/authorize', tokenUrl: '${url}/oauth/token', clientId: 'x', clientSecret: 'y' }`
    writeFileSync(join(cwd, 'menshen.config.mjs'), `export default { providers: { staff: ${one}, guests: {} } }\n`)
    const { check } = await runDoctorIn(cwd, ALONE)
    assert.equal(check('provider staff client').ok, false)
    const { seen, remedy } = check('provider staff redirect address')
    assert.match(`${seen} ${remedy}`, /\/callback\/staff /, 'the address to register is its own')
    assert.match(check('provider guests settings').seen, /providers\.guests\.clientId/)
  })
})

suite('menshen doctor and the store', { concurrency: 2 }, () => {
  test('menshen doctor fails on a Redis that evicts keys, warns without persistence, and leaves nothing in it', async t => {
    const redis = await startRedis({ settings: ['--maxmemory-policy', 'allkeys-lru'] })
    t.after(() => redis.stop())
    const { code, check } = await doctor({ ...ALONE, STORE: `redis://${redis.host}` })
    assert.equal(code, 1)
    assert.match(check('redis eviction policy').remedy, /noeviction/)
    assert.equal(check('redis persistence').level, 'warning')
    assert.equal(check('redis version').level, 'good')
    for (const name of ['store', 'store latency']) assert.notEqual(check(name).level, 'failure')
    assert.equal(await redis.command('DBSIZE'), '0')
  })

  test('menshen doctor reports a store that is down or rejects the password, and never prints the password', async t => {
    const redis = await startRedis({ password: 'right-CANARY' })
    t.after(() => redis.stop())
    for (const STORE of [`redis://127.0.0.1:${await freePort()}`, `redis://:wrong-CANARY@${redis.host}`]) {
      const { code, check, output } = await doctor({ ...ALONE, STORE })
      assert.equal(code, 1)
      assert.equal(check('store').ok, false)
      assert.doesNotMatch(output, /CANARY/)
    }
  })

  test('menshen doctor tries out a SQLite file and reports a file that is not a database', async t => {
    const folder = tempFolder(t)
    const file = join(folder, 'menshen.db')
    await (await openSqliteStore({ file, now: Date.now })).close()
    const good = await doctor({ ...ALONE, STORE: `sqlite:${file}` })
    assert.match(good.check('store').seen, /writes, reads, lists, expires and removes/)
    writeFileSync(join(folder, 'file'), 'something else '.repeat(100))
    const bad = await doctor({ ...ALONE, STORE: `sqlite:${join(folder, 'file')}` })
    assert.equal(bad.check('store').ok, false)
    assert.match(bad.check('store').seen, /not a database/)
    assert.match(good.check('store file').seen, /passes quick_check/)
    assert.match(good.check('store disk').seen, /^\d+ MB free$/)
    assert.equal(good.check('store file system').ok, true)
  })

  test('a damaged database and a network file system are failures, a nearly full disk is a warning, and each has a remedy', async t => {
    const file = join(tempFolder(t), 'menshen.db')
    const store = await openSqliteStore({ file, now: Date.now })
    const value = new Uint8Array(3000)
    for (let n = 0; n < 50; n++) await store.create(`k${n}`, { value, expiresAt: Date.now() + 60_000, labels: [] })
    await store.close()
    const bytes = readFileSync(file)
    // A page of the table of records is overwritten.
    bytes.fill(0xff, bytes.length - 4096 * 20, bytes.length - 4096 * 19)
    writeFileSync(file, bytes)
    const { check, code } = await doctor({ ...ALONE, STORE: `sqlite:${file}` })
    assert.equal(code, 1)
    assert.equal(check('store file').ok, false)
    assert.match(check('store file').remedy ?? '', /restore a backup/)
    const judged = diskFindings({ type: 0x6969, bavail: 10, bsize: 4096 }, file)
    assert.deepEqual(
      judged.map(({ name, level, remedy }) => [name, level, remedy && phraseIn('en', remedy).split(':')[0]]),
      [
        ['store disk', 'warning', 'Free some space'],
        ['store file system', 'failure', 'Put the file on a local disk, or use Redis'],
      ],
    )
  })

  test('menshen doctor fails on a store that cannot be created, and does not create one that can', async t => {
    const folder = tempFolder(t)
    writeFileSync(join(folder, 'file'), '')
    for (const place of [join(folder, 'file', 'data'), '/proc/menshen/data']) {
      const { check, code } = await doctor({ ...ALONE, STORE: `sqlite:${place}` })
      assert.equal(code, 1, place)
      assert.match(check('store').seen, /cannot be created: /)
    }
    const { check } = await doctor({ ...ALONE, STORE: `sqlite:${join(folder, 'one', 'two')}` })
    assert.match(check('store').seen, /it is created at startup/)
    assert.ok(!existsSync(join(folder, 'one')))
  })
})

suite('menshen doctor and the application', { concurrency: 2 }, () => {
  test('menshen doctor reports garbage, silence and endless responses from every server and prints none of them', async t => {
    const ways: Record<string, (socket: Socket) => void> = {
      garbage: socket => socket.write('\u001b[31mnot HTTP\r\n\r\n\0'),
      silence: () => {},
      endless: socket => void pipeline(Readable.from(endless()), socket, () => {}),
    }
    for (const [name, answer] of Object.entries(ways)) {
      const server = createNetServer(socket => {
        socket.on('error', () => {})
        answer(socket)
      })
      const { port, url } = await listen(t, server)
      const where = `127.0.0.1:${port}`
      const provider = {
        PROVIDER: 'oidc',
        AUTH_URL: url,
        CLIENT_ID: 'a',
        CLIENT_SECRET: 'CANARY',
        PROVIDER_TIMEOUT_MS: '500',
      }
      const places = { BASE_URL: url, PORT: '9', STORE: `redis://${where}`, UPSTREAM: url }
      const env = { ...provider, ...places }
      const { check, checks, output } = name === 'endless' ? await runDoctor(env) : await doctor(env)
      for (const failed of ['provider discovery', 'store']) assert.equal(check(failed).ok, false, name)
      assert.notEqual(check('proxy').level, 'good', name)
      if (name !== 'endless')
        assert.ok(
          checks.some(one => one.name.startsWith('upstream /') && !one.ok),
          output,
        )
      assert.doesNotMatch(output, /CANARY|\\u001b|not HTTP\r/)
    }
  })

  test('menshen doctor distinguishes an application that is down from one that responds and one that returns 500', async t => {
    const url = await serve(t, (request, response) => {
      response.writeHead(request.url?.startsWith('/broken') ? 500 : 404).end()
    })
    const cwd = tempFolder(t)
    writeFileSync(
      join(cwd, 'menshen.config.mjs'),
      `export default { upstreams: { '/broken': '${url}', '/fine': '${url}' } }\n`,
    )
    const { check, code } = await runDoctorIn(cwd, { ...ALONE, UPSTREAM: `http://127.0.0.1:${await freePort()}` })
    assert.equal(code, 1)
    assert.match(check('upstream / connection').seen, /ECONNREFUSED/)
    assert.deepEqual([check('upstream /broken').level, check('upstream /fine').level], ['warning', 'good'])
  })
})

test('menshen doctor warns if the application has a page at LOGIN_PATH, and not if LOGIN_PATH is moved', async t => {
  const UPSTREAM = await serve(t, (request, response) => {
    response.writeHead(request.url === '/login' || request.url === '/' ? 200 : 404).end()
  })
  const { check } = await doctor({ ...ALONE, UPSTREAM })
  assert.equal(check('upstream / login').level, 'warning')
  assert.match(check('upstream / login').seen, /the application returns 200 for \/login/)
  for (const LOGIN_PATH of ['/_menshen/login', '/sign-in']) {
    const { checks } = await doctor({ ...ALONE, UPSTREAM, LOGIN_PATH })
    assert.ok(!checks.some(({ name }) => name === 'upstream / login'), LOGIN_PATH)
  }
})

suite('menshen doctor and applications that support only GET', { concurrency: 2 }, () => {
  test('menshen doctor uses GET for applications that support only GET', async t => {
    const refusing = await serve(t, (request, response) => {
      response.writeHead(request.method === 'GET' ? 200 : 501).end()
    })
    const dropping = await serve(t, (request, response) => {
      if (request.method === 'GET') response.end('ok')
      else request.socket.destroy()
    })
    for (const UPSTREAM of [refusing, dropping]) {
      const { check } = await doctor({ ...ALONE, UPSTREAM })
      assert.deepEqual([check('upstream /').level, check('upstream /').seen], ['good', 'returns 200'])
    }
  })
})

suite('menshen doctor and the proxy', { concurrency: 2 }, () => {
  test('menshen doctor checks what reaches the Menshen running at BASE_URL, and only with its secret', async t => {
    const { settings } = await openScriptedProvider(t)
    const port = String(await freePort())
    const env = { ...settings, BASE_URL: `http://localhost:${port}`, PORT: port, STORE: 'memory:' }
    const { stop, url } = await startInstance(env)
    t.after(stop)
    const { check } = await doctor(env)
    for (const part of ['host', 'proto', 'client address', 'upgrade'])
      assert.equal(check(`proxy ${part}`).level, 'good', part)
    // Whoever has not our secret learns nothing, not even that there is such a page.
    for (const headers of [{}, { 'x-menshen-doctor': `${Date.now()}.${'a'.repeat(22)}.${'b'.repeat(43)}` }]) {
      const response = await fetch(`${url}/_menshen/doctor`, { headers })
      assert.equal(response.status, 404)
    }
    const stranger = await doctor({ ...env, CLIENT_SECRET: 'another' })
    assert.match(stranger.check('proxy').seen, /something other than Menshen .*status 404/)
  })

  test('menshen doctor reports an unresolvable host name, a port without TLS and a Menshen that is not running', async t => {
    const port = await freePort()
    const unknown = await doctor({ ...ALONE, BASE_URL: 'http://menshen.invalid', PORT: String(port) })
    assert.match(unknown.check('proxy').seen, /^this machine cannot resolve menshen\.invalid \(E/)
    assert.match(unknown.check('proxy').remedy, /DNS/)
    const url = await serve(t, (_request, response) => void response.end('ok'))
    const BASE_URL = url.replace('http:', 'https:')
    const plain = await doctor({ ...ALONE, BASE_URL, PORT: String(port) })
    assert.match(plain.check('proxy').seen, /speaks http, not https/)
    assert.equal(plain.check('proxy').level, 'failure')
    const nothing = await doctor({ ...ALONE, BASE_URL: `http://localhost:${port}`, PORT: '9' })
    assert.match(nothing.check('proxy').remedy, /^Start Menshen/)
  })

  test('menshen doctor fails if the application is Menshen itself under another address', async t => {
    const { settings } = await openScriptedProvider(t)
    const port = await freePort()
    const front = await serve(t, async (request, response) => {
      const passed = { 'x-menshen-doctor': String(request.headers['x-menshen-doctor']) }
      const answer = await fetch(`http://127.0.0.1:${port}${request.url}`, { headers: passed, redirect: 'manual' })
      response.writeHead(answer.status).end(await answer.text())
    })
    const env = { ...settings, BASE_URL: `http://localhost:${port}`, PORT: String(port), STORE: 'memory:' }
    await openGateway(t, env, { now: Date.now() })
    const { check } = await doctor({ ...env, UPSTREAM: front })
    assert.match(check('upstream /').seen, /^Menshen itself responds at /)
    assert.equal(check('upstream /').level, 'failure')
  })

  test('menshen doctor reports a proxy that forwards forged client addresses, changes Host and drops Upgrade', async t => {
    const { settings } = await openScriptedProvider(t)
    const port = await freePort()
    const front = await serve(t, async (request, response) => {
      const passed = {
        'x-menshen-doctor': String(request.headers['x-menshen-doctor']),
        'x-forwarded-for': String(request.headers['x-forwarded-for']),
      }
      const answer = await fetch(`http://127.0.0.1:${port}${request.url}`, { headers: passed })
      response.writeHead(answer.status).end(await answer.text())
    })
    const BASE_URL = front.replace('127.0.0.1', 'localhost')
    const env = { ...settings, BASE_URL, PORT: String(port), STORE: 'memory:', UPSTREAM: 'http://127.0.0.1:9' }
    const first = await openGateway(t, env, { now: Date.now() })
    const untrusted = await doctor(env)
    assert.equal(untrusted.check('proxy client address').remedy, 'Set TRUSTED_PROXIES=127.0.0.1.')
    for (const part of ['host', 'upgrade']) assert.equal(untrusted.check(`proxy ${part}`).level, 'warning', part)
    // It says nothing of the scheme, which Menshen knows from BASE_URL.
    assert.equal(untrusted.check('proxy proto').level, 'good')
    await first.close()
    await openGateway(t, { ...env, TRUSTED_PROXIES: '127.0.0.1' }, { now: Date.now() })
    const trusting = await doctor({ ...env, TRUSTED_PROXIES: '127.0.0.1' })
    assert.match(trusting.check('proxy client address').seen, /any client can forge/)
    assert.equal(trusting.code, 1)
  })
})

suite('the console', () => {
  test('the console shows the findings of menshen doctor to developers only', async t => {
    const { settings, callsTo, codeFor } = await openScriptedProvider(t)
    const { visitor } = await openGateway(t, { ...settings, UPSTREAM: `http://127.0.0.1:${await freePort()}` })
    const developer = visitor()
    await developer.get(`/callback?code=${codeFor({ username: 'admin' })}&state=abc_idp`)
    assert.match((await developer.get('/_menshen/console')).text, /<nav [^>]*>.*href="\/_menshen\/console\/health"/)
    const before = callsTo('token').length
    const [page] = await Promise.all([1, 2, 3].map(() => developer.get('/_menshen/console/health')))
    assert.equal(page?.status, 200)
    for (const part of [
      '失败',
      'upstream / connection',
      'ECONNREFUSED',
      'provider client',
      'invalid_grant',
      'STATE_CHECK=bound',
    ])
      assert.ok(page.text.includes(part), part)
    assert.equal(callsTo('token').length - before, 1, 'however many look, the provider is asked once')
    assert.doesNotMatch(page.text, /CANARY/)
    const common = visitor()
    await common.get(`/callback?code=${codeFor({ username: 'lisi' })}&state=abc_idp`)
    assert.equal((await common.get('/_menshen/console/health')).status, 403)
    assert.equal((await visitor().get('/_menshen/console/health')).status, 302)
  })
})

test('menshen doctor checks every configured host: its DNS name, its proxy and its applications', async t => {
  const { settings } = await openScriptedProvider(t)
  const upstream = await serve(t, (_request, response) => response.writeHead(404).end())
  const PORT = String(await freePort())
  const hosts = {
    [`127.0.0.2:${PORT}`]: { upstream },
    [`127.0.0.3:${PORT}`]: {},
    [`app.localhost:${PORT}`]: {},
    [`nowhere.invalid:${PORT}`]: { upstream: `http://127.0.0.1:${await freePort()}` },
  }
  const cwd = tempFolder(t)
  writeFileSync(join(cwd, 'menshen.config.ts'), `export default ${JSON.stringify({ hosts })}\n`)
  const env = { ...settings, STORE: 'memory:', PORT, BASE_URL: `http://localhost:${PORT}`, HOST: '0.0.0.0' }
  const instance = await startInstance(env, { cwd })
  t.after(instance.stop)
  const { check } = await runDoctorIn(cwd, env)
  assert.match(check(`host 127.0.0.2:${PORT} host`).seen, new RegExp(`Host arrives as 127\\.0\\.0\\.2:${PORT}`))
  assert.equal(check(`host 127.0.0.2:${PORT} upstream / connection`).level, 'good')
  assert.match(check(`host 127.0.0.3:${PORT} upgrade`).seen, /no application behind Menshen/)
  assert.match(check(`host app.localhost:${PORT} host`).seen, new RegExp(`Host arrives as app\\.localhost:${PORT}`))
  assert.match(check(`host nowhere.invalid:${PORT} dns`).seen, /nowhere\.invalid has no address/)
  assert.match(check(`host nowhere.invalid:${PORT} upstream / connection`).seen, /ECONNREFUSED/)
})

function* endless(): Generator<string> {
  yield 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n'
  for (;;) yield ' '.repeat(65_536)
}
