// How Chinese is written in every sentence that people read: in the table, in the rows of the settings, on the pages of the
// development provider and in docs/zh-CN.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { suite, test } from 'node:test'
import { type Row, SETTINGS } from '../../src/config/settings.ts'
import { fill } from '../../src/text/placeholders.ts'
import { TABLES } from '../../src/text/text.ts'

const HAN = '\\p{Script=Han}'
const ROOT = new URL('../../', import.meta.url)

/** Text by where it is. */
type Texts = readonly (readonly [where: string, text: string])[]

const table: Texts = Object.entries(TABLES['zh-CN'])
const settings: Texts = Object.entries<Row<unknown>>(SETTINGS).map(([name, row]) => [name, row.descriptionZh ?? ''])

/** Lines without code, addresses of links and markup. */
function linesOf(path: string): Texts {
  const text = readFileSync(new URL(path, ROOT), 'utf8').replaceAll(/^```[\s\S]*?^```/gm, '')
  return text.split('\n').map((line, n) => [`${path}:${n + 1}`, line.replaceAll(/\]\([^)]*\)/g, ']')] as const)
}

const pages: Texts = [
  ...readdirSync(new URL('docs/zh-CN', ROOT)).flatMap(name => linesOf(`docs/zh-CN/${name}`)),
  ...linesOf('README.zh-CN.md'),
]
const developmentProvider = linesOf('src/dev-provider/words.ts').filter(([, line]) => /\p{Script=Han}/u.test(line))

/** Wrong variants of our terms, each with the one that we use. */
const TERMS: Readonly<Record<string, string>> = {
  你: '您',
  在线用户: '会话',
  在线会话: '会话',
  登出: '退出登录',
  注销: '退出登录',
  'access token': '访问令牌',
  存取令牌: '访问令牌',
  颁发: '签发',
  发放: '签发',
  吊销: '撤销',
  刷新token: '刷新令牌',
  登录服务: '身份认证平台',
  身份提供者: '身份认证平台',
  身份提供商: '身份认证平台',
  身份平台: '身份认证平台',
  登录强度: '认证级别',
  需要注意: '警告',
  令牌刷新: '令牌续期',
  帐号: '账号',
  帐户: '账号',
  缺省: '默认',
  如果一直这样: '如果问题持续出现',
  连不上: '无法连接',
  打不开: '无法打开',
  不在了: '已结束',
}

function refuse(texts: Texts, pattern: RegExp, why: string): void {
  const found = texts.filter(([, text]) => pattern.test(text)).map(([where, text]) => `${where}: ${text}`)
  assert.deepEqual(found, [], why)
}

suite('Chinese sentences', () => {
  const sentences = [...table, ...settings]
  const everything = [...sentences, ...pages, ...developmentProvider]

  test('Chinese sentences use one term for one thing and address users as 您', () => {
    for (const [wrong, right] of Object.entries(TERMS))
      refuse(everything, new RegExp(wrong, 'i'), `the term is ${right}`)
  })

  test('Chinese sentences have full-width punctuation between and after Chinese characters', () => {
    refuse(everything, new RegExp(`${HAN}[,;:?!()]${HAN}`, 'u'), 'half-width punctuation between Chinese characters')
    refuse(sentences, new RegExp(`${HAN}[,.;:?!](?=\\s|$)`, 'u'), 'half-width punctuation after a Chinese character')
    refuse(sentences, new RegExp(`[（(][^（）()]*${HAN}[^（）()]*\\)`, 'u'), 'half-width brackets around Chinese')
    refuse(everything, /[，。：；、？！（）] [^`<[*|]/u, 'a space after full-width punctuation')
  })

  test('Chinese sentences have a space between Chinese and Latin letters or digits', () => {
    // Where a value is put in, its words decide: a rule, a page or a range has Chinese ones.
    const touches = new RegExp(`${HAN}[A-Za-z0-9]|[A-Za-z0-9]${HAN}`, 'u')
    refuse(everything, touches, 'no space between Chinese and Latin')
    const code = new RegExp(`${HAN}\`|\`${HAN}`, 'u')
    const withoutChineseCode = [...settings, ...pages].map(
      ([where, text]) => [where, text.replaceAll(/`[^`]*\p{Script=Han}[^`]*`/gu, '')] as const,
    )
    refuse(withoutChineseCode, code, 'no space between Chinese and code')
  })

  test('Chinese sentences have spaces around a Latin value and none around a Chinese one', () => {
    const button = (name: string) => fill(TABLES['zh-CN']['login.button'], 'zh-CN', { name }).join('')
    assert.equal(button('GitHub'), '使用 GitHub 登录')
    assert.equal(button('飞书'), '使用飞书登录')
    assert.equal(button('飞书 Lark'), '使用飞书 Lark 登录')
    assert.equal(fill('Sign in with {name}', 'en', { name: '飞书' }).join(''), 'Sign in with 飞书')
  })
})
