// Devices in words, from what browsers say of themselves: those of China by their own names, and whoever lies as unknown.
import assert from 'node:assert/strict'
import test from 'node:test'
import { deviceKind, loadDeviceNames } from '../../src/pages/device-name.ts'
import { createLanguages } from '../../src/pages/words.ts'

const WEBKIT = 'AppleWebKit/537.36 (KHTML, like Gecko)'
const WINDOWS = `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${WEBKIT} Chrome/128.0.0.0 Safari/537.36`
const ANDROID = `Mozilla/5.0 (Linux; Android 13; V2171A; wv) ${WEBKIT} Version/4.0 Chrome/116.0.0.0 Mobile Safari/537.36`
const IPHONE = 'Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)'

const DEVICES: readonly (readonly [userAgent: string, zh: string, en?: string])[] = [
  [WINDOWS, 'Chrome · Windows'],
  [`${WINDOWS} Edg/128.0.0.0`, 'Edge · Windows'],
  [`${IPHONE} Version/17.5 Mobile/15E148 Safari/604.1`, 'Safari · iPhone'],
  [`${IPHONE.replace('iPhone;', 'iPad;')} Version/17.5 Mobile/15E148 Safari/604.1`, 'Safari · iPad'],
  ['Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0', 'Firefox · Linux'],
  [
    `Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/605.1.15`,
    'Safari · macOS',
  ],
  [`${ANDROID} MMWEBID/8815 MicroMessenger/8.0.49.2600(0x28003133) WeChat/arm64`, '微信 · Android', 'WeChat · Android'],
  [`${IPHONE} Mobile/15E148 wxwork/4.1.22 MicroMessenger/7.0.1`, '企业微信 · iPhone', 'WeCom · iPhone'],
  [`${ANDROID} AliApp(DingTalk/7.5.5) com.alibaba.android.rimet/34567`, '钉钉 · Android', 'DingTalk · Android'],
  [`${WINDOWS} Lark/7.18.6 LarkLocale/zh_CN ChannelName/Feishu`, '飞书 · Windows', 'Feishu · Windows'],
  [`${ANDROID} MQQBrowser/6.2 TBS/046295 QQ/8.9.28.10155`, 'QQ · Android'],
  [`${WINDOWS} Core/1.94.197.400 QQBrowser/11.7.5287.400`, 'QQ 浏览器 · Windows', 'QQ Browser · Windows'],
  [`${ANDROID} UCBrowser/15.1.8.1220`, 'UC 浏览器 · Android', 'UC Browser · Android'],
  [
    `Mozilla/5.0 (Linux; Android 12; HarmonyOS; NOH-AN00) ${WEBKIT} Chrome/99.0 HuaweiBrowser/14.0.0.301 Mobile Safari/537.36`,
    '华为浏览器 · HarmonyOS',
    'Huawei Browser · HarmonyOS',
  ],
  [
    'Mozilla/5.0 (Phone; OpenHarmony 5.0) AppleWebKit/537.36 Chrome/114.0.0.0 ArkWeb/4.1.6.1 Mobile',
    'Chrome · HarmonyOS',
  ],
  [`${ANDROID} XiaoMi/MiuiBrowser/18.4.81`, '小米浏览器 · Android', 'Mi Browser · Android'],
  ['Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)', 'Googlebot'],
]

const UNKNOWN = [
  undefined,
  '',
  '   ',
  'x',
  'curl/8.5.0',
  '<b>Evil</b>/1.0 (x)',
  '"><script>alert(1)</script>/1 ',
  'constructor/1 __proto__/2',
  '\u0000\uD800\u202e',
  `${'a/'.repeat(50_000)} Chrome/1`,
  '('.repeat(100_000),
]

const names = await loadDeviceNames()
const languages = createLanguages({ PAGE_LANGUAGE: 'zh-CN', APP_NAME: 'Portal' }, {})
const [zh, en] = [languages.get('zh-CN') ?? assert.fail(), languages.get('en') ?? assert.fail()]

test('a device is named after its browser and operating system, in the language of the page', () => {
  for (const [userAgent, inChinese, inEnglish = inChinese] of DEVICES) {
    assert.equal(names(zh, userAgent), inChinese, userAgent)
    assert.equal(names(en, userAgent), inEnglish, userAgent)
  }
})

test('a user agent that is not a known browser is shown as an unknown device, without any of its text', () => {
  for (const userAgent of UNKNOWN) assert.equal(names(zh, userAgent), '未知设备', `${userAgent}`)
})

test('the user agent determines whether a device is a phone, a tablet, a computer or unknown', () => {
  const rows: [userAgent: string | undefined, kind: string][] = [
    [WINDOWS, 'computer'],
    ['Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15', 'computer'],
    ['Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) AppleWebKit/537.36', 'computer'],
    ['Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0', 'computer'],
    [ANDROID, 'phone'],
    [IPHONE, 'phone'],
    ['Mozilla/5.0 (Phone; OpenHarmony 5.0) AppleWebKit/537.36 Chrome/114.0.0.0 ArkWeb/4.1.6.1 Mobile', 'phone'],
    [IPHONE.replace('iPhone;', 'iPad;'), 'tablet'],
    [ANDROID.replace(' Mobile', ''), 'tablet'],
    ['Mozilla/5.0 (Tablet; OpenHarmony 5.0) AppleWebKit/537.36 Chrome/114.0.0.0 ArkWeb/4.1.6.1', 'tablet'],
    ['curl/8.9.1', 'unknown'],
    ['', 'unknown'],
    [undefined, 'unknown'],
  ]
  for (const [userAgent, kind] of rows) assert.equal(deviceKind(userAgent), kind, String(userAgent))
})
