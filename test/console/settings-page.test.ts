// The console's page of settings: grouped by topic, without secrets, with what each is for.
import assert from 'node:assert/strict'
import test from 'node:test'
import { SETTINGS, TOPIC_NAMES } from '../../src/config/settings.ts'
import { setUp } from '../kit/set-up.ts'

const PATH = '/_menshen/console/settings'

test('the settings page lists every setting under a topic, dims defaults and shows no secret', async t => {
  const scene = await setUp(t, {
    env: { SESSION_MAX_HOURS: '9', APP_NAME: '<b>采购</b>', PROVIDER_VARS: 'realm=staff,tenant=7' },
  })
  const secret = scene.provider.settings.CLIENT_SECRET
  const { text } = await (await scene.user('admin')).get(PATH)
  for (const topic of TOPIC_NAMES) assert.match(text, new RegExp(`<h2 id="${topic}">`))
  for (const name of Object.keys(SETTINGS)) assert.match(text, new RegExp(`<code>${name}</code><p`), name)
  assert.match(text, /<code class="changed">9<\/code><br><span class="small">默认值：168</)
  assert.match(text, /<code class="dim">300<\/code>/)
  assert.ok(secret.length > 8 && !text.includes(secret))
  assert.match(text, /<code class="changed">\[hidden\]<\/code>/)
  assert.match(text, /<code class="changed">&lt;b&gt;采购/)
  assert.match(text, /<code class="changed">realm=staff, tenant=7<\/code>/)
  assert.match(text, /令牌在到期前多久续期。/)
  const admin = await scene.user('admin')
  await admin.post('/_menshen/language', { language: 'en' }, { headers: { origin: scene.baseUrl } })
  assert.match((await admin.get(PATH)).text, /A token is refreshed when it expires within this time\./)
  assert.equal((await (await scene.user('zhangsan')).get(PATH)).status, 403)
})

test('the settings page filters by name, description or value, never finds a secret, and "changed only" hides defaults', async t => {
  const scene = await setUp(t, { env: { SESSION_MAX_HOURS: '9', APP_NAME: '远山科技' } })
  const admin = await scene.user('admin')
  const shown = async (query: Record<string, string>) => {
    const { text } = await admin.get(`${PATH}?${new URLSearchParams(query)}`)
    const sections = text.split('<section data-filtered').slice(1)
    return sections.flatMap(section => {
      const rows = [
        ...section.matchAll(/<tr role="row"( hidden)?><th scope="row" role="rowheader"><code>(\w+)<\/code><p/g),
      ]
      const names = rows.filter(([, hidden]) => !hidden).map(([, , name = '']) => name)
      assert.equal(section.startsWith(' hidden'), names.length === 0)
      return names
    })
  }
  assert.equal((await shown({})).length, Object.keys(SETTINGS).length)
  assert.deepEqual(await shown({ filter: 'session_max_H' }), ['SESSION_MAX_HOURS'])
  assert.ok((await shown({ filter: '令牌在到期前多久续期' })).length >= 1)
  assert.deepEqual(await shown({ filter: '远山' }), ['APP_NAME'])
  const changed = await shown({ changed: 'yes' })
  assert.ok(changed.includes('SESSION_MAX_HOURS') && changed.includes('CLIENT_ID'))
  assert.ok(!changed.includes('LOGIN_PATH'))
  assert.deepEqual(await shown({ changed: 'yes', filter: 'hours' }), ['SESSION_MAX_HOURS'])
  assert.deepEqual(await shown({ filter: scene.provider.settings.CLIENT_SECRET }), [])
})
