// GET /_menshen/console/rules: the rules in effect, their verdict on a request that is entered there, and the requests that shadow
// rules would have refused.

import { isIP } from 'node:net'
import { html } from 'hono/html'
import { roleNamesIn } from '../access/roles.ts'
import {
  answerRuleQuery,
  type RuleQuery,
  type RuleVerdict,
  readTime,
  type UncheckedCondition,
  VISITOR,
} from '../access/rule-query.ts'
import { isBuiltIn, isClosed } from '../access/rules.ts'
import type { Rule } from '../config/file.ts'
import { ANY_ROLE } from '../config/role-names.ts'
import { languageOf, type OwnAnswer, pageAnswer } from '../http/answers.ts'
import type { GatewayRequest } from '../http/request.ts'
import type { SignedInCaller } from '../identify/admission.ts'
import type { RuleRefusals, ShadowRefusal } from '../observe/shadow-refusals.ts'
import { exactMoment, type Html } from '../pages/layout.ts'
import { hoursText } from '../pages/notices.ts'
import type { Words } from '../pages/words.ts'
import { safeText } from '../util/safe-text.ts'
import type { ConsoleContext } from './context.ts'
import { createRowFilter, filterBox, readFilter } from './filter-box.ts'
import { consoleFrame, type Viewer, viewerOf } from './frame.ts'
import { type Column, table } from './table.ts'

export async function showRules(
  context: ConsoleContext,
  request: GatewayRequest,
  caller: SignedInCaller,
): Promise<OwnAnswer> {
  const search = new URLSearchParams(request.search)
  const { hosts } = context
  const names = [...(hosts?.rules.keys() ?? [])]
  const host = names.find(name => name === search.get('host'))
  const rules = (host && hosts?.rules.get(host)) || context.auth.rules
  const { shadowRefusals } = context.observe
  const roles = [VISITOR, ...roleNamesIn(context.auth.roles)]
  const query = readRuleQuery(search, roles)
  const view = {
    viewer: viewerOf(caller),
    hosts: hosts && { authHost: new URL(context.settings.BASE_URL).host, names, chosen: host },
    rules: rules.inOrder,
    roles,
    query,
    filter: readFilter(search),
    verdict: query.path === '' ? undefined : answerRuleQuery(rules, query, context.paths.signIn),
    shadowRules: rules.inOrder
      .filter(({ shadow }) => shadow)
      .map(rule => ({ rule, refusals: shadowRefusals.of(rule) })),
  }
  return pageAnswer(context.pages, rulesPage(languageOf(context.pages, request), view), { cookies: caller.cookies })
}

/** A query with the text that was typed in, for the form. */
interface TypedQuery extends RuleQuery {
  readonly typed?: { readonly from: string; readonly at: string; readonly age: string }
}

function readRuleQuery(fields: URLSearchParams, roles: readonly string[]): TypedQuery {
  const given = (name: string) => fields.get(name)?.trim() ?? ''
  const [path, role, groups] = [given('path'), given('role'), given('groups')]
  const list = (name: string) =>
    given(name)
      .split(/[\s,，]+/)
      .filter(text => text !== '')
  const [from, at, age] = [given('from'), given('at'), given('auth_age')]
  return {
    ...(isIP(from) && { from }),
    ...(at !== '' && { at: readTime(at) }),
    ...(/^\d{1,10}$/.test(age) && { authAge: Number(age) }),
    ...(list('acr').length > 0 && { acr: list('acr') }),
    ...(list('amr').length > 0 && { amr: list('amr') }),
    typed: { from, at, age },
    // A path may be typed without its leading slash.
    path: path === '' || path.startsWith('/') ? path : `/${path}`,
    method: given('method').toUpperCase() || 'GET',
    role: roles.includes(role) ? role : VISITOR,
    groups: groups.split(/\s*[,，]\s*/).filter(group => group !== ''),
    user: given('user'),
  }
}

// The page: rules in the order of their precedence, a form to test access, and the refusals of shadow rules.

export interface RulesView {
  readonly viewer: Viewer
  /** The hosts of the form, and the chosen one: BASE_URL if none is. Absent without `hosts`. */
  readonly hosts?: HostChoice | undefined
  /** In the order of their precedence. */
  readonly rules: readonly Rule[]
  /** The roles of the form. */
  readonly roles: readonly string[]
  readonly query: TypedQuery
  /** Rules without this text are hidden. */
  readonly filter: string
  /** Absent if nothing was asked. */
  readonly verdict: RuleVerdict | undefined
  readonly shadowRules: readonly { readonly rule: Rule; readonly refusals: RuleRefusals }[]
}

interface HostChoice {
  readonly authHost: string
  readonly names: readonly string[]
  readonly chosen: string | undefined
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

export function rulesPage(words: Words, view: RulesView): string {
  const { t } = words
  const { rules, shadowRules, hosts, filter } = view
  const columns = ruleColumns(words, view.verdict)
  const isShown = createRowFilter(columns, filter)
  const keep: Record<string, string> = hosts?.chosen === undefined ? {} : { host: hosts.chosen }
  return consoleFrame(words, {
    section: 'rules',
    viewer: view.viewer,
    scripts: ['filter.js'],
    body: html`<h2 id="ask">${t('rules.ask')}</h2>
${askForm(words, view)}
<div role="status">${view.verdict ? verdictPart(words, view, view.verdict) : ''}</div>
<h2 id="rules">${t('rules.table')}${hosts ? html` · ${hosts.chosen ?? hosts.authHost}` : ''}</h2>
<p class="lead">${t('rules.lead')}</p>
${filterBox(words, { value: filter, keep })}
<div data-filtered>${table({ label: { by: 'rules' }, columns, rows: rules, isShown })}</div>
${shadowRules.length === 0 ? '' : shadowPart(words, view)}`,
  })
}

/** Choosing a host shows its rules; a query about it also needs a path. */
function hostField({ t }: Words, { authHost, names, chosen }: HostChoice): Html {
  const options = [
    option('', authHost, chosen === undefined),
    ...names.map(name => option(name, name, name === chosen)),
  ]
  return html`<label>${t('rules.host')}<select name="host">${options}</select></label>
`
}

function askForm(words: Words, { roles, query, hosts }: RulesView): Html {
  const { t } = words
  const { path, method, role, groups, user, typed, acr = [], amr = [] } = query
  const { from = '', at = '', age = '' } = typed ?? {}
  const methods = METHODS.includes(method) ? METHODS : [...METHODS, method]
  const roleLabel = (name: string) => {
    if (name === VISITOR) return t('rules.visitor')
    return isNamedRole(name) ? t(`rules.role_${name}`, { code: name }) : name
  }
  return html`<form method="get" class="search fields" role="search" aria-labelledby="ask">
${hosts ? hostField(words, hosts) : ''}<label>${t('rules.path')}<input name="path" value="${path}" placeholder="/reports" autocomplete="off" spellcheck="false" ${hosts ? '' : html`required`}></label>
<label>${t('rules.method')}<select name="method">${methods.map(name => option(name, name, name === method))}</select></label>
<label>${t('session.role')}<select name="role">${roles.map(name => option(name, roleLabel(name), name === role))}</select></label>
<label>${t('rules.groups')}<input name="groups" value="${groups.join(', ')}" autocomplete="off"></label>
<label>${t('console.user')}<input name="user" value="${user}" autocomplete="off"></label>
<label>${t('rules.from')}<input name="from" value="${from}" placeholder="10.0.0.7" autocomplete="off" spellcheck="false"></label>
<label>${t('rules.at')}<input name="at" value="${at}" placeholder="2026-11-16T09:00" title="${t('rules.at_hint')}" autocomplete="off"></label>
<label>${t('rules.auth_age')}<input name="auth_age" value="${age}" inputmode="numeric" autocomplete="off"></label>
<label>acr<input name="acr" value="${acr.join(' ')}" autocomplete="off" spellcheck="false"></label>
<label>amr<input name="amr" value="${amr.join(' ')}" autocomplete="off" spellcheck="false"></label>
<button type="submit" class="button small">${t('rules.ask_button')}</button>
</form>`
}

function option(value: string, label: string, isChosen: boolean): Html {
  return html`<option value="${value}" ${isChosen ? html`selected` : ''}>${label}</option>`
}

function verdictPart(words: Words, { rules, query }: RulesView, verdict: RuleVerdict): Html {
  const { t, rich } = words
  const asked = html`<code>${query.method} ${query.path}</code>`
  const kind = verdict.outcome === 'admitted' || verdict.outcome === 'own' ? 'good' : 'bad'
  const sentence = html`<p><strong>${t(`rules.${verdict.outcome}`)}</strong> ${asked}</p>`
  const { from = '', at = '' } = query.typed ?? {}
  const mistakes = [
    ...(from !== '' && query.from === undefined ? [t('rules.bad_from')] : []),
    ...(at !== '' && query.at === undefined ? [t('rules.bad_at')] : []),
  ]
  if (mistakes.length > 0) return html`<div class="notice bad">${mistakes.map(text => html`<p>${text}</p>`)}</div>`
  if (!('rule' in verdict)) return html`<div class="notice ${kind}">${sentence}</div>`
  const { rule, interpretation, shadow, condition, unchecked } = verdict
  const names = unchecked?.map(name => UNSAID[name](words)).join(t('list.and'))
  return html`<div class="notice ${kind}">${sentence}
${condition === undefined ? '' : html`<p>${t(`rules.${condition}`)} <code>${condition}</code></p>`}
${names === undefined ? '' : html`<p>${t('rules.unsaid', { names })}</p>`}
<p>${isClosed(rule) ? '' : rich('rules.by', { rule: ruleLink(words, rules, rule) })}${interpretation === undefined ? '' : html` ${rich('rules.reading', { reading: html`<code>${interpretation}</code>` })}`}</p>
${shadow ? html`<p>${rich('rules.would', { rule: ruleLink(words, rules, shadow.rule), outcome: html`${t(`rules.${shadow.outcome}`)}` })}</p>` : ''}</div>`
}

const UNSAID: Readonly<Record<UncheckedCondition, (words: Words) => string>> = {
  networks: ({ t }) => t('rules.from'),
  hours: ({ t }) => t('rules.at'),
  maxAge: ({ t }) => t('rules.auth_age'),
  origin: () => 'Origin',
}

function ruleLink({ t }: Words, rules: readonly Rule[], rule: Rule): Html {
  const place = rules.indexOf(rule)
  return html`<a href="#rule-${place + 1}">${t('rules.number', { number: place + 1 })}</a> <code>${rule.path}</code>`
}

function ruleColumns(words: Words, verdict: RuleVerdict | undefined): Column<Rule>[] {
  const { t } = words
  const tagsOf = (rule: Rule) => [
    ...(isBuiltIn(rule) ? [t('rules.built_in')] : []),
    ...(rule.exact ? [t('rules.exact')] : []),
    ...(rule.shadow ? [t('rules.shadow')] : []),
    ...(verdict && 'rule' in verdict && verdict.rule === rule ? [t('rules.decides')] : []),
  ]
  return [
    {
      title: t('rules.path'),
      cell: ({ path }, n) => html`<span id="rule-${n + 1}" class="dim">${n + 1}.</span> <code>${path}</code>`,
    },
    { title: t('rules.methods'), cell: ({ methods }) => methods?.join(', ') ?? t('rules.all_methods') },
    { title: t('rules.who'), kind: 'long', cell: rule => whoPart(words, rule) },
    { title: t('rules.kind'), cell: rule => html`${tagsOf(rule).map(tag => html`<span class="tag">${tag}</span> `)}` },
  ]
}

function whoPart(words: Words, rule: Rule): Html {
  const { t, rich } = words
  const { public: everybody, roles = [], groups = [], users = [], bearer, scopes = [], keys } = rule
  const { networks = [], hours, origin, maxAge, acr = [], amr = [] } = rule
  const named = (
    label: string,
    names: readonly string[],
    shown: (name: string) => Html = name => html`<code>${name}</code>`,
  ) =>
    names.length === 0
      ? []
      : [
          rich('list.of', {
            label: html`${label}`,
            names: html`${names.map((name, n) => html`${n > 0 ? t('list.and') : ''}${shown(name)}`)}`,
          }),
        ]
  const parts = [
    ...(everybody ? [html`${t('rules.public')}`] : []),
    ...(roles.includes(ANY_ROLE)
      ? [html`${t('rules.anybody')}`]
      : named(t('rules.roles'), roles, name => roleAndCode(words, name))),
    ...named(t('rules.group'), groups),
    ...named(t('rules.users'), users),
    ...(bearer ? [html`${t('rules.bearer')}`] : []),
    ...named(t('rules.scopes'), scopes),
    ...(keys ? [html`${t(keys === 'personal' ? 'rules.personal_keys' : 'rules.keys')}`] : []),
    ...named(t('rules.networks'), networks),
    ...(hours ? [rich('list.of', { label: html`${t('rules.hours')}`, names: html`${hoursText(words, hours)}` })] : []),
    ...(origin ? [html`${t('rules.own_origin')}`] : []),
    ...(maxAge === undefined ? [] : [html`${t('rules.max_age', { seconds: maxAge })}`]),
    ...named(t('rules.acr'), acr),
    ...named(t('rules.amr'), amr),
  ]
  return html`${parts.map((part, n) => html`${n > 0 ? html`<br>` : ''}${part}`)}`
}

/** Rules name roles by their codes; a language may have a name for a built-in role. */
function roleAndCode({ rich }: Words, role: string): Html {
  const code = html`<code>${role}</code>`
  return isNamedRole(role) ? rich(`rules.role_${role}`, { code }) : code
}

function isNamedRole(role: string): role is 'developer' | 'common' {
  return role === 'developer' || role === 'common'
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
  const columns: Column<ShadowRefusal>[] = [
    { title: t('audit.time'), cell: ({ time }) => exactMoment(words, time) },
    { title: t('rules.request'), kind: 'long', cell: ({ method, path }) => html`<code>${method} ${path}</code>` },
    { title: t('console.user'), cell: ({ user }) => (user ? safeText(user) : t('rules.visitor')) },
    { title: t('session.role'), cell: ({ role }) => role && roleAndCode(words, role) },
    { title: t('audit.request'), kind: 'long', cell: ({ requestId }) => html`<code>${requestId}</code>` },
  ]
  return table({ label: { by }, columns, rows: refusals })
}
