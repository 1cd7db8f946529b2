// The console's pages of settings, rules, health and audit, with every sentence that they can say.

import type { RuleVerdict } from '../../src/access/rule-query.ts'
import { createRules } from '../../src/access/rules.ts'
import { TOPIC_NAMES } from '../../src/config/settings.ts'
import { auditPage } from '../../src/console/audit-tab.ts'
import { rulesPage } from '../../src/console/rules-tab.ts'
import { settingsPage } from '../../src/console/settings-tab.ts'
import { EVENTS } from '../../src/events.ts'
import { AUDITED } from '../../src/observe/audit-event.ts'
import type { Words } from '../../src/pages/words.ts'
import { quoted } from '../../src/text/text.ts'
import { zhCN } from '../../src/text/zh-CN.ts'

export const VIEWER = { username: 'ann', nickname: '' }
const NOW = Date.parse('2026-03-01T08:00:00Z')

export function consoleSamples(words: Words): string[] {
  return [settingsSample(words), ...rulesSamples(words), ...auditSamples(words)]
}

function settingsSample(words: Words): string {
  const settings = ['3000', '3001'].map(value => ({
    name: 'PORT',
    description: 'a `b` [c](d)',
    descriptionZh: 'a',
    value,
    default: '3000',
  }))
  const topics = TOPIC_NAMES.map(topic => ({ topic, settings }))
  return settingsPage(words, { viewer: VIEWER, topics, filter: '', onlyChanged: false })
}

function rulesSamples(words: Words): string[] {
  const rule = {
    path: '/a',
    exact: true,
    methods: ['GET'],
    roles: ['x'],
    groups: ['y'],
    users: ['z'],
    bearer: true,
    scopes: ['s'],
  }
  const shadow = { path: '/b', roles: ['*'], shadow: true }
  const rules = [rule, { path: '/c', public: true as const }, ...createRules([shadow]).inOrder]
  const judged = (['admitted', 'refused', 'login'] as const).map(outcome => ({
    outcome,
    rule,
    interpretation: '/c',
    shadow: { outcome, rule: shadow },
  }))
  const verdicts: (RuleVerdict | undefined)[] = [
    undefined,
    { outcome: 'bad_request', problem: 'dot_segment' },
    { outcome: 'uri_too_long' },
    { outcome: 'own' },
    ...judged,
  ]
  const refusal = { time: NOW, method: 'GET', path: '/b', role: '', requestId: 'r' }
  const latest = [
    { ...refusal, user: '' },
    { ...refusal, user: 'ann' },
  ]
  return verdicts.map(verdict =>
    rulesPage(words, {
      viewer: VIEWER,
      rules,
      roles: ['visitor', 'x', 'common', 'developer'],
      filter: '',
      query: { path: '/a', method: 'PURGE', role: 'x', groups: ['y'], user: 'z' },
      verdict,
      shadowRules: [{ rule: shadow, refusals: { count: 2, latest } }],
    }),
  )
}

function auditSamples(words: Words): string[] {
  const query = {
    requestId: '',
    user: '',
    event: '',
    session: '',
    since: '',
    until: '',
    range: '' as const,
    zone: '',
    before: '',
  }
  const fields = {
    user: 'ann',
    session: 's',
    requestId: 'r',
    address: '::1',
    userAgent: 'x',
    provider: 'p',
    reason: 'y',
  }
  const events = [...AUDITED, 'unheard_of'].map((event, n) => ({
    id: `${n}`,
    position: `${n}`,
    time: NOW,
    event,
    fields,
  }))
  const view = {
    viewer: VIEWER,
    query,
    pageSize: 50,
    keep: 0,
    names: { providers: new Map([['p', quoted('Staff')]]), deviceName: () => 'Chrome', displayName: () => 'Ann' },
  }
  // Every code that has words, in the field that carries it.
  const coded = Object.keys(zhCN).flatMap((key, n) => {
    const [, reason, field, value] =
      /^(?:reason\.(?:ended_|proof_)?(\w+)|audit\.(error|by|outcome|key|kind|step|during)_([\w-]+))$/.exec(key) ?? []
    const found = reason ? { reason } : field && !value?.startsWith('is_') ? { [field]: value ?? '' } : undefined
    return found ? [{ id: `c${n}`, position: `${n}`, time: NOW, event: 'sign_in_failed', fields: found }] : []
  })
  const named = [...new Set(AUDITED.flatMap(code => EVENTS[code].fields))].map((field, n) => ({
    id: `f${n}`,
    position: `${n}`,
    time: NOW,
    event: 'sign_in_failed',
    fields: { [field]: 'x' },
  }))
  return [
    auditPage(words, { ...view, page: { events: [...coded, ...named], unreadable: 0 } }),
    auditPage(words, { ...view, page: undefined }),
    auditPage(words, { ...view, page: { events: [], unreadable: 1 } }),
    auditPage(words, { ...view, page: { events, unreadable: 0, next: '9' } }),
    auditPage(words, {
      ...view,
      pageSize: 1,
      query: { ...query, before: '9' },
      page: { events, unreadable: 0, next: '9' },
    }),
  ]
}

const instance = { host: 'one', pid: 1, version: '1.2.3', startedAt: NOW }

export const healthSample = {
  viewer: VIEWER,
  times: [{ what: 'store' as const, p50: 0.5, p99: undefined }],
  instances: [instance, { ...instance, worker: 2 }],
  node: '26.0.0',
  store: 'memory',
}
