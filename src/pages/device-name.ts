// The name of a device, from its browser's User-Agent: "Chrome · Windows", "WeChat · Android", "Safari · iPhone".
import type { Words } from './words.ts'

export type DeviceNames = (words: Words, userAgent: string | undefined) => string

/** Longer than browsers need to name themselves. */
const MAX_USER_AGENT_LENGTH = 256

/** Apps that the library takes for Chrome or Safari, or whose names differ between languages. The first match wins. */
const APPS = [
  [/wxwork\//i, 'wecom'],
  [/MicroMessenger/i, 'wechat'],
  [/DingTalk/i, 'dingtalk'],
  [/\b(Lark|Feishu)\//i, 'feishu'],
  [/AlipayClient/i, 'alipay'],
  [/ QQ\//, 'qq'],
  [/QQBrowser/i, 'qq_browser'],
  [/\bUC?Browser\//i, 'uc'],
  [/HuaweiBrowser/i, 'huawei'],
  [/MiuiBrowser/i, 'xiaomi'],
  [/VivoBrowser/i, 'vivo'],
  [/HeyTapBrowser/i, 'oppo'],
  [/baiduboxapp/i, 'baidu'],
  [/\bQuark\//i, 'quark'],
  [/\b(QIHU|360SE|360EE)\b/i, 'qihoo'],
  [/\bMetaSr\b|Sogou/i, 'sogou'],
] as const satisfies readonly (readonly [RegExp, string])[]

export type DeviceKind = 'computer' | 'phone' | 'tablet' | 'unknown'

/** For a drawing beside the name; a guess is good enough. */
export function deviceKind(userAgent = ''): DeviceKind {
  const text = userAgent.slice(0, MAX_USER_AGENT_LENGTH)
  if (/iPad|Tablet|\bPad\b|Android(?!.*Mobile)/i.test(text)) return 'tablet'
  if (/iPhone|iPod|Mobile|Phone/i.test(text)) return 'phone'
  return /Windows|Macintosh|X11|CrOS|OpenHarmony|Linux/i.test(text) ? 'computer' : 'unknown'
}

/** The library is loaded by the first page that needs it, not at the start. */
export async function loadDeviceNames(): Promise<DeviceNames> {
  const { default: bowser } = await import('bowser')
  // For a browser that it does not know, the library returns the text as it is.
  const browsers = new Set<unknown>(Object.values(bowser.BROWSER_MAP))
  const systems = new Set<unknown>(Object.values(bowser.OS_MAP))

  return ({ t }, userAgent = '') => {
    const text = userAgent.slice(0, MAX_USER_AGENT_LENGTH)
    if (text.trim() === '') return t('device.unknown')
    const { browser, os, platform } = bowser.parse(text)
    const app = APPS.find(([pattern]) => pattern.test(text))?.[1]
    const program = app ? t(`device.${app}`) : known(browsers, browser.name)?.replace(/^Microsoft /, '')
    const system = /HarmonyOS/i.test(text) ? 'HarmonyOS' : known(systems, os.name)
    const machine = platform.model === 'iPhone' || platform.model === 'iPad' ? platform.model : system
    return [program, machine].filter(Boolean).join(' · ') || t('device.unknown')
  }
}

function known(names: ReadonlySet<unknown>, name: string | undefined): string | undefined {
  return names.has(name) ? name : undefined
}
