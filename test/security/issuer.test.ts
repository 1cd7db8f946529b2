// S07: an answer that another provider sent is refused before anything is spent; so is one that does not say who sent it,
// where the provider is known to say it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setUp } from '../kit/set-up.ts'

const ISSUER = 'https://idp.example.com'
const RIGHT = encodeURIComponent(ISSUER)

/** Parameters of other names are none of RFC 9207's. */
const ABSENT: Record<string, string> = {
  absent: '',
  'in another case of name': `&ISS=${RIGHT}`,
  'as a list': `&iss%5B%5D=${RIGHT}`,
}

const WRONG: Record<string, string> = {
  empty: '&iss=',
  'somebody else': '&iss=https%3A%2F%2Fevil.example',
  'a slash more': `&iss=${RIGHT}%2F`,
  'another case': '&iss=https%3A%2F%2FIDP.example.com',
  'a port more': `&iss=${RIGHT}%3A443`,
  'a space more': `&iss=${RIGHT}%20`,
  'a null byte more': `&iss=${RIGHT}%00`,
  'a beginning of it': '&iss=https%3A%2F%2Fidp.example',
  'twice the same': `&iss=${RIGHT}&iss=${RIGHT}`,
  'right, then wrong': `&iss=${RIGHT}&iss=evil`,
  'wrong, then right': `&iss=evil&iss=${RIGHT}`,
  'right, then empty': `&iss=${RIGHT}&iss=`,
}

const KNOWN = { ISSUER, ISSUER_REQUIRED: 'true' }

for (const [env, refused] of [
  [{ ISSUER }, WRONG],
  [KNOWN, { ...WRONG, ...ABSENT }],
] as const)
  test(`with ${Object.keys(env).join(' and ')}, any other iss is refused before any call to the provider`, async t => {
    const { provider, visitor } = await setUp(t, { env })
    for (const [name, more] of Object.entries(refused)) {
      const client = visitor()
      const { status, headers } = await client.get(`/callback?code=${provider.codeFor()}&state=a_idp${more}`)
      assert.equal(status, 302, name)
      assert.equal(headers.location, '/login?error=callback_error', name)
      assert.equal(provider.calls.length, 0, name)
      assert.ok(!client.cookies.has('menshen_session'), name)
    }
  })

test('ISSUER alone does not require an iss, because most providers send none', async t => {
  const { provider, visitor } = await setUp(t, { env: { ISSUER } })
  for (const [name, more] of Object.entries(ABSENT)) {
    const { headers } = await visitor().get(`/callback?code=${provider.codeFor()}&state=a_idp${more}`)
    assert.equal(headers.location, '/', name)
  }
})

test('with ISSUER and ISSUER_REQUIRED, a callback with the right iss signs the user in', async t => {
  const { provider, visitor } = await setUp(t, { env: KNOWN })
  const client = visitor()
  const { headers } = await client.get(`/callback?iss=${RIGHT}&code=${provider.codeFor()}&state=a_idp`)
  assert.equal(headers.location, '/')
  assert.ok(client.cookies.has('menshen_session'))
})

test('with ISSUER, the checks of specification 3.1 to 3.4 run before the check of iss', async t => {
  const { provider, visitor } = await setUp(t, { env: { ISSUER } })
  for (const [query, error] of [
    ['error=access_denied&iss=evil', 'access_denied'],
    ['iss=evil&state=a_idp', 'missing_code'],
    ['code=c&state=a&iss=evil', 'invalid_state'],
  ]) {
    assert.equal((await visitor().get(`/callback?${query}`)).headers.location, `/login?error=${error}`)
  }
  assert.equal(provider.calls.length, 0)
})

test('a callback with a wrong iss does not use up the browser’s sign-in attempt', async t => {
  const { provider, visitor } = await setUp(t, { env: { ISSUER, STATE_CHECK: 'bound' } })
  const client = visitor()
  const away = await client.post('/login')
  const state = new URL(String(away.headers.location)).searchParams.get('state') ?? ''
  const path = `/callback?code=${provider.codeFor()}&state=${state}`
  assert.equal((await client.get(`${path}&iss=evil`)).headers.location, '/login?error=callback_error')
  assert.equal((await client.get(`${path}&iss=${RIGHT}`)).headers.location, '/')
})

test('without ISSUER, iss is ignored, even if it is empty, wrong or repeated', async t => {
  const { provider, visitor } = await setUp(t)
  for (const more of ['', '&iss=', '&iss=evil', '&iss=a&iss=b']) {
    const { headers } = await visitor().get(`/callback?code=${provider.codeFor()}&state=a_idp${more}`)
    assert.equal(headers.location, '/', more)
  }
})
