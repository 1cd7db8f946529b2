// A sign-in that fails because the provider demands something: the log names it, and never repeats the provider's sentence.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Config } from '../../src/index.ts'
import { openGateway } from '../kit/set-up.ts'
import { openRelyingParty, type RelyingParty } from './relying-party.ts'

const failed = ({ rp }: RelyingParty) =>
  String(rp.lines.filter(({ event }) => event === 'sign_in_failed').at(-1)?.fields.detail)

const refusal = (error: string, error_description = '') =>
  ({ kind: 'json', status: 400, body: { error, error_description: `${error_description} CANARY` } }) as const

test('the log recognizes a DPoP requirement by the token endpoint’s error and by the token type', async t => {
  const scene = await openRelyingParty(t, { DPOP: 'off' })
  scene.op.answer('token', refusal('invalid_dpop_proof'))
  await scene.rejects()
  assert.match(failed(scene), /invalid_dpop_proof: the provider requires DPoP, which is off/)
  scene.op.answer('token', { kind: 'normal' })
  scene.op.bend.token = right => ({ ...right, token_type: 'DPoP' })
  await scene.rejects()
  assert.match(failed(scene), /bound to a key \(DPoP\)/)
})

test('the log of a refused client names client_secret_jwt as the only authentication method that the provider accepts', async t => {
  const scene = await openRelyingParty(t)
  scene.op.bend.discovery = right => ({ ...right, token_endpoint_auth_methods_supported: ['client_secret_jwt'] })
  scene.op.answer('token', refusal('invalid_client'))
  await scene.rejects()
  assert.match(failed(scene), /invalid_client: the provider accepts client authentication only by client_secret_jwt/)
})

async function comesBackWith(scene: RelyingParty, params: Record<string, string>): Promise<string> {
  const client = scene.visitor()
  const away = await client.post('/login')
  const state = new URL(String(away.headers.location)).searchParams.get('state') ?? ''
  const { headers } = await client.get(`/callback?${new URLSearchParams({ ...params, state })}`)
  assert.equal(headers.location, `/login?error=${params.error}`)
  return failed(scene)
}

test('the log suggests PKCE=S256 after an invalid_request if PKCE is off, and not if it is on', async t => {
  const off = await openRelyingParty(t, { PKCE: 'off' })
  assert.match(
    await comesBackWith(off, { error: 'invalid_request' }),
    /might require PKCE, which is off\. Set PKCE=S256/,
  )
  off.op.answer('token', refusal('invalid_grant', 'code_verifier is missing'))
  const client = off.visitor()
  await off.signIn(client)
  assert.match(failed(off), /invalid_grant: the provider might require PKCE/)
  const on = await openRelyingParty(t)
  assert.equal(await comesBackWith(on, { error: 'invalid_request' }), 'undefined')
})

test('the log recognizes a PAR requirement by the metadata and by the error description, which it does not repeat', async t => {
  const scene = await openRelyingParty(t)
  const description = 'request_uri is required CANARY'
  const said = await comesBackWith(scene, { error: 'invalid_request', error_description: description })
  assert.match(said, /requires pushed authorization requests \(PAR\)/)
  const told = await openRelyingParty(t, { PAR: 'off' })
  told.op.bend.discovery = right => ({ ...right, require_pushed_authorization_requests: true })
  assert.match(await comesBackWith(told, { error: 'invalid_request' }), /\(PAR\)/)
  assert.doesNotMatch(JSON.stringify([scene.rp.lines, told.rp.lines]), /CANARY/)
})

test('a form_post callback gets 405, and the log suggests the response mode "query"', async t => {
  const scene = await openRelyingParty(t)
  const client = scene.visitor()
  const { status, headers } = await client.post('/callback', { code: 'code-CANARY', state: 'x'.repeat(40) })
  assert.deepEqual([status, headers.allow], [405, 'GET'])
  assert.match(failed(scene), /response_mode=form_post.*Set the response mode "query"/)
  assert.deepEqual(scene.op.callsTo('token'), [])
})

const OWN = [
  'state',
  'nonce',
  'redirect_uri',
  'response_type',
  'code_challenge',
  'code_challenge_method',
  'request',
  'request_uri',
]

test('authorizationParams cannot replace the parameters that protect a sign-in', async t => {
  const opened = (authorizationParams: Record<string, string>, more: object = {}) => {
    const provider = { preset: 'oidc', issuer: 'https://idp.example.com', clientId: 'a', clientSecret: 'b' }
    const config: Config = { provider: { ...provider, authorizationParams, ...more } }
    return openGateway(t, {}, { config })
  }
  for (const name of OWN)
    await assert.rejects(
      opened({ [name]: 'x' }),
      new RegExp(`provider\\.authorizationParams\\.${name} is set by Menshen itself`),
    )
  await assert.rejects(opened({ st: 'x' }, { authorizationNames: { state: 'st' } }), /authorizationParams\.st/)
  await assert.rejects(opened({ x: 'y' }, { authorizationNames: { x: 'state' } }), /authorizationParams\.x/)
  await assert.rejects(opened({ response_mode: 'form_post' }), /response_mode is "form_post"; expected "query"/)
  await opened({ prompt: 'consent', response_mode: 'query', max_age: '60' })
})
