// GET /_menshen/console/rules: the rules in effect, their verdict on a request that is entered there, and what shadow rules
// would have refused.

import { html } from 'hono/html'
import { roleNamesIn } from '../access/roles.ts'
import { judge, type RuleQuery, type Verdict, VISITOR } from '../access/rule-query.ts'
import { isBuiltIn, isClosed } from '../access/rules.ts'
import { ANY_ROLE, type Rule } from '../config/config-file.ts'
import type { SignedInCaller } from '../gateway/admission.ts'
import type { GatewayContext } from '../gateway/context.ts'
import type { GatewayRequest } from '../gateway/request.ts'
import { languageOf, type OwnAnswer, pageAnswer } from '../gateway/respond.ts'
import type { RefusalsOfRule, ShadowRefusal } from '../observe/shadow-refusals.ts'
import { roleName } from '../pages/account-page.ts'
import { type Html, moment } from '../pages/layout.ts'
import type { Words } from '../pages/words/words.ts'
import { cell, consoleFrame, longCell, row, table, type Viewer, viewerOf } from './console-frame.ts'

export async function showRules(
  context: GatewayContext,
  request: GatewayRequest,
  caller: SignedInCaller,
): Promise<OwnAnswer> {
  const { rules } = context.auth
  const { shadowRefusals } = context.observe
  const roles = [VISITOR, ...roleNamesIn(context.auth.roles)]
  const query = readRuleQuery(new URLSearchParams(request.search), roles)
  const view = {
    viewer: viewerOf(caller),
    rules: rules.inOrder,
    roles,
    query,
    verdict: query.path === '' ? undefined : judge(rules, query, context.paths.signIn),
    shadowRules: rules.inOrder
      .filter(({ shadow }) => shadow)
      .map(rule => ({ rule, refusals: shadowRefusals.of(rule) })),
  }
  return pageAnswer(context.pages, rulesPage(languageOf(context.pages, request), view), { cookies: caller.cookies })
}

function readRuleQuery(fields: URLSearchParams, roles: readonly string[]): RuleQuery {
  const given = (name: string) => fields.get(name)?.trim() ?? ''
  const [path, role, groups] = [given('path'), given('role'), given('groups')]
  return {
    // A path may be typed without the slash.
    path: path === '' || path.startsWith('/') ? path : `/${path}`,
    method: given('method').toUpperCase() || 'GET',
    role: roles.includes(role) ? role : VISITOR,
    groups: groups.split(/\s*[,，]\s*/).filter(group => group !== ''),
    user: given('user'),
  }
}

// The page: rules in the order of their precedence, a form to ask who may see what, and the refusals of shadow rules.

export interface RulesView {
  readonly viewer: Viewer
  /** In the order of their precedence. */
  readonly rules: readonly Rule[]
  /** The roles of the form. */
  readonly roles: readonly string[]
  readonly query: RuleQuery
  /** Absent if nothing was asked. */
  readonly verdict: Verdict | undefined
  readonly shadowRules: readonly { readonly rule: Rule; readonly refusals: RefusalsOfRule }[]
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

export function rulesPage(words: Words, view: RulesView): string {
  const { t } = words
  const { rules, shadowRules } = view
  const columns = [t('rules.path'), t('rules.methods'), t('rules.who'), t('rules.kind')]
  const rows = rules.map((rule, n) => ruleRow(words, rule, n, view.verdict))
  return consoleFrame(words, {
    section: 'rules',
    viewer: view.viewer,
    body: html`<h2 id="ask">${t('rules.ask')}</h2>
${askForm(words, view)}
<div role="status">${view.verdict ? verdictPart(words, view, view.verdict) : ''}</div>
<h2 id="rules">${t('rules.table')}</h2>
<p class="lead">${t('rules.lead')}</p>
${table({ label: { by: 'rules' }, columns, rows })}
${shadowRules.length === 0 ? '' : shadowPart(words, view)}`,
  })
}

function askForm(words: Words, { roles, query }: RulesView): Html {
  const { t } = words
  const { path, method, role, groups, user } = query
  const methods = METHODS.includes(method) ? METHODS : [...METHODS, method]
  const roleLabel = (name: string) => (name === VISITOR ? t('rules.visitor') : `${wordBefore(words, name)}${name}`)
  return html`<form method="get" class="search fields" role="search" aria-labelledby="ask">
<label>${t('rules.path')}<input name="path" value="${path}" placeholder="/reports" autocomplete="off" spellcheck="false" required></label>
<label>${t('rules.method')}<select name="method">${methods.map(name => option(name, name, name === method))}</select></label>
<label>${t('session.role')}<select name="role">${roles.map(name => option(name, roleLabel(name), name === role))}</select></label>
<label>${t('rules.groups')}<input name="groups" value="${groups.join(', ')}" autocomplete="off"></label>
<label>${t('console.user')}<input name="user" value="${user}" autocomplete="off"></label>
<button type="submit" class="button small">${t('rules.ask_button')}</button>
</form>`
}

/** The word that other pages have for a role, before its code; nothing where they are the same. */
function wordBefore(words: Words, role: string): string {
  const word = roleName(words, role)
  return word.toLowerCase() === role ? '' : `${word} `
}

function option(value: string, label: string, isChosen: boolean): Html {
  return html`<option value="${value}" ${isChosen ? html`selected` : ''}>${label}</option>`
}

function verdictPart(words: Words, { rules, query }: RulesView, verdict: Verdict): Html {
  const { t, rich } = words
  const asked = html`<code>${query.method} ${query.path}</code>`
  const kind = verdict.outcome === 'admitted' || verdict.outcome === 'own' ? 'good' : 'bad'
  const sentence = html`<p><strong>${t(`rules.${verdict.outcome}`)}</strong> ${asked}</p>`
  if (!('rule' in verdict)) return html`<div class="notice ${kind}">${sentence}</div>`
  const { rule, interpretation, shadow } = verdict
  return html`<div class="notice ${kind}">${sentence}
<p>${isClosed(rule) ? '' : rich('rules.by', { rule: ruleLink(words, rules, rule) })}${interpretation === undefined ? '' : html` ${rich('rules.reading', { reading: html`<code>${interpretation}</code>` })}`}</p>
${shadow ? html`<p>${rich('rules.would', { rule: ruleLink(words, rules, shadow.rule), outcome: html`${t(`rules.${shadow.outcome}`)}` })}</p>` : ''}</div>`
}

function ruleLink({ t }: Words, rules: readonly Rule[], rule: Rule): Html {
  const place = rules.indexOf(rule)
  return html`<a href="#rule-${place + 1}">${t('rules.number', { number: place + 1 })}</a> <code>${rule.path}</code>`
}

function ruleRow(words: Words, rule: Rule, n: number, verdict: Verdict | undefined): Html {
  const { t } = words
  const { path, exact, methods, shadow } = rule
  const decides = verdict && 'rule' in verdict && verdict.rule === rule
  const tags = [
    ...(isBuiltIn(rule) ? [t('rules.built_in')] : []),
    ...(exact ? [t('rules.exact')] : []),
    ...(shadow ? [t('rules.shadow')] : []),
    ...(decides ? [t('rules.decides')] : []),
  ]
  return row(html`<span id="rule-${n + 1}" class="dim">${n + 1}.</span> <code>${path}</code>`, [
    cell(t('rules.methods'), methods?.join(', ') ?? t('rules.all_methods')),
    longCell(t('rules.who'), whoPart(words, rule)),
    cell(t('rules.kind'), html`${tags.map(tag => html`<span class="tag">${tag}</span> `)}`),
  ])
}

function whoPart(words: Words, { public: everybody, roles = [], groups = [], users = [], bearer }: Rule): Html {
  const { t } = words
  const named = (label: string, names: readonly string[], before = (_name: string) => '') =>
    names.length === 0
      ? []
      : [html`${label} ${names.map((name, n) => html`${n > 0 ? ', ' : ''}${before(name)}<code>${name}</code>`)}`]
  const parts = [
    ...(everybody ? [html`${t('rules.public')}`] : []),
    ...(roles.includes(ANY_ROLE)
      ? [html`${t('rules.anybody')}`]
      : named(t('session.role'), roles, name => wordBefore(words, name))),
    ...named(t('rules.group'), groups),
    ...named(t('console.user'), users),
    ...(bearer ? [html`${t('rules.bearer')}`] : []),
  ]
  return html`${parts.map((part, n) => html`${n > 0 ? html`<br>` : ''}${part}`)}`
}

function shadowPart(words: Words, { shadowRules, rules }: RulesView): Html {
  const { t, rich } = words
  return html`<h2 id="trial">${t('rules.trial')}</h2>
<p class="lead">${t('rules.trial_lead')}</p>
${shadowRules.map(
  ({ rule, refusals }, n) => html`<h3 id="trial-${n + 1}">${ruleLink(words, rules, rule)}</h3>
<p>${rich('rules.would_refuse', { count: html`<strong>${refusals.count}</strong>` })}</p>
${refusals.latest.length === 0 ? '' : refusalTable(words, `trial-${n + 1}`, refusals.latest)}`,
)}`
}

function refusalTable(words: Words, by: string, refusals: readonly ShadowRefusal[]): Html {
  const { t } = words
  const columns = [t('audit.time'), t('rules.request'), t('console.user'), t('session.role'), t('audit.request')]
  const rows = refusals.map(({ time, method, path, user, role, requestId }) =>
    row(moment(words, time), [
      longCell(t('rules.request'), html`<code>${method} ${path}</code>`),
      longCell(t('console.user'), user || t('rules.visitor')),
      cell(t('session.role'), role && html`${wordBefore(words, role)}<code>${role}</code>`),
      longCell(t('audit.request'), html`<code>${requestId}</code>`),
    ]),
  )
  return table({ label: { by }, columns, rows })
}
