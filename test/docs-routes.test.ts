// docs/routes.md is the whole list: every address of our own with the methods that it takes.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { OWN_PATHS, RESOURCE_METADATA_PATH } from '../src/paths.ts'
import { openGateway } from './kit/set-up.ts'

const page = readFileSync(new URL('../docs/routes.md', import.meta.url), 'utf8')
/** Whatever a browser wants to do, the proxy asks with its method. */
const ANY_METHOD = new Set<string>([OWN_PATHS.authz, OWN_PATHS.check, OWN_PATHS.forward])

test('docs/routes.md has every route with its methods', async t => {
  const menshen = await openGateway(
    t,
    { PROVIDER: 'oidc', AUTH_URL: 'https://sso.example.com' },
    { config: { rules: [{ path: '/mcp', roles: ['*'], bearer: true }] } },
  )
  const client = menshen.visitor()
  // docs/api.md has those of the API.
  const paths = Object.values(OWN_PATHS).filter(path => path !== OWN_PATHS.api)
  for (const path of [...paths, RESOURCE_METADATA_PATH]) {
    const rows = page.split('\n').filter(row => row.split('|')[1]?.includes(`\`${path}\``))
    const told = rows.flatMap(row => row.split('|')[2]?.trim().split(', ') ?? [])
    assert.ok(told.length > 0, `${path} is missing`)
    if (ANY_METHOD.has(path)) assert.deepEqual(told, ['every'])
    else assert.deepEqual(told.sort(), await methodsOf(path))
  }

  async function methodsOf(path: string): Promise<string[]> {
    const { status, headers } = await client.request({ path, method: 'PATCH' })
    assert.equal(status, 405, path)
    return String(headers.allow).split(', ').sort()
  }
})
