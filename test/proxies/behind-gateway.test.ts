// The example application, behind Menshen with the example's own configuration.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { createClient, signIn } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import { startInstance } from '../kit/instance.ts'
import { openScriptedProvider } from '../kit/scripted-provider.ts'
import { until } from '../kit/until.ts'

const FOLDER = fileURLToPath(new URL('../../examples/behind-gateway/', import.meta.url))

test('the behind-gateway example greets the signed-in user and answers 401 to direct requests, even with forged headers', async t => {
  const provider = await openScriptedProvider(t)
  const [port, menshenPort] = [String(await freePort()), String(await freePort())]
  const env = { PATH: process.env.PATH, PORT: port, MENSHEN_URL: `http://localhost:${menshenPort}` }
  const app = spawn(process.execPath, ['--import=../from-source.ts', 'app.ts'], { cwd: FOLDER, env, stdio: 'inherit' })
  const ended = once(app, 'exit')
  t.after(async () => {
    app.kill('SIGTERM')
    await ended
  })
  const settings = { ...provider.settings, STORE: 'memory:', UPSTREAM: `http://127.0.0.1:${port}`, PORT: menshenPort }
  const menshen = await startInstance(settings, { cwd: FOLDER })
  t.after(() => menshen.stop())
  const [visitor, user, admin] = [createClient(menshen.url), createClient(menshen.url), createClient(menshen.url)]
  await until(async () => (await visitor.get('/status')).status === 200)

  assert.equal((await visitor.get('/')).status, 302)
  await signIn(user, provider, { nickname: '<b>张三</b>' })
  const page = await user.get('/')
  assert.match(page.text, /&#60;b&#62;张三&#60;\/b&#62;，您好/)
  const [, script = ''] = /<script type="module" src="([^"]+)">/.exec(page.text) ?? []
  assert.match(String((await user.get(script)).headers['content-type']), /javascript/)
  assert.equal((await user.get('/reports')).status, 403)
  await signIn(admin, provider, { username: 'admin' })
  assert.equal((await admin.get('/reports')).status, 200)

  const past = createClient(`http://127.0.0.1:${port}`)
  assert.equal((await past.get('/')).status, 401)
  assert.equal(
    (await past.get('/', { headers: { 'x-forwarded-user': 'admin', 'x-menshen-assertion': 'a.b.c' } })).status,
    401,
  )
})
