// docs/api.md: its commands work, and its table has every operation.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { promisify } from 'node:util'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 as Ajv } from 'ajv/dist/2020.js'
import { OPERATIONS } from '../../src/api/routes.ts'
import { requireProgram } from '../kit/requirements.ts'
import { snippetsIn } from '../kit/snippets.ts'
import { tempFolder } from '../kit/temp.ts'
import { isSignedIn, KEYS, setUpApi } from './set-up-api.ts'

const run = promisify(execFile)
const page = readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8')

test('the commands in docs/api.md work as written', async t => {
  requireProgram('curl')
  const { url, user, makeKey, call, visitor } = await setUpApi(t)
  const [leaving, zhangsan] = [await user('zhangsan'), await user('zhangsan')]
  const key = await makeKey(zhangsan)
  const folder = tempFolder(t)
  const idOf = async (path: string) => /"id":"([\w-]+)"/.exec((await call(path)).text)?.[1] ?? assert.fail(path)
  const shell = async (text: string) => {
    const env = {
      PATH: process.env.PATH,
      KEY: KEYS.admin,
      SESSION: await idOf('/sessions?user=zhangsan'),
      PERSONAL_KEY: await idOf('/keys?user=zhangsan'),
    }
    const script = text.replaceAll('https://app.example.com', url)
    return (await run('bash', ['-euc', script], { env, cwd: folder })).stdout
  }
  const [offboarding = assert.fail(), others = assert.fail(), ...more] = snippetsIn('api.md', page).filter(
    ({ language }) => language === 'sh',
  )
  assert.deepEqual(more, [])
  const listed = await shell(others.text)
  for (const part of ['{"sessions":[{', '{"keys":[{', '{"events":[']) assert.ok(listed.includes(part), part)
  assert.equal(JSON.parse(readFileSync(`${folder}/menshen-openapi.json`, 'utf8')).openapi, '3.1.0')
  assert.equal((await visitor().get('/api', { headers: { 'x-menshen-key': key } })).status, 401)
  assert.deepEqual((await Promise.all([leaving, zhangsan].map(isSignedIn))).filter(Boolean).length, 1)
  await makeKey((await isSignedIn(leaving)) ? leaving : zhangsan)
  assert.deepEqual(JSON.parse(await shell(offboarding.text)), { ended: 1, keys: 1 })
})

test('docs/api.md lists every operation with its scope and its parameters', () => {
  const rows = [...page.matchAll(/^\| `(GET|DELETE) (\S+)` \| (\S+) \|/gm)].map(([, ...row]) => row.join(' '))
  const expected = OPERATIONS.map(({ method, path, scope, parameters = [], required = [] }) => {
    const query = [...required.map(name => `${name}=NAME`), ...parameters.map(name => `${name}=`)].join('&')
    const target = path.replace('{id}', 'ID') + (query && `?${query}`)
    return `${method} ${target} ${scope ? `\`${scope}\`` : 'any'}`
  })
  assert.deepEqual(rows.sort(), expected.sort())
})

test('the OpenAPI document describes every operation and defines exactly the schemas that it refers to', async t => {
  const { call, baseUrl } = await setUpApi(t)
  const document = (await call('/openapi.json')).json<{
    openapi: string
    servers: { url: string }[]
    paths: Record<string, Record<string, { operationId: string; parameters?: { name: string; in: string }[] }>>
    components: { schemas: object; securitySchemes: object }
    security: object[]
  }>()
  assert.match(document.openapi, /^3\.1\./)
  assert.deepEqual(document.servers, [{ url: new URL(baseUrl).origin }])
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, ...operation })),
  )
  assert.equal(operations.length, OPERATIONS.length)
  assert.equal(new Set(operations.map(({ operationId }) => operationId)).size, operations.length)
  for (const { path, parameters = [] } of operations) {
    const inPath = parameters.filter(parameter => parameter.in === 'path').map(({ name }) => `{${name}}`)
    assert.deepEqual(path.match(/\{\w+\}/g) ?? [], inPath, path)
  }
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)].map(
    ([, name]) => name,
  )
  assert.deepEqual([...new Set(references)].sort(), Object.keys(document.components.schemas).sort())
  assert.doesNotMatch(JSON.stringify(document), /\$defs|\$schema/)
  const schemes = document.security.flatMap(each => Object.keys(each))
  assert.deepEqual(schemes.sort(), Object.keys(document.components.securitySchemes).sort())
})

test('the OpenAPI document is valid against the schema of the OpenAPI Initiative, which rejects a broken document', async t => {
  const { call } = await setUpApi(t)
  const document = (await call('/openapi.json')).json<Record<string, unknown>>()
  assert.deepEqual(await new Validator().validate(structuredClone(document)), { valid: true })
  // Its schemas are JSON Schemas, which that schema leaves out.
  const { schemas } = document.components as { schemas: Record<string, object> }
  for (const [name, schema] of Object.entries(schemas)) assert.equal(new Ajv().validateSchema(schema), true, name)
  const broken = { ...document, paths: { '/_menshen/api/sessions': { get: { responses: { twohundred: {} } } } } }
  assert.equal((await new Validator().validate(broken)).valid, false)
})
