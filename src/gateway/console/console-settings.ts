// GET /_menshen/console/settings: the settings in effect, without their secrets.
import { BlockList } from 'node:net'
import { type ShownSetting, settingsPage } from '../../pages/console/settings-page.ts'
import { readSettings, type Settings } from '../../settings/read.ts'
import { SETTINGS } from '../../settings/rows.ts'
import { hidePassword } from '../../settings/secret.ts'
import type { SignedInCaller } from '../admission/admit.ts'
import type { GatewayContext } from '../context.ts'
import { pageAnswer } from '../http/page-answers.ts'
import type { Visit } from '../http/request.ts'
import { languageOf } from '../language/language-of.ts'

export async function showSettings(
  context: GatewayContext,
  visit: Visit,
  { cookies }: SignedInCaller,
): Promise<Response> {
  return pageAnswer(context, settingsPage(languageOf(context, visit), shownSettings(context.settings)), { cookies })
}

function shownSettings(settings: Settings): ShownSetting[] {
  const defaults = readSettings({})
  return (Object.keys(SETTINGS) as (keyof Settings)[]).map(name => {
    const value = shown(settings[name])
    return { name, value, isDefault: value === shown(defaults[name]) }
  })
}

function shown(value: Settings[keyof Settings]): string {
  if (value instanceof BlockList) return value.rules.join(', ')
  return hidePassword(String(value ?? '—'))
}
