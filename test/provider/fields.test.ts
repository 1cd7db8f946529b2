// The rows of config/provider-fields.ts: a setting and the field that it fills mean the same.

import assert from 'node:assert/strict'
import test from 'node:test'
import { FIELD_ROWS } from '../../src/config/provider-fields.ts'
import { readSettings } from '../../src/config/read.ts'
import { MenshenError } from '../../src/errors.ts'
import { planProvider } from '../../src/provider/plan.ts'
import { planProviders } from '../../src/provider/providers.ts'

const SETTINGS = FIELD_ROWS.flatMap(([path, { setting }]) => (setting ? [{ path, setting }] : []))
/** A secret is read from a file that is not here. */
const isFile = (name: string) => name.endsWith('_FILE')

test('each provider setting has the same effect as its field in the configuration', () => {
  for (const { path, setting } of SETTINGS.filter(({ setting }) => !setting.secret && setting.name !== 'PROVIDER')) {
    const bySetting = planProvider('keycloak', readSettings({ [setting.name]: setting.example }))
    const value = setting.check.parse(setting.example)
    const given = setting.toField ? setting.toField(value as never) : value
    const [key = '', part] = path.split('.')
    const config = { preset: 'keycloak', [key]: part === undefined ? given : { [part]: given } }
    assert.deepEqual(bySetting, planProvider(config, readSettings({})), setting.name)
  }
})

test('with several providers, each single-provider setting is refused and the error names the field to use instead', () => {
  for (const { path, setting } of SETTINGS.filter(({ setting: { name } }) => !isFile(name))) {
    const settings = readSettings({ [setting.name]: setting.example })
    assert.throws(
      () => planProviders({ providers: { staff: { preset: 'oidc' } } }, settings),
      (error: unknown) => {
        assert.ok(error instanceof MenshenError)
        assert.deepEqual(
          error.problems.map(({ setting }) => setting),
          [setting.name],
        )
        assert.match(error.message, new RegExp(`expected providers\\.staff\\.${path.replace('.', '\\.')} instead`))
        return true
      },
    )
  }
})
