// Which changes of the files a reload accepts, and how it names those that it does not.

import assert from 'node:assert/strict'
import test from 'node:test'
import { readChanges, takeSnapshot } from '../../src/cli/reload-changes.ts'

test('a refused reload names the settings that the operator changed, not those derived from them', async () => {
  const environment = { STORE: 'memory:', AUTH_URL: 'https://id.test', CLIENT_ID: 'a', CLIENT_SECRET: 'b' }
  const started = await takeSnapshot({ environment })
  const reloaded = (changed: Record<string, string>) =>
    readChanges(started, { sources: { environment: { ...environment, ...changed } }, hadEnvFile: false, listens: true })
  await assert.rejects(reloaded({ PORT: '4000' }), {
    message: 'PORT: changed, but takes effect only after a restart; nothing else was applied either.',
  })
  await assert.rejects(reloaded({ PORT: '4000', WORKERS: '2', STORE: 'sqlite:x', APP_NAME: 'x' }), {
    message: 'PORT, STORE, WORKERS: changed, but take effect only after a restart; nothing else was applied either.',
  })
})
