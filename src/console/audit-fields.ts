// The fields of an audit event in words, except those that most events have: each field with its name, each code with its meaning.
// A field that this version does not know is shown unchanged.

import { html } from 'hono/html'
import { PROOF_PROBLEMS } from '../devices/routes.ts'
import { ERRORS, type ErrorCode, isLoginError } from '../errors.ts'
import type { AuditEvent } from '../observe/audit-event.ts'
import { type Html, moment } from '../pages/layout.ts'
import { roleName } from '../pages/shown-text.ts'
import type { Words } from '../pages/words.ts'
import { END_REASONS } from '../session/end-reasons.ts'
import { safeText } from '../util/safe-text.ts'

type Value = AuditEvent['fields'][string]

/** In the order in which they are shown. */
const NAMES = [
  'reason',
  'scope',
  'error',
  'detail',
  'by',
  'byUser',
  'outcome',
  'role',
  'key',
  'host',
  'method',
  'path',
  'ended',
  'replaced',
  'name',
  'expires',
  'revoked',
  'kind',
  'step',
  'during',
  'hook',
  'acr',
  'amr',
  'count',
  'again',
  'changed',
  'rules',
  'upstreams',
  'worker',
] as const
type FieldName = (typeof NAMES)[number]

const CODES = {
  by: ['user', 'developer', 'provider', 'configuration', 'command', 'machine'],
  outcome: ['kept', 'ended'],
  key: ['machine', 'personal'],
  kind: ['sign-in', 'ticket', 'logout', 'device'],
  step: ['start', 'register', 'refresh'],
  during: ['refresh'],
  condition: [
    'outside_network',
    'outside_hours',
    'foreign_origin',
    'step_up_failed',
    'auth_time_missing',
    'not_met',
    'insufficient_scope',
  ],
} as const

/** Fields that every event may have, or that mean nothing to a reader. */
const COMMON = new Set(['user', 'sub', 'address', 'userAgent', 'provider', 'requestId', 'session'])

/** The most telling field of an event, below its name: where a request went, or why something happened. */
export function headline(words: Words, { method, path, reason, name }: AuditEvent['fields']): Html {
  const line = (content: Html) => html`<br><span class="small">${content}</span>`
  if (path !== undefined) return line(html`<code>${breakable(`${method ?? ''} ${path}`.trim())}</code>`)
  if (reason !== undefined) return line(valueInWords(words, 'reason', reason))
  return name === undefined ? html`` : line(html`${name}`)
}

/** Lets a path break after its signs rather than inside a word. */
function breakable(text: string): Html {
  return html`${text.split(/(?<=[./-])/).map((part, n) => html`${n > 0 ? html`<wbr>` : ''}${part}`)}`
}

export function otherFields(words: Words, fields: Readonly<Record<string, Value>>): Html {
  const rank = (name: string) => (isFieldName(name) ? NAMES.indexOf(name) : NAMES.length)
  const sorted = Object.entries(fields)
    .filter(([name]) => !COMMON.has(name))
    .sort(([one], [other]) => rank(one) - rank(other))
  return html`${sorted.map(([name, value]) => html`<div><dt>${fieldName(words, name)}</dt><dd>${valueInWords(words, name, value)}</dd></div>`)}`
}

function isFieldName(name: string): name is FieldName {
  return NAMES.some(known => known === name)
}

function fieldName({ t }: Words, name: string): Html {
  return isFieldName(name) ? html`${t(`audit.fact_${name}`)}` : html`<code>${name}</code>`
}

function valueInWords(words: Words, name: string, value: Value): Html {
  const meaning = meaningOf(words, name, String(value))
  if (name === 'expires') {
    const at = Date.parse(String(value))
    if (!Number.isNaN(at)) return html`${moment(words, at)}`
  }
  // The log has the code itself.
  return meaning === undefined
    ? html`<code>${safeText(String(value))}</code>`
    : html`<span title="${value}">${meaning}</span>`
}

function meaningOf(words: Words, name: string, value: string): string | undefined {
  const { t } = words
  if (name === 'role') return roleName(words, value)
  if (name === 'reason') {
    if (isLoginError(value)) return t(`reason.${value}`)
    const condition = CODES.condition.find(code => code === value)
    if (condition) return t(`reason.${condition}`)
    const ended = END_REASONS.find(reason => reason === value)
    if (ended) return t(`reason.ended_${ended}`)
    const proof = PROOF_PROBLEMS.find(code => code === value)
    if (proof) return t(`reason.proof_${proof}`)
    return value === 'unknown_error' ? t('reason.unknown_error') : undefined
  }
  if (name === 'error') return Object.hasOwn(ERRORS, value) ? t(`audit.error_${value as ErrorCode}`) : undefined
  const by = CODES.by.find(code => name === 'by' && code === value)
  if (by) return t(`audit.by_${by}`)
  const outcome = CODES.outcome.find(code => name === 'outcome' && code === value)
  if (outcome) return t(`audit.outcome_${outcome}`)
  const key = CODES.key.find(code => name === 'key' && code === value)
  if (key) return t(`audit.key_${key}`)
  const step = CODES.step.find(code => name === 'step' && code === value)
  if (step) return t(`audit.step_${step}`)
  const during = CODES.during.find(code => name === 'during' && code === value)
  if (during) return t(`audit.during_${during}`)
  const kind = CODES.kind.find(code => name === 'kind' && code === value)
  return kind && t(`audit.kind_${kind}`)
}
