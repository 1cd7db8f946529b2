// The image of the Dockerfile: its stages in empty folders, then Menshen as process 1, as another user, with a root that nobody can write to.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { lastOf, ROOT } from '../container/dockerfile.ts'
import { buildImage, type Image, startImage } from '../container/image.ts'
import { freePort } from '../kit/free-port.ts'
import { isServed, signedIn } from '../kit/instance.ts'
import { openScriptedProvider } from '../kit/scripted-provider.ts'

const MAX_BYTES = 150_000_000
const isRoot = process.getuid?.() === 0

suite('the image', { skip: !isRoot && 'only root can give a process another root' }, () => {
  let folder: string
  let image: Image

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'menshen-image-'))
    image = buildImage(folder)
  })

  after(() => rmSync(folder, { recursive: true, force: true }))

  test('the image is smaller than 150 MB and contains no development dependencies, sources, tests or secrets', t => {
    const files = readdirSync(image.folder, { recursive: true, encoding: 'utf8' })
    const bytes = files.reduce((sum, file) => sum + statSync(join(image.folder, file)).size, 0)
    t.diagnostic(`${Math.round(bytes / 1e6)} MB`)
    assert.ok(bytes < MAX_BYTES, `${bytes} bytes`)
    const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'))
    const forDevelopment = Object.keys(packages).filter(path => packages[path].dev)
    assert.ok(forDevelopment.includes('node_modules/typescript'))
    assert.deepEqual(
      forDevelopment.filter(path => existsSync(join(image.folder, 'app', path))),
      [],
    )
    assert.deepEqual(readdirSync(join(image.folder, 'app')).sort(), [
      'LICENSE',
      'bin',
      'browser',
      'dist',
      'node_modules',
      'package.json',
    ])
  })

  test('the image runs as an unprivileged user with a read-only root, keeps sessions, is healthy and stops on SIGTERM', async t => {
    const provider = await openScriptedProvider(t)
    const PORT = String(await freePort())
    const url = `http://localhost:${PORT}`
    const settings = { ...provider.settings, BASE_URL: url, PORT, WORKERS: '2' }
    const menshen = await startImage(t, image, settings)
    const status = readFileSync(`/proc/${menshen.pid}/status`, 'utf8')
    assert.match(status, /^Uid:\t1000\t1000\t1000\t1000$/m)
    assert.match(status, /^NSpid:\t\d+\t1$/m)
    const mounts = readFileSync(`/proc/${menshen.pid}/mountinfo`, 'utf8').trim().split('\n')
    const writable = mounts.map(line => line.split(' ')).filter(([, , , , , options = '']) => /^rw\b/.test(options))
    const places = writable.map(([, , , , place = '']) => place).filter(place => !/^\/(dev|proc)\b/.test(place))
    assert.deepEqual(places, ['/data'])

    const user = await signedIn({ url }, provider)
    assert.ok(isServed(await user.get({ url })))
    const [, flag, script] = JSON.parse(lastOf(image.stage, 'HEALTHCHECK').replace(/^CMD /, ''))
    const check = () => spawnSync(process.execPath, [flag, script], { env: { PORT } }).status
    assert.equal(check(), 0)
    process.kill(menshen.pid, 'SIGTERM')
    assert.deepEqual(await menshen.closed, [0, null])
    assert.equal(check(), 1)

    await startImage(t, image, settings)
    assert.ok(isServed(await user.get({ url })), 'the session is still there')
  })
})
