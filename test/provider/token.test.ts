// Answers of the token address: what is read from them, and what is refused.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ProviderConfig } from '../../src/config/provider.ts'
import { MenshenError } from '../../src/errors.ts'
import { readAnswer } from '../../src/provider/fetch.ts'
import { planNamedProvider } from '../../src/provider/plan.ts'
import { readTokenSet } from '../../src/provider/token.ts'

const NOW = 1_000_000
const TOKENS = { access_token: 'at', token_type: 'bearer', expires_in: 7200 }

function read(body: unknown, config: ProviderConfig = { preset: 'idaas' }, status = 200) {
  return readTokenSet({ status, body }, planNamedProvider('p', config), NOW)
}

function codeOf(attempt: () => unknown): string {
  try {
    attempt()
  } catch (error) {
    assert.ok(error instanceof MenshenError, String(error))
    return error.code
  }
  return 'none'
}

test('token_type is compared without regard to case, and any other type is refused', () => {
  for (const token_type of ['Bearer', 'BEARER', 'bearer'])
    assert.equal(read({ ...TOKENS, token_type }).accessToken, 'at')
  for (const token_type of ['mac', '', 'bearer ', 7, null, undefined, ['bearer']])
    assert.equal(
      codeOf(() => read({ ...TOKENS, token_type })),
      'provider_answer',
      String(token_type),
    )
  const lenient = { preset: 'oauth2' }
  for (const token_type of [undefined, null]) assert.equal(read({ ...TOKENS, token_type }, lenient).accessToken, 'at')
  for (const token_type of ['mac', 7, ''])
    assert.equal(
      codeOf(() => read({ ...TOKENS, token_type }, lenient)),
      'provider_answer',
    )
})

test('expires_in must be a positive whole number of seconds, as a number or as text', () => {
  for (const [expires_in, seconds] of [
    [1, 1],
    [7200, 7200],
    ['7200', 7200],
    [7200.0, 7200],
  ] as const) {
    const tokens = read({ ...TOKENS, expires_in })
    assert.equal(tokens.expiresIn, seconds)
    assert.equal(tokens.receivedAt, NOW)
  }
  for (const expires_in of [
    0,
    -1,
    1.5,
    1e300,
    2 ** 53,
    '2 hours',
    '-1',
    '',
    ' 7200',
    '7200.0',
    'NaN',
    true,
    null,
    undefined,
    [7200],
  ])
    assert.equal(
      codeOf(() => read({ ...TOKENS, expires_in })),
      'provider_answer',
      String(expires_in),
    )
})

test('without expires_in the lifetime is lifetimeSeconds if configured; otherwise the response is refused', () => {
  const config = { preset: 'oauth2', tokenAnswer: { lifetimeSeconds: 600 } }
  assert.equal(read({ access_token: 'at' }, config).expiresIn, 600)
  assert.equal(read({ access_token: 'at', expires_in: 60 }, config).expiresIn, 60)
  assert.equal(
    codeOf(() => read({ access_token: 'at', expires_in: 0 }, config)),
    'provider_answer',
  )
  assert.equal(
    codeOf(() => read({ access_token: 'at' }, { preset: 'oauth2' })),
    'provider_answer',
  )
})

test('tokens that cannot be sent in a header are refused, and an empty refresh token is ignored', () => {
  for (const access_token of ['', 'a b', 'a\r\nx: y', '令牌', 7, null, undefined, ['at'], { a: 1 }])
    assert.equal(
      codeOf(() => read({ ...TOKENS, access_token })),
      'provider_answer',
      String(access_token),
    )
  for (const refresh_token of ['', null, undefined])
    assert.equal(read({ ...TOKENS, refresh_token }).refreshToken, undefined)
  for (const refresh_token of ['a\nb', 7, ['rt']])
    assert.equal(
      codeOf(() => read({ ...TOKENS, refresh_token })),
      'provider_answer',
    )
})

test('an error in a token response is an error even with status 200, and only errors about the grant are refusals', () => {
  const oauth2 = { preset: 'oauth2' }
  for (const [body, code, status] of [
    [{ error: 'invalid_grant' }, 'provider_refused', 200],
    [{ error: 'invalid_grant' }, 'provider_refused', 400],
    [{ error: 'invalid_token' }, 'provider_refused', 401],
    [{ ...TOKENS, error: 'invalid_grant' }, 'provider_refused', 200],
    [{ error: 'invalid_client' }, 'provider_answer', 401],
    [{ ...TOKENS, error: 'temporarily_unavailable' }, 'provider_answer', 200],
    [{ ...TOKENS, error: 'Some Text' }, 'provider_answer', 200],
    [{ ...TOKENS, error: { code: 1 } }, 'provider_answer', 200],
    [TOKENS, 'provider_answer', 400],
    [TOKENS, 'provider_answer', 204],
    [[TOKENS], 'provider_answer', 200],
    ['at', 'provider_answer', 200],
    [undefined, 'provider_answer', 200],
    [{ __proto__: TOKENS }, 'provider_answer', 200],
  ] as const)
    assert.equal(
      codeOf(() => read(body, oauth2, status)),
      code,
      JSON.stringify(body),
    )
  for (const error of ['', null, false, 0]) assert.equal(read({ ...TOKENS, error }, oauth2).accessToken, 'at')
})

test('a code in a token response must match the success rule, as a word or a number, and is ignored without a rule', () => {
  const enveloped = { preset: 'oauth2', tokenAnswer: { at: 'data', success: { code: ['success', 0] } } }
  for (const code of ['success', 0]) assert.equal(read({ code, data: TOKENS }, enveloped).accessToken, 'at')
  for (const code of ['failed', 1, '0', null, undefined])
    assert.equal(
      codeOf(() => read({ code, data: TOKENS }, enveloped)),
      'provider_answer',
    )
  assert.equal(
    codeOf(() => read({ code: 0, data: null }, enveloped)),
    'provider_answer',
  )
  // Without a rule a code means nothing.
  assert.equal(read({ ...TOKENS, code: 'zhangsan' }, { preset: 'oauth2' }).accessToken, 'at')
  const ends = { preset: 'oauth2', refreshEnds: ['40029'] }
  assert.equal(
    codeOf(() => read({ error: 'other', errcode: 40029 }, ends)),
    'provider_refused',
  )
})

test('error messages repeat no token or text of a token response', () => {
  const secrets = {
    access_token: 'sec ret',
    refresh_token: 'sec ret',
    error_description: '13811111111',
    error: 'Call 13811111111',
  }
  for (const status of [200, 400]) {
    assert.throws(
      () => read(secrets, { preset: 'oauth2' }, status),
      (error: Error) => !/sec ret|138/.test(error.message),
    )
  }
})

test('a token response is read as a form if its content type allows it and its body looks like one', async () => {
  const answer = async (body: string, type: string) =>
    (await readAnswer(new Response(body, { headers: { 'content-type': type } }))).body
  const form = 'access_token=at%2B1&expires_in=7200'
  const expected = { access_token: 'at+1', expires_in: '7200' }
  for (const type of ['application/x-www-form-urlencoded; charset=utf-8', 'text/plain', 'text/html'])
    assert.deepEqual(await answer(form, type), expected)
  assert.equal(await answer(form, 'application/json'), undefined)
  assert.equal(await answer('<html lang="a">', 'text/html'), undefined)
  assert.equal(await answer('a message with a = in it', 'text/plain'), undefined)
  assert.equal((await readAnswer(new Response(new Uint8Array([0xff, 0xfe])))).body, undefined)
  assert.equal(Object.getPrototypeOf(await answer('__proto__=x', 'text/plain')), Object.prototype)
})
