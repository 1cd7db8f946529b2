// The kinds of values that settings have: how each is checked, and how an error describes it.
import { accessSync, constants, readFileSync, statSync } from 'node:fs'
import { isIP } from 'node:net'
import { dirname } from 'node:path'
import { z } from 'zod'
import { isFixedRoute } from '../paths.ts'
import { plainName } from '../util/header-names.ts'
import { Networks, readNetworks } from './networks.ts'
import { Secret } from './secret.ts'

export interface Kind<T> {
  /** The type of the value in options of the library. In the environment it is text. */
  readonly type: OptionType<T>
  /** Parses it from text. */
  readonly check: z.ZodType<T, string>
  /** Whether an object is a possible result of `check`; only kinds whose values are objects have it. */
  readonly isValue?: (value: object) => boolean
  readonly expected: string
  /** `expected` in Chinese. */
  readonly expectedZh?: string
  readonly example: string
  /** Never shown. */
  readonly secret?: true
  /** Whether the file is read or written, if the value is the path of one. */
  readonly file?: 'read' | 'written'
}

export type OptionType<T> = [T] extends [number | undefined]
  ? 'number'
  : [T] extends [boolean | undefined]
    ? 'boolean'
    : 'string'

/** A setting. */
export interface Row<T> extends Kind<T> {
  /** The text that applies when nothing is set. Without a default, the value is `undefined`. */
  readonly default?: string
  /** For the documentation: a default that depends on other settings. */
  readonly defaultNote?: string
  readonly description: string
  /** `description` in Chinese, with the same markup. */
  readonly descriptionZh: string
  /** A changed value applies after a reload; without this, after a restart. */
  readonly reloads?: true
}

const urlOf = z
  .string()
  .refine(text => URL.canParse(text))
  .transform(text => new URL(text))
  .refine(url => url.protocol === 'http:' || url.protocol === 'https:')
  .refine(url => url.username === '' && url.password === '' && url.search === '' && url.hash === '')

/** Without the slash at the end, so that a path can be added. */
const addressOf = urlOf.transform(url => url.href.replace(/\/+$/, ''))
const originSchema = urlOf.refine(url => url.pathname === '/').transform(url => url.origin)

export const origin = {
  type: 'string' as const,
  check: originSchema,
  expected: 'an http or https address without a path',
  expectedZh: 'http 或 https 地址，不含路径',
  example: 'https://app.example.com',
}

export const address = {
  type: 'string' as const,
  check: addressOf,
  expected: 'an http or https address without a query',
  expectedZh: 'http 或 https 地址，不含查询参数',
  example: 'https://idp.example.com',
}

/** HTTP/2 without TLS, as gRPC servers speak it. It is written like an http address. */
const h2cOrigin = z
  .string()
  .regex(/^h2c:\/\//i)
  .transform(text => text.replace(/^h2c:/i, 'http:'))
  .pipe(originSchema)
  .transform(origin => origin.replace(/^http:/, 'h2c:'))

export const upstream = {
  type: 'string' as const,
  check: z.union([originSchema, h2cOrigin, z.string().regex(/^unix:\/.+$/)]),
  expected: 'an http, https or h2c address without a path, or unix:/path/of/socket',
  expectedZh: 'http、https 或 h2c 地址，不含路径，或 unix:/path/of/socket',
  example: 'http://127.0.0.1:8080',
}

export const store = {
  type: 'string' as const,
  check: z.string().regex(/^(memory:|sqlite:.*[^/]|rediss?(\+(sentinel|cluster))?:\/\/.+)$/),
  expected:
    'memory:, sqlite:FILE, redis://…, redis+sentinel://… or redis+cluster://…, with rediss in place of redis for TLS',
  expectedZh:
    'memory:、sqlite:FILE、redis://…、redis+sentinel://… 或 redis+cluster://…，使用 TLS 时以 rediss 代替 redis',
  example: 'sqlite:./data/menshen.db',
}

export const pathOrAddress = {
  type: 'string' as const,
  check: z.string().refine(text => /^\/(?!\/)/.test(text) || urlOf.safeParse(text.replace(/\?.*$/, '')).success),
  expected: 'a path at the provider, or a whole address',
  expectedZh: '身份认证平台上的路径，或完整的地址',
  example: '/public/sp/slo/APP_ID',
}

/** A path of Menshen: plain, so that browsers, rules and cookies read it in the same way. */
export function ownPath(example: string) {
  return {
    type: 'string' as const,
    check: z
      .string()
      .max(200)
      .regex(/^(?:\/[\w~-][\w.~-]*)+$/)
      .refine(path => !isFixedRoute(path)),
    expected:
      'a path of letters, digits, dots and dashes that begins with / and does not end with it, without a query or a pattern, other than / and the other routes of Menshen',
    expectedZh:
      '以 / 开头、不以 / 结尾的路径，由字母、数字、点和短横线组成，不含查询参数和通配符，且不是 / 或门神的其他路径',
    example,
  }
}

export const port = wholeNumber(1, 65535, 'a port')

export const yesOrNo = {
  type: 'boolean' as const,
  check: z.enum(['true', 'false']).transform(text => text === 'true'),
  expected: 'true or false',
  expectedZh: 'true 或 false',
  example: 'true',
}

export const host = {
  type: 'string' as const,
  check: z.string().refine(text => isIP(text) !== 0 || /^[a-z\d]([a-z\d.-]*[a-z\d])?$/i.test(text)),
  expected: 'an address or a name of this machine, without a scheme or a port',
  expectedZh: '本机的地址或名称，不含协议和端口',
  example: '0.0.0.0',
}

export const headerName = {
  type: 'string' as const,
  check: z
    .string()
    .regex(/^x-[a-z\d-]+$/i)
    .transform(text => text.toLowerCase()),
  expected: 'the name of a header that begins with X-, of letters, digits and dashes',
  expectedZh: '以 X- 开头的请求头名称，由字母、数字和短横线组成',
  example: 'X-Forwarded-User',
}

export const headerNameOrNone = {
  ...headerName,
  check: z.union([z.literal('none'), headerName.check]),
  expected: `${headerName.expected}, or none`,
  expectedZh: `${headerName.expectedZh}，或 none`,
}

const secretOf = z
  .string()
  .regex(/\S/)
  .transform(text => new Secret(text))

export const secret = {
  type: 'string' as const,
  isValue: isSecret,
  check: secretOf,
  expected: 'the secret that the provider gave to this application',
  expectedZh: '身份认证平台给此应用的密钥',
  example: 'a-long-random-string',
  secret: true as const,
}

const fileText = z.string().transform((path, context) => {
  try {
    // A pipe may have no writer: reading it would wait for one.
    if (!statSync(path).isFIFO()) return readFileSync(path, 'utf8').trim()
  } catch {
    // Reported below.
  }
  context.addIssue('unreadable')
  return z.NEVER
})

/** Why a file cannot be read; `undefined` if it can. A pipe is not read, because it may have no writer. */
export function fileProblem(path: string): Record<'en' | 'zh', string> | undefined {
  try {
    const stats = statSync(path)
    if (!stats.isFile()) return { en: 'is not a file', zh: '不是文件' }
    accessSync(path, constants.R_OK)
    const { size } = stats
    const isEmpty = size === 0 || (size < MAX_BLANK_CHECK_BYTES && readFileSync(path, 'utf8').trim() === '')
    return isEmpty ? { en: 'is empty', zh: '是空文件' } : undefined
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return code === 'ENOENT'
      ? { en: 'is missing', zh: '文件不存在' }
      : { en: `cannot be read (${code})`, zh: `无法读取（${code}）` }
  }
}

/** A longer file is not checked for being blank. */
const MAX_BLANK_CHECK_BYTES = 65_536

export const secretFile = {
  type: 'string' as const,
  file: 'read' as const,
  isValue: isSecret,
  check: fileText.pipe(secretOf),
  expected: 'the path of a readable file that is not empty',
  expectedZh: '可读且非空的文件路径',
  example: '/run/secrets/client_secret',
  secret: true as const,
}

/** A file with several lines contains something else, for example an old secret besides the new one. */
export const secretLineFile = {
  ...secretFile,
  check: fileText.pipe(z.string().regex(/^[^\r\n]*$/)).pipe(secretOf),
  expected: 'the path of a readable file with the secret on one line',
  expectedZh: '可读的文件路径，密钥在文件中只占一行',
}

const MIN_SECRET_LENGTH = 32

const secretsOf = z
  .string()
  .transform(text => [
    ...new Set(
      text
        .split(/[,\r\n]+/)
        .map(part => part.trim())
        .filter(Boolean),
    ),
  ])
  .transform(texts => texts.map(text => new Secret(text)))
  .refine(secrets => secrets.length > 0 && secrets.every(isLongEnough))

function isLongEnough(secret: Secret): boolean {
  return [...secret.reveal()].length >= MIN_SECRET_LENGTH
}

function isSecret(value: object): boolean {
  return value instanceof Secret
}

function isSecretList(value: object): boolean {
  return Array.isArray(value) && value.length > 0 && value.every(part => part instanceof Secret && isLongEnough(part))
}

export const secrets = {
  type: 'string' as const,
  isValue: isSecretList,
  check: secretsOf,
  expected: `one or more secrets of at least ${MIN_SECRET_LENGTH} characters, separated by commas or lines`,
  expectedZh: `一个或多个密钥，每个至少 ${MIN_SECRET_LENGTH} 个字符，用逗号或换行分隔`,
  example: 'the output of openssl rand -base64 32',
  secret: true as const,
}

export const secretsFile = {
  type: 'string' as const,
  file: 'read' as const,
  isValue: isSecretList,
  check: fileText.pipe(secretsOf),
  expected: `the path of a readable file with secrets of at least ${MIN_SECRET_LENGTH} characters, one per line`,
  expectedZh: `可读的文件路径，每行一个密钥，每个至少 ${MIN_SECRET_LENGTH} 个字符`,
  example: '/run/secrets/menshen_secret',
  secret: true as const,
}

export const readableFile = {
  type: 'string' as const,
  file: 'read' as const,
  check: z.string().refine(path => fileText.safeParse(path).success),
  expected: 'the path of a readable file',
  expectedZh: '可读的文件路径',
  example: '/etc/menshen/file.pem',
}

export const appendableFile = {
  type: 'string' as const,
  file: 'written' as const,
  check: z.string().refine(isAppendable),
  expected: 'the path of a file that this user can write to, or can create in an existing folder',
  expectedZh: '当前用户可写的文件路径，或可在已有目录中创建的文件路径',
  example: '/var/log/menshen/audit.jsonl',
}

/** Checks without creating it, because the user who checks the settings may not be the one who will write. */
function isAppendable(path: string): boolean {
  try {
    const status = statSync(path, { throwIfNoEntry: false })
    accessSync(status ? path : dirname(path), status ? constants.W_OK : constants.W_OK | constants.X_OK)
    return status ? !status.isDirectory() : !path.endsWith('/')
  } catch {
    return false
  }
}

export const networks = {
  type: 'string' as const,
  isValue: isNetworks,
  check: z.string().transform((text, context) => {
    const networks = readNetworks(text)
    if (!('wrong' in networks)) return networks
    context.addIssue(networks.wrong)
    return z.NEVER
  }),
  expected: 'addresses or networks, separated by commas',
  expectedZh: '地址或网段，用逗号分隔',
  example: '127.0.0.1,10.0.0.0/8',
}

export const networksOrNone = {
  type: 'string' as const,
  isValue: isNetworks,
  check: z.union([z.literal('none'), networks.check]),
  expected: 'addresses or networks, separated by commas, or none',
  expectedZh: '地址或网段，用逗号分隔，或 none',
  example: '127.0.0.1,10.1.2.3',
}

export const assignments = {
  type: 'string' as const,
  isValue: (value: object) => value.constructor === Object,
  check: z.string().transform((text, context) => {
    const pairs = text.split(/[\s,]+/).filter(Boolean)
    if (pairs.every(pair => /^\w+=.+$/.test(pair))) return Object.fromEntries(pairs.map(splitPair))
    context.addIssue('no pairs')
    return z.NEVER
  }),
  expected: 'pairs of name=value, separated by commas',
  expectedZh: 'name=value 形式的赋值，用逗号分隔',
  example: 'realm=staff',
}

function isNetworks(value: object): boolean {
  return value instanceof Networks
}

function splitPair(pair: string): [name: string, value: string] {
  const equals = pair.indexOf('=')
  return [pair.slice(0, equals), pair.slice(equals + 1)]
}

export const audience: Kind<string> = text('what the application calls itself, at most 200 characters', 'wiki', 200)

export const audiences = {
  type: 'string' as const,
  isValue: (value: object) => Array.isArray(value),
  check: z
    .string()
    .transform(text =>
      text
        .split(',')
        .map(name => name.trim())
        .filter(Boolean),
    )
    // A wildcard would match no token.
    .pipe(
      z
        .array(
          z
            .string()
            .max(200)
            .regex(/^[^*]+$/),
        )
        .min(1),
    ),
  expected: 'whole names of audiences, separated by commas',
  expectedZh: '受众的完整名称，用逗号分隔',
  example: 'https://api.example.com,my-application',
}

export function text(expected: string, example: string, maxLength = 1000): Kind<string> {
  const expectedZh = `不超过 ${maxLength} 个字符的文字`
  return { type: 'string', check: z.string().max(maxLength).regex(/\S/), expected, expectedZh, example }
}

const EMAIL = /^[\w.+-]{1,64}@[a-z\d](?:[a-z\d.-]{0,251}[a-z\d])?$/i

/** Kept as written, because a page turns it into a link. */
export const contact: Kind<string> = {
  type: 'string',
  check: z
    .string()
    .max(1000)
    .refine(text => EMAIL.test(text) || isWebAddress(text)),
  expected: 'an e-mail address, or an http or https address',
  expectedZh: '邮箱地址，或 http、https 地址',
  example: 'helpdesk@example.com',
}

function isWebAddress(text: string): boolean {
  if (!/^https?:\/\/[^\s]+$/i.test(text) || !URL.canParse(text)) return false
  const { username, password } = new URL(text)
  return username === '' && password === ''
}

export const pageLanguage: Kind<string> = {
  type: 'string',
  check: z.string().regex(/^[a-zA-Z\d-]{2,35}$/),
  expected: 'zh-CN, en, auto, or a name from languages in the configuration',
  expectedZh: 'zh-CN、en、auto，或配置中 languages 的名称',
  example: 'en',
}

export function oneOf<const T extends string>(values: readonly [T, ...T[]], example: T) {
  const last = values.at(-1)
  return {
    type: 'string' as const,
    check: z.enum(values),
    expected: `${values.slice(0, -1).join(', ')} or ${last}`,
    expectedZh: `${values.slice(0, -1).join('、')} 或 ${last}`,
    example,
  }
}

export function wholeNumber(min: number, max: number, what: string) {
  return {
    type: 'number' as const,
    check: z
      .string()
      .regex(/^\d{1,9}$/)
      .transform(Number)
      .pipe(z.number().min(min).max(max)),
    expected: `${what} from ${min} to ${max}`,
    expectedZh: `${min} 到 ${max} 的整数`,
  }
}

const HEADER_NAME = /^[\w!#$%&'+.^`|~-]+\*?$/

export const headerNames = {
  type: 'string' as const,
  isValue: (value: object) => Array.isArray(value),
  check: z
    .string()
    .transform(text => text.split(/[\s,]+/).filter(Boolean))
    .pipe(z.array(z.string().regex(HEADER_NAME)))
    .transform(names => names.map(name => (name.endsWith('*') ? `${plainName(name.slice(0, -1))}*` : plainName(name)))),
  expected: 'names of headers, separated by commas; a * at the end matches every name that starts with it',
  expectedZh: '请求头名称，用逗号分隔；末尾的 * 表示所有以此开头的名称',
  example: 'x-company-user,x-internal-*',
}
