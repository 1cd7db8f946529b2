// Which changes of the files a reload accepts, and how it names those that it does not.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { readChanges, takeSnapshot } from '../../src/cli/reload-changes.ts'
import { tempFolder } from '../kit/temp.ts'

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

test('a reload refuses a .env that has become empty, as if somebody were just writing it', async t => {
  const envFile = join(tempFolder(t), '.env')
  const environment = { STORE: 'memory:', AUTH_URL: 'https://id.test', CLIENT_ID: 'a', CLIENT_SECRET: 'b' }
  const sources = { environment, envFile }
  const read = { sources, hadEnvFile: false, listens: true }
  writeFileSync(envFile, 'SESSION_IDLE_MINUTES=30\nDROP_HEADERS=x-internal\n')
  const started = await takeSnapshot(sources)
  for (const text of ['', '# SESSION_IDLE_MINUTES=30\n', 'CLIENT_ID=shadowed\n']) {
    writeFileSync(envFile, text)
    await assert.rejects(readChanges(started, read), {
      file: '.env',
      message: '.env sets nothing any more; expected its settings, or a restart without them.',
    })
  }
  writeFileSync(envFile, 'SESSION_IDLE_MINUTES=20\n')
  const { changed, snapshot } = await readChanges(started, read)
  assert.deepEqual(changed, ['SESSION_IDLE_MINUTES', 'DROP_HEADERS'])
  assert.equal(snapshot.settings.SESSION_IDLE_MINUTES, 20)
})
