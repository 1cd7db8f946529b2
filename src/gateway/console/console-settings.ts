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
import { viewerOf } from './viewer.ts'

export async function showSettings(context: GatewayContext, visit: Visit, caller: SignedInCaller): Promise<Response> {
  return pageAnswer(
    context,
    settingsPage(languageOf(context, visit), viewerOf(caller), shownTopics(context.settings)),
    { cookies: caller.cookies },
  )
}

function shownTopics(settings: Settings): ShownTopic[] {
  const defaults = readSettings({})
  const shownSetting = ([name, { sentence, sentenceZh }]: [Name, Row<unknown>]) => ({
    name,
    sentence,
    sentenceZh,
    value: shown(settings[name]),
    usual: shown(defaults[name]),
  })
  return TOPIC_NAMES.map(topic => {
    const rows = Object.entries(TOPICS[topic]) as [Name, Row<unknown>][]
    return { topic, settings: rows.map(shownSetting) }
  })
}

/** Pairs such as those of PROVIDER_VARS, and not a secret. */
function isPairs(value: unknown): value is Record<string, string> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
}

function shown(value: Settings[keyof Settings]): string {
  if (value instanceof Networks) return value.rules.map(rule => rule.replace(/^\w+: IPv[46] /, '')).join(', ')
  if (Array.isArray(value)) return value.map(String).join(', ')
  // As they are written in the environment.
  if (isPairs(value))
    return Object.entries(value)
      .map(([name, text]) => hidePassword(`${name}=${text}`))
      .join(', ')
  return hidePassword(String(value ?? '—'))
}
