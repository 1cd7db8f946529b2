// Which landings without a cookie are taken for a browser that does not keep it.

import assert from 'node:assert/strict'
import test from 'node:test'
import type { GatewayRequest } from '../../src/http/request.ts'
import { createLostCookieDetector } from '../../src/identify/lost-cookies.ts'

function landing(connection: object): GatewayRequest {
  return {
    connection,
    address: '127.0.0.1',
    path: '/reports',
    search: '',
    headers: { 'sec-fetch-site': 'cross-site' },
  } as unknown as GatewayRequest
}

function setUpDetector() {
  const clock = { now: 0 }
  const detector = createLostCookieDetector({ settings: { TRUSTED_PROXIES: undefined }, now: () => clock.now })
  return { clock, detector }
}

test('the detector reports a lost cookie if a browser lands without its new session cookie within a minute', () => {
  const { clock, detector } = setUpDetector()
  const request = landing({})
  detector.expect(request, '/reports', 'a')
  assert.equal(detector.cookieWasLost(request), true)
  detector.expect(request, '/reports', 'b')
  detector.sessionSeen('b')
  assert.equal(detector.cookieWasLost(request), false)
  detector.expect(request, '/reports', 'c')
  clock.now += 60_000
  assert.equal(detector.cookieWasLost(request), false)
})

test('with more sign-ins than it can remember, the lost-cookie detector forgets the oldest', () => {
  const { detector } = setUpDetector()
  const [oldest, latest] = [landing({}), landing({})]
  detector.expect(oldest, '/reports', 'oldest')
  for (let index = 0; index < 10_000; index++) detector.expect(landing({}), '/reports', `session ${index}`)
  detector.expect(latest, '/reports', 'latest')
  assert.equal(detector.cookieWasLost(oldest), false)
  assert.equal(detector.cookieWasLost(latest), true)
})
