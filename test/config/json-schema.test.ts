// menshen.schema.json accepts and refuses what the check of the configuration does, as far as a schema can know it.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { configSchema } from '../../scripts/schema.ts'
import { inspectConfig } from '../../src/config/file.ts'
import { createCommandRunner } from '../kit/command-runner.ts'

const commands = createCommandRunner()
const TEXT = readFileSync('menshen.schema.json', 'utf8')
const accepts = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false }).compile(JSON.parse(TEXT))

/** Every key that a configuration has, with a value. */
const upstream = {
  url: 'https://127.0.0.1:9',
  audience: 'wiki',
  host: 'upstream',
  stripPrefix: true,
  sessionScript: true,
  headers: { 'X-User': '{username}', 'X-Key': { env: 'KEY' }, 'X-File': { file: '/run/key' } },
  responseHeaders: { 'X-Frame-Options': 'DENY', Server: null },
  accessToken: { audience: 'wiki', resource: 'https://wiki.example.com', scope: 'read write' },
  caFile: '/ca.pem',
  certFile: '/cert.pem',
  keyFile: '/key.pem',
  timeoutSeconds: 30,
  title: 'Wiki',
  description: 'Pages',
  icon: './wiki.svg',
  start: '/wiki/home',
  portal: true,
}
const rules = [
  { path: '/public', public: true, networks: ['10.0.0.0/8'] },
  { path: '/x', exact: true, methods: ['GET'], roles: ['*'], groups: ['a'], users: ['b'], shadow: true },
  { path: '/api', roles: ['*'], bearer: true, audience: 'https://api.example.com', scopes: ['read'], keys: 'personal' },
  {
    path: '/c',
    roles: ['*'],
    hours: { days: ['mon'], from: '08:00', to: '24:00', zone: 'Asia/Shanghai' },
    origin: 'own',
  },
  { path: '/d', roles: ['*'], maxAge: 300, acr: ['gold'], amr: ['mfa'] },
]
const provider = {
  preset: 'oidc',
  name: '企业账号',
  vars: { auth_url: 'https://sso.example.com' },
  clientId: 'app',
  clientSecret: { env: 'SECRET_OF_STAFF' },
  clientAuth: 'basic',
  scope: 'openid',
  pkce: true,
  tokenUrl: 'https://sso.example.com/token',
  tokenRequest: { as: 'form', headers: { 'x-a': 'b', 'x-c': { file: 'd' } } },
  userInfoRequest: { method: 'GET', token: { header: 'x-token' } },
  fields: { sub: ['id'], employee_no: [['a', 'b']] },
  require: { 'org.id': ['a', 1, true, null] },
  emailStep: { url: 'https://sso.example.com/emails', where: { primary: [true] }, take: 'email' },
}
const WHOLE = {
  $schema: './menshen.schema.json',
  provider,
  roles: [{ role: 'finance', username: ['a'], groups: ['b'], claim: { 'dept.name': ['财务部'] } }],
  rules,
  machines: [
    {
      name: 'backup',
      keySha256: 'ab'.repeat(32),
      groups: ['robots'],
      expires: '2027-01-01',
      api: ['sessions', 'keys', 'audit'],
      networks: ['10.0.0.0/8'],
    },
  ],
  upstreams: { '/': 'http://127.0.0.1:9', '/wiki': upstream },
  hosts: {
    'wiki.example.com': {
      upstream: { ...upstream, stripPrefix: false },
      title: 'x',
      start: '/',
      portal: false,
      rules: [{ path: '/', roles: ['*'] }],
    },
  },
  words: { 'login.title': 'x', 'session.count': { one: 'a', other: 'b' } },
  languages: { ja: { 'login.title': 'x' } },
  loginPage: { note: { en: 'x', 'zh-CN': 'y' }, links: [{ text: 'Help', href: '/help' }] },
  devProvider: { users: [{ username: 'ann', groups: ['a'] }] },
}
const SEVERAL = { providers: { staff: provider, partners: { preset: 'github' } } }

/** What a schema does not know: names elsewhere in the file, what two values say about each other, and lists of the world. */
const BEYOND_A_SCHEMA = [
  /no row in roles grants this role/,
  /expected a name from providers/,
  /there is no field \{/,
  /already covers/,
  /has the same (name|key)/,
  /another user has the same/,
  /expected (keyFile|certFile) as well|for TLS/,
  /expected bearer: true as well/,
  /expected either roles, groups or users, or public: true/,
  /asks for no (token|key)/,
  /cannot meet/,
  /expected either provider or providers/,
  /there is no prefix to strip/,
  /expected a path at or below/,
]

test('menshen schema prints menshen.schema.json, which is a JSON Schema of draft 2020-12', async () => {
  assert.equal(TEXT, configSchema(), 'run npm run docs')
  const { code, out } = await commands.run({}, { args: ['schema'] })
  assert.equal(code, 0)
  assert.equal(out, TEXT)
  assert.equal(JSON.parse(out).$schema, 'https://json-schema.org/draft/2020-12/schema')
  assert.equal((await commands.run({}, { args: ['schema', 'x'] })).code, 2)
})

test('the schema describes every key of the configuration', () => {
  const missing: string[] = []
  let described = 0
  const visit = (schema: unknown, path: string) => {
    if (typeof schema !== 'object' || schema === null) return
    const { properties = {} } = schema as { properties?: Record<string, { description?: string }> }
    for (const [name, { description }] of Object.entries(properties)) {
      if (description) described += 1
      else missing.push(`${path}.${name}`)
    }
    for (const [key, part] of Object.entries(schema)) visit(part, `${path}.${key}`)
  }
  const { properties } = JSON.parse(TEXT)
  visit({ properties }, '')
  assert.deepEqual(missing, [])
  assert.ok(described > 350, String(described))
})

test('the keys of `fields` of a provider are described as paths, and not like the users of the development provider', () => {
  const { provider, devProvider } = JSON.parse(TEXT).properties
  const { fields } = provider.anyOf.find(({ properties }: { properties?: object }) => properties).properties
  assert.equal(fields.properties.sub.description, 'The paths of `sub`, in order.')
  assert.notEqual(devProvider.properties.users.items.properties.sub.description, fields.properties.sub.description)
})

test('the schema agrees with the configuration check on replaced, missing and misspelt keys, as far as a schema can', () => {
  assert.equal(accepts(WHOLE), true, JSON.stringify(accepts.errors))
  assert.equal(accepts(SEVERAL), true, JSON.stringify(accepts.errors))
  const differences: string[] = []
  let compared = 0
  for (const whole of [...Object.entries(WHOLE).map(([key, part]) => ({ [key]: part })), SEVERAL, {}])
    for (const { what, config } of variants(whole)) {
      compared += 1
      const result = inspectConfig(structuredClone(config))
      const isAccepted = 'config' in result
      if (accepts(config) === isAccepted) continue
      const sentences = isAccepted ? [] : result.problems.map(({ path, message }) => `${path}: ${message}`)
      if (isAccepted) differences.push(`${what}: only the schema refuses it`)
      else if (!sentences.every(sentence => BEYOND_A_SCHEMA.some(reason => reason.test(sentence))))
        differences.push(`${what}: only the check refuses it: ${sentences.join(' ')}`)
    }
  assert.ok(compared > 1500, String(compared))
  assert.deepEqual(differences, [])
})

const REPLACEMENTS: readonly unknown[] = [
  null,
  true,
  false,
  0,
  1.5,
  '',
  'some text',
  [],
  ['x'],
  [1],
  {},
  { nothing: 1 },
]

/** The configuration with one value replaced or left out, or with one key more. */
function* variants(whole: object): Generator<{ what: string; config: object }> {
  yield { what: 'whole', config: whole }
  for (const path of pathsIn(whole)) {
    for (const replacement of REPLACEMENTS)
      yield {
        what: `${path.join('.')} = ${JSON.stringify(replacement)}`,
        config: changed(whole, path, () => replacement),
      }
    yield { what: `without ${path.join('.')}`, config: changed(whole, path, undefined) }
    yield { what: `${path.join('.')} with nothing`, config: changed(whole, path, value => withKey(value)) }
  }
}

function withKey(value: unknown): unknown {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? { ...value, 'no such key': { a: 1 } }
    : value
}

function pathsIn(value: unknown, above: readonly string[] = []): string[][] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, part]) => [[...above, key], ...pathsIn(part, [...above, key])])
}

function changed(whole: object, path: readonly string[], change: ((value: unknown) => unknown) | undefined): object {
  const copy = structuredClone(whole)
  let parent = copy as Record<string, unknown>
  for (const key of path.slice(0, -1)) parent = parent[key] as Record<string, unknown>
  const last = path.at(-1) ?? ''
  if (change) parent[last] = change(parent[last])
  else if (Array.isArray(parent)) parent.splice(Number(last), 1)
  else delete parent[last]
  return copy
}
