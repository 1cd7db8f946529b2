// A gateway with machines that may use the API. Every answer of the API is checked against the OpenAPI document.

import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { openApiDocument } from '../../src/api/openapi.ts'
import { OPERATIONS } from '../../src/api/routes.ts'
import type { Config } from '../../src/index.ts'
import { keySha256, newKey } from '../../src/util/key-form.ts'
import { type Client, createClient, type Response } from '../kit/client.ts'
import { makePersonalKey } from '../kit/personal-keys.ts'
import { type SetUpOptions, setUp } from '../kit/set-up.ts'

export const API = '/_menshen/api'

export const KEYS = {
  admin: newKey(),
  sessions: newKey(),
  keys: newKey(),
  audit: newKey(),
  office: newKey(),
  expired: newKey(),
  plain: newKey(),
}

const row = (name: keyof typeof KEYS) => ({ name, keySha256: keySha256(KEYS[name]) })

export const CONFIG: Config = {
  machines: [
    { ...row('admin'), api: ['sessions', 'keys', 'audit'] },
    { ...row('sessions'), api: ['sessions'] },
    { ...row('keys'), api: ['keys'] },
    { ...row('audit'), api: ['audit'] },
    { ...row('office'), api: ['sessions'], networks: ['192.0.2.0/24', '2001:db8::/32'] },
    { ...row('expired'), api: ['sessions'], expires: '2026-01-01' },
    row('plain'),
  ],
  rules: [
    { path: '/api', roles: ['*'], users: ['machine:office', 'machine:plain'], keys: 'personal' },
    { path: '/', roles: ['*'] },
  ],
}

export interface ApiRequest {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: string
}

/** Calls the API at this address with the key of the machine with all scopes, unless `headers` say otherwise. */
export function createCaller(url: string) {
  return async (path: string, { method = 'GET', headers, body }: ApiRequest = {}): Promise<Response> => {
    // Node adds no length to the body of a DELETE.
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
    const sent = { ...(headers ?? { authorization: `Bearer ${KEYS.admin}` }), ...length }
    const answer = await createClient(url).request({
      path: API + path,
      method,
      headers: sent,
      ...(body !== undefined && { body }),
    })
    assertDocumented(method, path, answer)
    return answer
  }
}

/** A gateway with the machines of `CONFIG`; `call` is a request to its API. */
export async function setUpApi(t: TestContext, options: SetUpOptions = {}) {
  const scene = await setUp(t, { config: CONFIG, ...options })
  return {
    ...scene,
    call: createCaller(scene.url),
    /** A personal key of this user. */
    makeKey: (client: Client, name?: string) => makePersonalKey(client, scene.url, name),
  }
}

export const isSignedIn = async (client: Client) => (await client.get('/_menshen/me')).status === 200

/** Walks through all pages. */
export async function allPages<Item>(
  call: ReturnType<typeof createCaller>,
  name: string,
  query: string,
  onPage: (items: readonly Item[]) => void | Promise<void> = () => {},
): Promise<Item[]> {
  const all: Item[] = []
  let next: string | undefined
  do {
    const after: string = next === undefined ? '' : `&after=${encodeURIComponent(next)}`
    const answer = await call(`/${name}?${query}${after}`)
    assert.equal(answer.status, 200, answer.text)
    const page = answer.json<Record<string, unknown>>()
    const items = page[name] as Item[]
    all.push(...items)
    next = page.next as string | undefined
    await onPage(items)
  } while (next !== undefined)
  return all
}

// The answers, as the OpenAPI document describes them.

interface Documented {
  readonly paths: Record<string, Record<string, { responses: Record<string, { content?: object }> }>>
}

const DOCUMENT = openApiDocument(OPERATIONS, 'http://localhost') as Documented
const ajv = new Ajv2020({
  strict: false,
  allErrors: true,
  formats: { 'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/, date: /^\d{4}-\d\d-\d\d$/ },
})
ajv.addSchema(DOCUMENT, 'openapi')

function assertDocumented(method: string, path: string, { status, headers, text }: Response): void {
  const what = `${method} ${path} ${status} ${text}`
  assert.equal(headers['cache-control'], 'no-store', what)
  assert.equal(headers['access-control-allow-origin'], undefined, what)
  assert.equal(headers['set-cookie'], undefined, what)
  if (status === 204) {
    assert.equal(text, '')
    assert.equal(headers['content-length'], undefined)
    assert.equal(operationOf(method, path)?.responses[204]?.content, undefined)
    return
  }
  assert.match(String(headers['content-type']), /^application\/json/, what)
  if (method === 'HEAD') return
  const answer = JSON.parse(text)
  if (status >= 400) assert.deepEqual(Object.keys(answer).slice(0, 2), ['error', 'message'], what)
  const operation = operationOf(method, path)
  // Paths and methods that are not in the document get the same errors.
  const schema = operation
    ? `#/paths/${pointer(documentedPath(path))}/${method.toLowerCase()}/responses/${status in operation.responses ? status : 'default'}/content/${pointer('application/json')}/schema`
    : '#/components/schemas/Error'
  const isValid = ajv.validate({ $ref: `openapi${schema}` }, answer)
  assert.ok(isValid, `${what}: ${ajv.errorsText()}`)
}

function operationOf(method: string, path: string) {
  return DOCUMENT.paths[documentedPath(path)]?.[method.toLowerCase()]
}

function documentedPath(path: string): string {
  const [, resource, id] = (path.split('?', 1)[0] ?? '').split('/')
  return `${API}/${resource}${id === undefined ? '' : '/{id}'}`
}

function pointer(text: string): string {
  return encodeURIComponent(text.replaceAll('~', '~0').replaceAll('/', '~1'))
}
