// The console's page of settings: grouped by topic, without secrets, with what each is for.
import assert from 'node:assert/strict'
import test from 'node:test'
import { SETTINGS, TOPIC_NAMES } from '../../src/config/settings.ts'
import { setUp } from '../kit/set-up.ts'

const PATH = '/_menshen/console/settings'

test('every setting stands under a topic, defaults are dimmed, and no secret is shown', async t => {
  const scene = await setUp(t, {
    env: { SESSION_MAX_HOURS: '9', APP_NAME: '<b>采购</b>', PROVIDER_VARS: 'realm=staff,tenant=7' },
  })
  const secret = scene.provider.settings.CLIENT_SECRET
  const { text } = await (await scene.user('admin')).get(PATH)
  for (const topic of TOPIC_NAMES) assert.match(text, new RegExp(`<h2 id="${topic}">`))
  for (const name of Object.keys(SETTINGS)) assert.match(text, new RegExp(`<code>${name}</code><p`), name)
  assert.match(text, /<code>9<\/code><br><span class="small">默认值：168</)
  assert.match(text, /<code class="dim">300<\/code>/)
  assert.ok(secret.length > 8 && !text.includes(secret))
  assert.match(text, /<code>\[hidden\]<\/code>/)
  assert.match(text, /<code>&lt;b&gt;采购/)
  assert.match(text, /<code>realm=staff, tenant=7<\/code>/)
  assert.match(text, /令牌在到期前多久续期。/)
  const admin = await scene.user('admin')
  await admin.post('/_menshen/language', { language: 'en' }, { headers: { origin: scene.baseUrl } })
  assert.match((await admin.get(PATH)).text, /A token is refreshed when it expires within this time\./)
  assert.equal((await (await scene.user('zhangsan')).get(PATH)).status, 403)
})
