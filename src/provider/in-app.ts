// Sign-in inside the apps of WeCom, Feishu and DingTalk: their built-in browsers know who the user is.

import type { APP_PRESETS } from '../config/provider-fields.ts'
import type { ProviderPlan } from './plan.ts'

interface App {
  /** The User-Agent of its browser. */
  readonly userAgent: RegExp
  /** The presets of its provider. */
  readonly presets: readonly (typeof APP_PRESETS)[number][]
}

const APPS: readonly App[] = [
  { userAgent: /\bwxwork\//i, presets: ['wecom'] },
  { userAgent: /\b(?:Lark|Feishu)\//i, presets: ['feishu', 'lark'] },
  { userAgent: /\bDingTalk\//i, presets: ['dingtalk'] },
]

/** Whether this browser is inside the app of this provider. */
export function isInAppOf({ preset }: Pick<ProviderPlan, 'preset'>, userAgent: string | undefined): boolean {
  return (
    userAgent !== undefined &&
    APPS.some(app => app.presets.some(name => name === preset) && app.userAgent.test(userAgent))
  )
}

/**
 * The address at which WeCom signs in inside its app; `undefined` for every other provider. The address needs its parameters in
 * this order and with this fragment.
 */
export function inAppUrl(
  { preset, clientId, authorization }: Pick<ProviderPlan, 'preset' | 'clientId' | 'authorization'>,
  redirectUri: string,
  state: string,
): string | undefined {
  if (preset !== 'wecom') return undefined
  const query = new URLSearchParams({
    appid: clientId,
    redirect_uri: redirectUri,
    response_type: 'code',
    scope: 'snsapi_base',
    state,
    agentid: authorization.params.agentid ?? '',
  })
  return `https://open.weixin.qq.com/connect/oauth2/authorize?${query}#wechat_redirect`
}
