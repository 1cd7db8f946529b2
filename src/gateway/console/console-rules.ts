// GET /_menshen/console/rules: the rules in effect, what they do to a request that somebody asks about, and what those on
// trial would have refused.
import { roleNamesIn } from '../../access/roles.ts'
import { judge, type Question, VISITOR } from '../../access/verdict.ts'
import { rulesPage } from '../../pages/console/rules-page.ts'
import type { SignedInCaller } from '../admission/admit.ts'
import type { GatewayContext } from '../context.ts'
import { pageAnswer } from '../http/page-answers.ts'
import type { Visit } from '../http/request.ts'
import { languageOf } from '../language/language-of.ts'
import { viewerOf } from './viewer.ts'

export async function showRules(context: GatewayContext, visit: Visit, caller: SignedInCaller): Promise<Response> {
  const { rules, shadowRefusals } = context
  const roles = [VISITOR, ...roleNamesIn(context.roles)]
  const question = questionIn(new URLSearchParams(visit.search), roles)
  const view = {
    viewer: viewerOf(caller),
    rules: rules.inOrder,
    roles,
    question,
    verdict: question.path === '' ? undefined : judge(rules, question, context.providers.callbackPaths),
    onTrial: rules.inOrder.filter(({ shadow }) => shadow).map(rule => ({ rule, refusals: shadowRefusals.of(rule) })),
  }
  return pageAnswer(context, rulesPage(languageOf(context, visit), view), { cookies: caller.cookies })
}

function questionIn(query: URLSearchParams, roles: readonly string[]): Question {
  const given = (name: string) => query.get(name)?.trim() ?? ''
  const [path, role, groups] = [given('path'), given('role'), given('groups')]
  return {
    // What is typed without it is meant with it.
    path: path === '' || path.startsWith('/') ? path : `/${path}`,
    method: given('method').toUpperCase() || 'GET',
    role: roles.includes(role) ? role : VISITOR,
    groups: groups.split(/\s*[,，]\s*/).filter(group => group !== ''),
    user: given('user'),
  }
}
