// GET /_menshen/console/settings: the settings in effect, without their secrets.

import { type ShownTopic, settingsPage } from '../../pages/console/settings-page.ts'
import { Networks } from '../../settings/networks/networks.ts'
import { type Name, readSettings, type Settings } from '../../settings/read.ts'
import type { Row } from '../../settings/row.ts'
import { TOPIC_NAMES, TOPICS } from '../../settings/rows.ts'
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
  return pageAnswer(context, settingsPage(languageOf(context, visit), shownTopics(context.settings)), { cookies })
}

function shownTopics(settings: Settings): ShownTopic[] {
  const defaults = readSettings({})
  const shownSetting = ([name, { sentence }]: [Name, Row<unknown>]) => ({
    name,
    sentence,
    value: shown(settings[name]),
    usual: shown(defaults[name]),
  })
  return TOPIC_NAMES.map(topic => {
    const rows = Object.entries(TOPICS[topic]) as [Name, Row<unknown>][]
    return { topic, settings: rows.map(shownSetting) }
  })
}

function shown(value: Settings[keyof Settings]): string {
  if (value instanceof Networks) return value.rules.join(', ')
  // Such as PROVIDER_VARS, as they are written in the environment.
  if (typeof value === 'object' && Object.getPrototypeOf(value) === Object.prototype)
    return Object.entries(value)
      .map(([name, text]) => hidePassword(`${name}=${text}`))
      .join(', ')
  return hidePassword(String(value ?? '—'))
}
