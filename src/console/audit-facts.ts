// What an event of the audit trail carries besides who and from where, in words: each fact by its name, each code with its
// meaning. Of a fact that this version does not know, the name and the value as they are.
import { html } from 'hono/html'
import { ERRORS, type ErrorCode, isLoginError } from '../errors.ts'
import type { AuditEvent } from '../observe/audit-event.ts'
import { roleName } from '../pages/account-page.ts'
import type { Html } from '../pages/layout.ts'
import type { Words } from '../pages/words/words.ts'

type Value = AuditEvent['facts'][string]

/** In the order in which they are told. */
const NAMES = [
  'reason',
  'error',
  'detail',
  'by',
  'byUser',
  'outcome',
  'role',
  'method',
  'path',
  'ended',
  'kind',
  'changed',
  'rules',
  'upstreams',
  'worker',
] as const
type FactName = (typeof NAMES)[number]

const CODES = {
  by: ['user', 'developer', 'provider', 'configuration', 'command'],
  outcome: ['kept', 'ended'],
  kind: ['sign-in', 'ticket', 'logout'],
} as const

export function factLines(words: Words, facts: Readonly<Record<string, Value>>): Html {
  const place = (name: string) => (isFactName(name) ? NAMES.indexOf(name) : NAMES.length)
  const sorted = Object.entries(facts).sort(([one], [other]) => place(one) - place(other))
  return html`${sorted.map(([name, value]) => html`<br><span class="small">${factName(words, name)}${valueInWords(words, name, value)}</span>`)}`
}

function isFactName(name: string): name is FactName {
  return NAMES.some(known => known === name)
}

function factName({ t }: Words, name: string): Html {
  return isFactName(name) ? html`${t(`audit.fact_${name}`)}` : html`${name}: `
}

function valueInWords(words: Words, name: string, value: Value): Html {
  const meaning = meaningOf(words, name, String(value))
  // The code itself is what the log has.
  return meaning === undefined ? html`<code>${value}</code>` : html`<span title="${value}">${meaning}</span>`
}

function meaningOf(words: Words, name: string, value: string): string | undefined {
  const { t } = words
  if (name === 'role') return roleName(words, value)
  if (name === 'reason') {
    if (isLoginError(value)) return t(`reason.${value}`)
    return value === 'unknown_error' ? t('reason.unknown_error') : undefined
  }
  if (name === 'error') return Object.hasOwn(ERRORS, value) ? t(`audit.error_${value as ErrorCode}`) : undefined
  const by = CODES.by.find(code => name === 'by' && code === value)
  if (by) return t(`audit.by_${by}`)
  const outcome = CODES.outcome.find(code => name === 'outcome' && code === value)
  if (outcome) return t(`audit.outcome_${outcome}`)
  const kind = CODES.kind.find(code => name === 'kind' && code === value)
  return kind && t(`audit.kind_${kind}`)
}
