// LemonLDAP::NG: an audience that is a list, a callback with a parameter that nobody asked for, refresh tokens that stay.
import assert from 'node:assert/strict'
import test from 'node:test'
import { freePort } from '../kit/free-port.ts'
import { CLIENT, DOCTOR, startLemonldap, TOKEN_SECONDS } from '../kit/live/lemonldap.ts'
import { OFFLINE, openLiveGateway } from '../kit/live/live-set-up.ts'

test('sign-in, refresh and sign-out work with LemonLDAP::NG', async t => {
  const port = await freePort()
  const provider = await startLemonldap(`http://localhost:${port}`)
  if (!provider) return t.skip('LemonLDAP::NG cannot be unpacked: apt-get does not get its packages.')
  t.after(() => provider.close())
  const { person, passSeconds, url, events } = await openLiveGateway(t, {
    port,
    issuer: provider.issuer,
    client: CLIENT,
    env: OFFLINE.env,
    config: { roles: [{ role: 'developer', groups: ['admins'] }] },
  })
  const doctor = person(DOCTOR)
  assert.match((await doctor.signIn()).text, /Doctor Who/)
  assert.equal((await doctor.get('/_menshen/console')).status, 200)
  for (let refreshed = 1; refreshed <= 2; refreshed++) {
    passSeconds(TOKEN_SECONDS / 2 + 1)
    assert.equal((await doctor.get('/')).status, 200)
    assert.equal(events().filter(event => event === 'session_refreshed').length, refreshed)
  }
  const out = new URL((await doctor.signOut()).url)
  assert.equal(out.origin + out.pathname, `${url}/login`)
  assert.equal((await doctor.get('/')).headers.location, '/login')
})
