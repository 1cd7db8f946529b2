// What the examples of containers have in common: settings that Menshen takes, and the time that it needs to end.
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readSettings } from '../../src/config/read.ts'
import { SETTINGS } from '../../src/config/settings.ts'

/** Ten seconds for requests, two for the provider's logout, five for a refresh, and some for the store. */
export const LONGEST_CLOSE_SECONDS = 20

/** All are settings and taken together; what they name by a file is one of the secrets. */
export function checkSettings(
  given: Readonly<Record<string, string>>,
  folder: string,
  file: RegExp,
  secrets: readonly string[],
): void {
  assert.deepEqual(
    Object.keys(given).filter(name => !Object.hasOwn(SETTINGS, name)),
    [],
  )
  mkdirSync(folder, { recursive: true })
  const inFolder = (path: string) => {
    const [, secret = ''] = file.exec(path) ?? assert.fail(`${path} is nowhere`)
    assert.ok(secrets.includes(secret), `${secret} is not a secret`)
    writeFileSync(join(folder, secret), 'x'.repeat(48))
    return join(folder, secret)
  }
  const examples: Readonly<Record<string, string>> = {
    BASE_URL: 'https://app.example.com',
    AUTH_URL: 'https://idp.example.com',
  }
  const environment = Object.entries(given).map(([name, value]) => {
    if (name.endsWith('_FILE')) return [name, inFolder(value)]
    return [name, value.replace(/\$\{\w+[^}]*\}/, examples[name] ?? 'some-text')]
  })
  readSettings({ NODE_ENV: 'production', ...Object.fromEntries(environment) })
}
