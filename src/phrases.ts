// What operators read in more than one language: one row per sentence, with both languages side by side. Code carries a
// phrase (a stable code and its values) to the place where it is shown, and only there it becomes a sentence.
import { type ErrorCode, MenshenError } from './errors.ts'
import { EVENTS } from './events.ts'

export interface PhraseRow {
  readonly en: string
  readonly zh: string
}

export type PhraseCode = keyof typeof PHRASES

type PhraseValue = string | number | Phrase

export interface Phrase {
  readonly code: PhraseCode
  readonly values: Readonly<Record<string, PhraseValue>>
}

type PlaceholdersIn<Text> = Text extends `${string}{${infer Name}}${infer Rest}` ? Name | PlaceholdersIn<Rest> : never

type ValuesOf<K extends PhraseCode> = [PlaceholdersIn<(typeof PHRASES)[K]['en']>] extends [never]
  ? []
  : [values: Readonly<Record<PlaceholdersIn<(typeof PHRASES)[K]['en']>, PhraseValue>>]

export function isPhraseCode(code: string): code is PhraseCode {
  return Object.hasOwn(PHRASES, code)
}

export function phrase<K extends PhraseCode>(code: K, ...[values]: ValuesOf<K>): Phrase {
  return { code, values: values ?? {} }
}

/** Text that has no language, or whose language is not ours to choose: a version, an address, an answer of somebody else. */
export function quoted(text: string): Phrase {
  return phrase('quoted', { text })
}

/** `sentenceFor` gives the sentence of a code in some language. */
export function renderPhrase({ code, values }: Phrase, sentenceFor: (code: PhraseCode) => string): string {
  return sentenceFor(code).replace(/\{(\w+)\}/g, (placeholder, name: string) => {
    const value = values[name]
    if (value === undefined) return placeholder
    return typeof value === 'object' ? renderPhrase(value, sentenceFor) : String(value)
  })
}

/** An error of ours whose sentence exists in both languages. Its message is the English one, as in the log. */
export function phrasedError(code: ErrorCode, said: Phrase, cause?: unknown): MenshenError {
  return new MenshenError(code, phraseIn('en', said), cause, said)
}

/** What `phrasedError` was given. An error does not name the type, so that the types of all sentences stay out of the package. */
export function phraseOf(error: MenshenError): Phrase | undefined {
  return error.phrase as Phrase | undefined
}

/** The languages that the command speaks. */
export type OperatorLanguage = 'zh-CN' | 'en'

export function phraseIn(language: OperatorLanguage, given: Phrase): string {
  return renderPhrase(given, code => PHRASES[code][language === 'zh-CN' ? 'zh' : 'en'])
}

type PhraseTable<Language extends keyof PhraseRow> = {
  readonly [K in PhraseCode as `phrase.${K}`]: (typeof PHRASES)[K][Language]
}

/** All of them in one language, by the names that they have among the words of the pages. */
export function phraseTable<Language extends keyof PhraseRow>(language: Language): PhraseTable<Language> {
  const rows = Object.entries(PHRASES).map(([code, row]) => [`phrase.${code}`, row[language]])
  return Object.fromEntries(rows)
}

/** What a check looked at, in words. Its name stays the same in every language; what is not known of it is left as it is. */
export function checkLabel(name: string, sentenceFor: (code: PhraseCode) => string): string {
  const known = (word: string) => {
    const code = `name_${word.replaceAll(/[ -]/g, '_')}`
    return isPhraseCode(code) ? sentenceFor(code) : undefined
  }
  const whole = known(name)
  if (whole !== undefined) return whole
  const [area = '', ...rest] = name.split(' ')
  // `provider staff redirect address`: the last words that are known say what, those before them which.
  for (let which = 0; which < rest.length; which++) {
    const what = known(rest.slice(which).join(' '))
    if (what !== undefined) return [[known(area) ?? area, ...rest.slice(0, which)].join(' '), what].join(' · ')
  }
  return [known(area) ?? area, ...rest].join(' ')
}

const RENEW = 'Put a new certificate into TLS_CERT_FILE: it is read again when it changes.'

/** In the order of the topics that use them. Both languages of a row have the same values. */
export const PHRASES = {
  quoted: { en: '{text}', zh: '{text}' },
  two: { en: '{one}; {other}', zh: '{one}；{other}' },
  one_and_other: { en: '{one} and {other}', zh: '{one} 和 {other}' },
  one_or_other: { en: '{one} (or {other})', zh: '{one}（或 {other}）' },
  with_remedy: { en: '{seen} → {remedy}', zh: '{seen} → {remedy}' },
  with_cause: { en: '{seen}: {cause}', zh: '{seen}：{cause}' },

  finding_line: { en: '{what}: {seen}', zh: '{what}：{seen}' },
  findings_count: {
    en: '{good} good, {warnings}, {failures}',
    zh: '{good} 项正常，{warnings}，{failures}',
  },
  warnings_count: { en: '{count} warnings', zh: '{count} 项需要注意' },
  one_warning: { en: '1 warning', zh: '1 项需要注意' },
  failures_count: { en: '{count} failures', zh: '{count} 项故障' },
  one_failure: { en: '1 failure', zh: '1 项故障' },

  // What is looked at
  name_settings: { en: 'settings', zh: '设置' },
  name_configuration: { en: 'configuration', zh: '配置文件' },
  name_cookies: { en: 'cookies', zh: 'Cookie' },
  name_certificate: { en: 'certificate', zh: '证书' },
  name_provider: { en: 'provider', zh: '身份认证平台' },
  name_upstream: { en: 'upstream', zh: '后端应用' },
  name_store: { en: 'store', zh: '存储' },
  name_store_keys: { en: 'store keys', zh: '存储 · 密钥' },
  name_redis: { en: 'redis', zh: 'Redis' },
  name_proxy: { en: 'proxy', zh: '反向代理' },
  name_time: { en: 'time', zh: '本机时间' },
  name_reload: { en: 'reload', zh: '重新加载' },
  name_sign_in: { en: 'sign-in', zh: '试登录' },
  name_dns: { en: 'dns', zh: '域名解析' },
  name_connection: { en: 'connection', zh: '连接' },
  name_tls: { en: 'tls', zh: 'TLS 证书' },
  name_login: { en: 'login', zh: '登录路径' },
  name_discovery: { en: 'discovery', zh: '自动发现' },
  name_demands: { en: 'demands', zh: '平台要求' },
  name_keys: { en: 'keys', zh: '公钥' },
  name_client: { en: 'client', zh: '客户端凭据' },
  name_redirect_address: { en: 'redirect address', zh: '回调地址' },
  name_clock: { en: 'clock', zh: '时钟' },
  name_kind: { en: 'kind', zh: '类型' },
  name_latency: { en: 'latency', zh: '延迟' },
  name_version: { en: 'version', zh: '版本' },
  name_eviction_policy: { en: 'eviction policy', zh: '淘汰策略' },
  name_persistence: { en: 'persistence', zh: '持久化' },
  name_host: { en: 'host', zh: 'Host' },
  name_proto: { en: 'proto', zh: '协议' },
  name_client_address: { en: 'client address', zh: '客户端地址' },
  name_upgrade: { en: 'upgrade', zh: 'WebSocket' },
  name_refresh: { en: 'refresh', zh: '续期' },

  // Any probe
  no_answer_within: { en: 'no answer within {ms} ms', zh: '{ms} 毫秒内没有结果' },
  look_and_try_again: {
    en: 'Look at what it waits for, and try again.',
    zh: '请检查它在等待什么，然后重试。',
  },
  failed_unexpectedly: { en: 'it failed unexpectedly ({code})', zh: '检查时发生意外错误（{code}）' },
  see_and_try_again: { en: 'See what stands here, and try again.', zh: '请根据检查结果处理后重试。' },
  in_no_time: { en: 'no answer in time', zh: '超时' },
  correct_it: { en: 'Correct it as it says.', zh: '请按提示修改。' },

  // Errors of calls to a provider
  no_whole_answer: { en: 'no whole answer within {ms} ms', zh: '{ms} 毫秒内没有收到完整的响应' },
  no_connection_made: { en: 'no connection ({code})', zh: '无法连接（{code}）' },
  connection_broke: { en: 'the connection broke ({code})', zh: '连接中断（{code}）' },
  answer_broke: {
    en: 'the connection broke in the midst of the answer',
    zh: '响应没有传完，连接就中断了',
  },
  answer_too_large: { en: 'the answer is larger than {bytes} bytes', zh: '响应超过了 {bytes} 字节' },
  answer_not_json: { en: 'the answer is not JSON', zh: '响应不是 JSON' },
  answer_unusable: { en: 'unusable in the answer: {fields}', zh: '响应中无法使用的字段：{fields}' },
  the_whole: { en: 'the whole', zh: '整个响应' },
  answer_no_success: { en: 'the answer is no success: {wrong}', zh: '响应表示失败：{wrong}' },
  provider_answered: { en: 'the provider answered {status}', zh: '身份认证平台返回了 {status}' },
  provider_answered_with: {
    en: 'the provider answered {status} with {error}',
    zh: '身份认证平台返回了 {status}，错误码为 {error}',
  },
  tokens_bound_to_key: {
    en: 'the tokens are bound to a key (DPoP), and DPOP is not on',
    zh: '令牌与密钥绑定（DPoP），但没有开启 DPOP',
  },
  tokens_not_bound: {
    en: 'DPOP is on, and the provider gave a token that is not bound to the key (token_type is not DPoP)',
    zh: 'DPOP 已开启，但身份认证平台签发的令牌没有与密钥绑定（token_type 不是 DPoP）',
  },
  mutual_tls_needs_https: {
    en: 'the client proves itself by a certificate, and the provider has an http address: a certificate needs https',
    zh: '客户端以证书认证，而身份认证平台的地址是 http：使用证书必须是 https',
  },
  no_push_endpoint: {
    en: 'authorization requests are to be pushed (PAR), and the provider has no address for that (pushed_authorization_request_endpoint)',
    zh: '需要推送授权请求（PAR），但身份认证平台没有对应的地址（pushed_authorization_request_endpoint）',
  },
  push_answered: {
    en: 'the pushed authorization request (PAR) was answered with {status} instead of 201',
    zh: '推送授权请求（PAR）返回了 {status}，应为 201',
  },
  push_answered_with: {
    en: 'the pushed authorization request (PAR) was answered with {status} and {error}',
    zh: '推送授权请求（PAR）返回了 {status}，错误码为 {error}',
  },
  push_unusable: {
    en: 'unusable in the answer to the pushed authorization request (PAR): {fields}',
    zh: '推送授权请求（PAR）的响应中无法使用的字段：{fields}',
  },
  no_such_endpoint: { en: 'the provider has no {name} address', zh: '身份认证平台没有 {name} 地址' },
  keys_unusable: {
    en: 'the published keys cannot be used (status {status})',
    zh: '公布的公钥无法使用（状态码 {status}）',
  },
  user_info_of_another: {
    en: 'user info is of another sub than the id_token',
    zh: '用户信息中的 sub 与 id_token 不一致',
  },
  not_a_member: {
    en: 'the user who brought the code is not a member of the company',
    zh: '登录的人不是企业成员',
  },
  not_required: { en: 'not one of those whom require.{name} lets in', zh: '不在 require.{name} 允许的范围内' },
  name_of_machine: {
    en: 'the {field} begins with {prefix}, as only those of machines in the configuration do',
    zh: '{field} 以 {prefix} 开头，这是配置中的机器专用的名称',
  },
  field_missing: {
    en: 'no {field} (looked for in {places}); what came is {seen}',
    zh: '没有取到 {field}（查找的位置：{places}）；平台返回的是 {seen}',
  },
  field_unverified: {
    en: 'no {field} (looked for in {places}); the e-mail address is not verified ({claims}); what came is {seen}',
    zh: '没有取到 {field}（查找的位置：{places}）；邮箱未经验证（{claims}）；平台返回的是 {seen}',
  },
  nowhere: { en: 'nowhere', zh: '无' },

  // What the provider signed
  token_invalid: { en: 'the {token} is not valid: {claim}', zh: '{token} 无效：{claim}' },
  token_invalid_why: { en: 'the {token} is not valid: {claim} ({why})', zh: '{token} 无效：{claim}（{why}）' },
  the_logout_token: { en: 'logout token', zh: '登出令牌' },
  the_user_info: { en: 'user info', zh: '用户信息' },
  token_expired: {
    en: "it expired {seconds} s ago: the clock of this machine is ahead of the provider's, or the provider's is behind",
    zh: '已过期 {seconds} 秒：本机时钟偏快，或平台时钟偏慢',
  },
  token_from_future: {
    en: "it is {seconds} s ahead: the clock of this machine is behind the provider's, or the provider's is ahead",
    zh: '超前 {seconds} 秒：本机时钟偏慢，或平台时钟偏快',
  },
  claim_missing: { en: 'it is missing', zh: '缺失' },
  signature_does_not_fit: { en: 'it does not fit the published keys', zh: '与公布的公钥不匹配' },
  key_not_published: {
    en: 'the provider does not publish the key that signed it',
    zh: '平台没有公布签名所用的公钥',
  },
  several_keys_fit: {
    en: 'several published keys fit, and it has no kid that says which signed it',
    zh: '有多个公钥匹配，而令牌没有用 kid 指明是哪一个',
  },
  signed_by_secret: {
    en: 'it is signed by {algorithm}, with a secret that both know: set RS256 or ES256 for this client at the provider',
    zh: '签名算法是 {algorithm}，使用双方共享的密钥：请在平台上为此客户端设置 RS256 或 ES256',
  },
  not_signed: {
    en: 'it is not signed: set RS256 or ES256 for this client at the provider',
    zh: '没有签名：请在平台上为此客户端设置 RS256 或 ES256',
  },
  signed_by_other: {
    en: "it is signed by {algorithm}, which the provider's metadata does not list or Menshen does not take",
    zh: '签名算法是 {algorithm}，平台的元数据没有列出，或门神不支持',
  },
  an_unknown_algorithm: { en: 'an unknown algorithm', zh: '未知算法' },
  token_encrypted: {
    en: 'it is encrypted, which Menshen does not take: turn encryption off for this client at the provider',
    zh: '内容已加密，门神不支持：请在平台上为此客户端关闭加密',
  },
  discovery_answered: { en: 'discovery answered {status}', zh: '自动发现返回了 {status}' },
  discovery_unusable: {
    en: 'unusable in the discovery document: {fields}',
    zh: '自动发现文档中无法使用的字段：{fields}',
  },
  discovery_other_issuer: {
    en: 'the discovery document is of another issuer: it says {said}, expected {expected}',
    zh: '自动发现文档属于另一个 issuer：文档中是 {said}，应为 {expected}',
  },
  discovery_other_origin: {
    en: 'discovery leads to another origin: {origin}',
    zh: '自动发现跳转到了另一个站点：{origin}',
  },
  discovery_not_json: { en: 'the discovery document is not JSON', zh: '自动发现文档不是 JSON' },
  discovery_not_json_but: {
    en: 'the discovery document is not JSON but {type}',
    zh: '自动发现文档不是 JSON，而是 {type}',
  },
  discovery_plain_http: {
    en: 'the discovery document leads to plain http',
    zh: '自动发现文档给出了明文 http 地址',
  },
  discovery_private_network: {
    en: 'the discovery document leads into a private network',
    zh: '自动发现文档给出了内网地址',
  },
  store_is_away: { en: 'The store at {name} is not available.', zh: '存储 {name} 无法访问。' },

  store_cannot_be_opened: {
    en: 'The store cannot be opened in {file}: {fault}, or name another one in STORE.',
    zh: '无法打开 {file} 中的存储：{fault}；也可以在 STORE 中指定另一个文件。',
  },
  store_fault_full: {
    en: 'the disk is full ({reason}); make room on it',
    zh: '磁盘已满（{reason}）；请腾出空间',
  },
  store_fault_read_only: {
    en: 'it cannot be written to ({reason}); let this user write to the file and its folder',
    zh: '文件不可写（{reason}）；请让当前用户能够写入该文件及其目录',
  },
  store_fault_no_access: {
    en: 'it cannot be opened ({reason}); let this user read and write the file and its folder',
    zh: '文件无法打开（{reason}）；请让当前用户能够读写该文件及其目录',
  },
  store_fault_locked: {
    en: 'another process holds its lock ({reason}); find that process, for example a sqlite3 shell, and end it',
    zh: '另一个进程一直占用着锁（{reason}）；请找到该进程（例如 sqlite3 命令行）并结束它',
  },
  store_fault_not_a_database: {
    en: 'it is not a database ({reason}); move the file away',
    zh: '该文件不是数据库（{reason}）；请移走它',
  },
  store_fault_foreign: {
    en: 'it is the database of another program ({reason}); leave it to that program',
    zh: '该文件是其他程序的数据库（{reason}）；请不要与该程序共用',
  },
  store_fault_damaged: {
    en: 'the database is damaged ({reason}); restore a backup, or move the file away to begin with an empty store',
    zh: '数据库已损坏（{reason}）；请恢复备份，或移走该文件以空的存储重新开始',
  },
  store_fault_newer_format: {
    en: 'a newer version of Menshen has written it ({reason}); start that version',
    zh: '该文件由更高版本的门神写入（{reason}）；请启动该版本',
  },
  store_fault_no_wal: {
    en: 'its file system cannot share memory between processes ({reason}); put the file on a local disk',
    zh: '文件系统不支持进程间共享内存（{reason}）；请把文件放在本地磁盘上',
  },
  store_fault_bad_path: {
    en: 'its path cannot be used ({reason}); make it a file in a folder that this user can write to',
    zh: '路径不可用（{reason}）；它应为当前用户可写的目录中的文件',
  },
  store_fault_io: {
    en: 'the disk reports an error ({reason}); check the disk and the system log',
    zh: '磁盘报告错误（{reason}）；请检查磁盘和系统日志',
  },
  store_fault_no_answer: {
    en: 'the disk does not respond ({reason}); check the disk and the system log',
    zh: '磁盘没有响应（{reason}）；请检查磁盘和系统日志',
  },
  store_fault_closed: {
    en: 'it is closed ({reason}); open it again',
    zh: '存储已关闭（{reason}）；请重新打开',
  },
  store_fault_other: {
    en: 'SQLite refuses it ({reason}); run menshen doctor',
    zh: 'SQLite 拒绝了操作（{reason}）；请运行 menshen doctor',
  },

  // Settings
  settings_good: { en: 'all of them can be used, and fit together', zh: '全部可用，且互不冲突' },
  no_such_setting: {
    en: '{name} is no setting of ours and has no effect',
    zh: '{name} 不是门神的设置，不起作用',
  },
  did_you_mean: { en: 'Did you mean {name}?', zh: '您是不是想写 {name}？' },
  see_settings_page: { en: 'docs/settings.md has all names.', zh: '全部名称见 docs/settings.md。' },
  set_secret: { en: 'Set SECRET or SECRET_FILE.', zh: '请设置 SECRET 或 SECRET_FILE。' },
  cookies_secure: { en: '__Host- and Secure, for {url} alone', zh: '带有 __Host- 前缀和 Secure 标记，仅用于 {url}' },
  cookies_loopback: {
    en: 'without Secure, because {url} is plain http; it does not leave this machine',
    zh: '没有 Secure 标记，因为 {url} 是明文 http；但请求不会离开本机',
  },
  cookies_plain: {
    en: 'without Secure, because {url} is plain http: they can be read on the way',
    zh: '没有 Secure 标记，因为 {url} 是明文 http：Cookie 在传输途中可能被读取',
  },
  use_https: {
    en: 'BASE_URL=https://…, with TLS_CERT_FILE or a proxy in front.',
    zh: '请把 BASE_URL 设为 https://…，并设置 TLS_CERT_FILE 或在前面使用代理。',
  },
  clock_never_set: { en: '{time}: the clock was never set', zh: '{time}：本机时钟从未校准' },
  set_time_by_ntp: { en: 'Set the time of this machine by NTP.', zh: '请用 NTP 校准本机时间。' },
  config_usable: { en: '{file} can be used', zh: '{file} 可用' },
  config_none: { en: 'no file, and none is needed', zh: '没有配置文件，也不需要' },

  // Remedies of advice
  advise_state_check: { en: 'STATE_CHECK=bound', zh: '设置 STATE_CHECK=bound' },
  advise_trusted_proxies: {
    en: 'TRUSTED_PROXIES with the address of the proxy in front, or TLS_CERT_FILE and TLS_KEY_FILE',
    zh: '用 TRUSTED_PROXIES 写明前面代理的地址，或设置 TLS_CERT_FILE 和 TLS_KEY_FILE',
  },
  advise_port: {
    en: "BASE_URL with the proxy's address, and PORT with another port than that, for example 3000",
    zh: '把 BASE_URL 设为代理的地址，把 PORT 设为另一个端口，例如 3000',
  },
  advise_base_url: { en: 'BASE_URL=https://…', zh: '把 BASE_URL 改为 https://…' },
  advise_node_env: {
    en: 'NODE_ENV=production or NODE_ENV=development',
    zh: '设置 NODE_ENV=production 或 NODE_ENV=development',
  },
  advise_https: { en: 'https addresses, and no ALLOW_PLAIN_HTTP', zh: '改用 https 地址，并去掉 ALLOW_PLAIN_HTTP' },
  advise_own_proxies: {
    en: 'TRUSTED_PROXIES with the addresses of the proxies alone, for example 127.0.0.1 or the network of the containers',
    zh: '在 TRUSTED_PROXIES 中只写代理的地址，例如 127.0.0.1 或容器网络',
  },
  advise_email_verified: {
    en: 'emailVerified in the configuration of a provider that is known to verify, and no ALLOW_UNVERIFIED_EMAIL',
    zh: '平台确实验证邮箱的，在配置文件中用 emailVerified 说明，并去掉 ALLOW_UNVERIFIED_EMAIL',
  },
  advise_one_provider: {
    en: 'AUTO_SIGN_IN=in-app, or a single provider: of several the user chooses on the login page',
    zh: '设置 AUTO_SIGN_IN=in-app，或只保留一个身份认证平台：有多个平台时，需要用户在登录页选择',
  },
  advise_app_provider: {
    en: 'AUTO_SIGN_IN=on, or a provider with one of the presets wecom, feishu, lark and dingtalk',
    zh: '设置 AUTO_SIGN_IN=on，或配置使用 wecom、feishu、lark、dingtalk 之一的身份认证平台',
  },
  advise_console_role: {
    en: "a row of roles with role: '{role}' and who has it",
    zh: "在 roles 中加一行 role: '{role}'，并写明授予谁",
  },
  advise_new_key: {
    en: 'a new key and its row, as {command} prints them; or remove the row',
    zh: '用 {command} 生成新密钥和对应的一行；或删除这一行',
  },
  hosts_in_metadata: { en: 'the hosts that {url} names', zh: '{url} 中列出的主机' },
  advise_require: {
    en: 'require of the provider, roles or rules that say who gets in: see docs/rules.md',
    zh: '用身份认证平台的 require、roles 或 rules 写明允许谁进入：见 docs/rules.md',
  },
  advise_developers: {
    en: "rows of roles with role: '{role}' that say who your developers are, for example by groups",
    zh: "在 roles 中用 role: '{role}' 写明谁是开发者，例如按 groups",
  },
  advise_revocation_url: {
    en: 'revocationUrl of the provider, or REVOKE=never',
    zh: '设置身份认证平台的 revocationUrl，或设置 REVOKE=never',
  },
  advise_audience: {
    en: "audience of the rule, or BEARER_AUDIENCE: the name of this API at the provider; audience: 'any' accepts introspected tokens of every client",
    zh: "设置规则的 audience 或 BEARER_AUDIENCE，即这个 API 在平台上的名称；audience: 'any' 接受任何客户端的不透明令牌",
  },
  advise_max_age: {
    en: 'two rules: one with keys, and one with maxAge for the methods or paths that need a recent sign-in',
    zh: '分成两条规则：一条写 keys，另一条为需要重新登录的方法或路径写 maxAge',
  },
  advice_bearer_without_audience: {
    en: EVENTS.bearer_without_audience.sentence,
    zh: '有规则接受访问令牌，但没有写明受众：接受颁发给本客户端或以该规则地址为受众的令牌',
  },
  advice_max_age_with_keys: {
    en: EVENTS.max_age_with_keys.sentence,
    zh: '有规则同时写了 keys 和 maxAge。maxAge 需要登录，所有密钥都会被拒绝',
  },
  advice_open_to_anyone: {
    en: EVENTS.open_to_anyone.sentence,
    zh: '公共身份认证平台上的任何账号都可以登录：配置中没有用 require、roles 或 rules 限制谁能进入',
  },
  advice_admin_is_developer: {
    en: EVENTS.admin_is_developer.sentence,
    zh: '没有配置 roles：平台上用户名为 admin 的用户就是 developer，可以查看控制台',
  },
  advice_revoke_without_address: {
    en: EVENTS.revoke_without_address.sentence,
    zh: 'REVOKE 为 always，但身份认证平台没有吊销地址：退出登录后令牌仍然有效',
  },
  advice_machine_expired: {
    en: EVENTS.machine_expired.sentence,
    zh: 'machines 中有一行已经过期，它的密钥会被拒绝',
  },
  advice_weak_state_check: {
    en: EVENTS.weak_state_check.sentence,
    zh: '登录状态参数只检查后缀：别的网站可以让访客以他人身份登录（登录 CSRF）',
  },
  advice_https_without_tls: {
    en: EVENTS.https_without_tls.sentence,
    zh: 'BASE_URL 是 https，但本服务只提供 http，也没有信任任何代理：所有访客会被当作来自同一个地址',
  },
  advice_port_of_proxy: {
    en: EVENTS.port_of_proxy.sentence,
    zh: 'BASE_URL 的端口就是本服务自己用 http 监听的端口：如果前面有代理，浏览器会绕过代理，或者打不开 https',
  },
  advice_tls_without_https: {
    en: EVENTS.tls_without_https.sentence,
    zh: '本服务提供 https，但 BASE_URL 是 http：浏览器会被带到打不开的地址',
  },
  advice_unknown_node_env: {
    en: EVENTS.unknown_node_env.sentence,
    zh: 'NODE_ENV 不是已知的值，按生产环境处理',
  },
  advice_plain_http_allowed: {
    en: EVENTS.plain_http_allowed.sentence,
    zh: '生产环境允许使用明文 http：令牌和 Cookie 在传输途中可能被读取',
  },
  advice_trusts_everybody: {
    en: EVENTS.trusts_everybody.sentence,
    zh: 'TRUSTED_PROXIES 的范围过大，包含了外部地址：任何能访问本服务的人都可以冒充任意来源地址、绕过频率限制，并谎报所请求的页面',
  },
  advice_unverified_email_allowed: {
    en: EVENTS.unverified_email_allowed.sentence,
    zh: '未经身份认证平台验证的邮箱也会被采用：如果用户可以在平台上随意填写邮箱，就可能冒用他人的名字',
  },
  advice_auto_sign_in_without_effect: {
    en: EVENTS.auto_sign_in_without_effect.sentence,
    zh: 'AUTO_SIGN_IN 对当前的身份认证平台不起作用：所有人都会看到登录页',
  },
  advice_console_for_nobody: {
    en: EVENTS.console_for_nobody.sentence,
    zh: 'roles 没有把 developer 角色授予任何人：没有人能看到控制台',
  },

  // Our own certificate
  certificate_valid: {
    en: '{subject}, valid for {days} more days, until {until}',
    zh: '{subject}，还有 {days} 天到期（{until}）',
  },
  certificate_expired: {
    en: '{subject}, expired {days} days ago, until {until}',
    zh: '{subject}，已过期 {days} 天（{until}）',
  },
  renew_own_certificate: { en: RENEW, zh: '请更换 TLS_CERT_FILE 里的证书，文件变化后会自动重新读取。' },
  certificate_unreadable: { en: 'TLS_CERT_FILE cannot be read ({code})', zh: 'TLS_CERT_FILE 无法读取（{code}）' },
  make_certificate_readable: {
    en: 'Make TLS_CERT_FILE a file in PEM that this user can read.',
    zh: 'TLS_CERT_FILE 应为当前用户可读的 PEM 文件。',
  },

  // Reaching an address
  has_no_address: { en: '{host} has no address', zh: '{host} 没有解析到地址' },
  check_spelling_and_dns: {
    en: 'Check the spelling of the address, and the name servers of this machine.',
    zh: '请检查地址的拼写和本机的 DNS 服务器。',
  },
  resolves_to: { en: '{host} is {addresses}', zh: '{host} 解析为 {addresses}' },
  accepts_connections: { en: '{place} accepts connections', zh: '{place} 可以连接' },
  tls_valid: {
    en: '{protocol}, certificate by {issuer}, valid for {days} more days',
    zh: '{protocol}，证书由 {issuer} 签发，还有 {days} 天到期',
  },
  tls_expired: {
    en: '{protocol}, certificate by {issuer}, expired {days} days',
    zh: '{protocol}，证书由 {issuer} 签发，已过期 {days} 天',
  },
  tls_not_accepted: { en: '{certificate}; it is not accepted ({code})', zh: '{certificate}；证书不被接受（{code}）' },
  send_whole_chain: {
    en: 'Have the server send a good certificate with its whole chain; a private authority is added by NODE_EXTRA_CA_CERTS (for upstreams UPSTREAM_CA_FILE).',
    zh: '请让对方服务器使用有效的证书并发送完整的证书链；私有 CA 用 NODE_EXTRA_CA_CERTS 添加（后端应用用 UPSTREAM_CA_FILE）。',
  },
  renew_their_certificate: {
    en: 'Have the certificate of {subject} renewed in time.',
    zh: '请及时更新 {subject} 的证书。',
  },
  the_server: { en: 'the server', zh: '对方服务器' },
  unknown_authority: { en: 'an unknown authority', zh: '未知的签发者' },
  no_connection: { en: 'no connection to {place} ({code})', zh: '无法连接 {place}（{code}）' },
  nothing_listens: {
    en: 'Nothing listens there: check the address and the port, and that it is running.',
    zh: '那里没有服务在监听：请检查地址和端口，并确认服务已启动。',
  },
  may_not_speak_https: {
    en: 'It may not speak https there: check the scheme and the port of the address.',
    zh: '对方可能不提供 https：请检查地址的协议和端口。',
  },
  check_address_and_firewall: {
    en: 'Check the address, the firewall, and that it is running.',
    zh: '请检查地址和防火墙，并确认服务已启动。',
  },

  // The provider
  development_provider: {
    en: 'the development provider would be used, with users to click: not for production',
    zh: '将使用开发用的身份认证平台，点选用户即可登录：不能用于生产环境',
  },
  provider_settings_missing: { en: 'missing: {names}', zh: '缺少：{names}' },
  set_provider_settings: {
    en: 'Set them in the environment, in .env or in the configuration; docs/providers.md says where they come from.',
    zh: '请在环境变量、.env 或配置文件中设置；它们从哪里来，见 docs/providers.md。',
  },
  check_provider_running: {
    en: 'Check that the provider is running, and what stands between here and it; a slow one needs a larger PROVIDER_TIMEOUT_MS.',
    zh: '请确认身份认证平台正在运行，并检查中间的网络；如果它响应较慢，请增大 PROVIDER_TIMEOUT_MS。',
  },
  is_openid_connect: {
    en: 'the addresses of the preset {preset} do not exist there: it is an OpenID Connect provider',
    zh: '那里没有预设 {preset} 的地址：它是 OpenID Connect 平台',
  },
  set_provider_oidc: {
    en: 'Set PROVIDER=oidc and AUTH_URL={url}.',
    zh: '请设置 PROVIDER=oidc 和 AUTH_URL={url}。',
  },
  set_auth_url: {
    en: 'Set AUTH_URL={url} (or ISSUER, where that is set): the provider calls itself so.',
    zh: '请设置 AUTH_URL={url}（已设置 ISSUER 时改 ISSUER）：这是平台自己声明的 issuer。',
  },
  set_preset_oidc: {
    en: "Set preset: 'oidc' and issuer: '{url}' in providers.{id}.",
    zh: "请在 providers.{id} 中设置 preset: 'oidc' 和 issuer: '{url}'。",
  },
  accepted_with_setting: {
    en: 'Set {setting}: with it the provider accepts the client.',
    zh: '请设置 {setting}：这样平台会接受此客户端。',
  },
  auth_url_is_issuer: {
    en: "AUTH_URL (or issuer) has to be the provider's issuer, exactly as it calls itself: look at {url}.",
    zh: 'AUTH_URL（或 issuer）必须与身份认证平台自己声明的 issuer 完全一致，见 {url}。',
  },
  calls_itself: { en: 'it calls itself {issuer}', zh: '它的 issuer 是 {issuer}' },
  discovery_not_needed: {
    en: 'not needed: its endpoints are in the configuration',
    zh: '不需要：各端点已写在配置文件中',
  },
  no_usable_keys: { en: 'no usable keys are published (status {status})', zh: '没有公布可用的公钥（状态码 {status}）' },
  keys_published: { en: '{count} published', zh: '已公布 {count} 个' },
  check_jwks_url: {
    en: 'Check JWKS_URL, or ask the administrator of the provider.',
    zh: '请检查 JWKS_URL，或联系身份认证平台的管理员。',
  },
  sign_in_page_unseen: {
    en: 'the sign-in page could not be seen: {reason}',
    zh: '无法打开登录页：{reason}',
  },
  browser_goes_there: {
    en: 'A browser goes there to sign in; check that it can, and that {url} is registered.',
    zh: '用户的浏览器要到那里登录：请确认浏览器可以访问，并且已登记回调地址 {url}。',
  },
  accepted_but_error: {
    en: '{url} is accepted, but the provider comes back with {error}',
    zh: '{url} 可用，但身份认证平台返回了 {error}',
  },
  check_client_id_allowed: {
    en: 'Check CLIENT_ID, and what the client is allowed there.',
    zh: '请检查 CLIENT_ID，以及平台上授予此客户端的权限。',
  },
  check_scope_and_registration: {
    en: 'Check SCOPE, authorizationParams, and the registration of the client.',
    zh: '请检查 SCOPE、authorizationParams，以及此客户端的登记信息。',
  },
  redirect_accepted: { en: '{url} is accepted', zh: '{url} 可用' },
  redirect_accepted_so_far: {
    en: '{url} is accepted, as far as can be seen without signing in',
    zh: '{url} 可用（未实际登录时能看到的结果）',
  },
  sign_in_page_broken: {
    en: 'the sign-in page is out of order (status {status})',
    zh: '登录页出错（状态码 {status}）',
  },
  ask_provider_admin: { en: 'Ask the administrator of the provider.', zh: '请联系身份认证平台的管理员。' },
  redirect_answered: { en: 'the provider answers {status} to {url}', zh: '身份认证平台对 {url} 返回 {status}' },
  register_redirect_and_check: {
    en: 'Register exactly {url} at the provider; check CLIENT_ID and SCOPE.',
    zh: '请在身份认证平台登记完全一致的回调地址 {url}，并检查 CLIENT_ID 和 SCOPE。',
  },
  clock_ahead: { en: 'this machine is {seconds} s ahead of the provider', zh: '本机比身份认证平台快 {seconds} 秒' },
  clock_behind: { en: 'this machine is {seconds} s behind the provider', zh: '本机比身份认证平台慢 {seconds} 秒' },
  set_clocks: {
    en: 'Set the time of this machine by NTP; if it is right, the provider has to set its own.',
    zh: '请用 NTP 校准本机时间；如果本机是准的，需要平台校准它的时间。',
  },

  // What the provider demands
  no_unmet_demands: {
    en: 'nothing that these settings do not do',
    zh: '当前设置均可满足',
  },
  turn_off_for_client: {
    en: 'Turn that off for this client at the provider.',
    zh: '请在平台上为此客户端关闭这项要求。',
  },
  demands_dpop: {
    en: 'the provider demands DPoP, which is not on',
    zh: '身份认证平台要求 DPoP，但没有开启',
  },
  set_dpop: {
    en: 'Set DPOP=on (dpop: on), without FORWARD_ACCESS_TOKEN.',
    zh: '请设置 DPOP=on（dpop: on），不能同时使用 FORWARD_ACCESS_TOKEN。',
  },
  bind_tokens: {
    en: 'Turn DPoP on for this client at the provider, or set DPOP=auto.',
    zh: '请在平台上为此客户端开启 DPoP，或设置 DPOP=auto。',
  },
  proof_refused: {
    en: 'the provider does not accept the DPoP proof',
    zh: '身份认证平台不接受 DPoP 证明',
  },
  check_proof: {
    en: 'Allow DPoP by ES256 for this client at the provider, compare the clocks, and check that the provider sees its own address as the browser does (a proxy in front of it may change that).',
    zh: '请在平台上为此客户端允许使用 ES256 的 DPoP，核对双方的时间，并确认平台看到的自身地址与外部访问的一致（平台前面的代理可能改变它）。',
  },
  proofs_only_by: {
    en: 'the provider takes DPoP proofs only by {algorithms}, and Menshen signs by ES256',
    zh: '身份认证平台的 DPoP 只接受 {algorithms}，门神使用 ES256',
  },
  allow_es256_proofs: {
    en: 'Allow ES256 for DPoP at the provider, or set DPOP=off.',
    zh: '请在平台上为 DPoP 允许 ES256，或设置 DPOP=off。',
  },
  demands_pushed_requests: {
    en: 'the provider demands pushed authorization requests (PAR), which are off',
    zh: '身份认证平台要求推送授权请求（PAR），但没有开启',
  },
  set_par: { en: 'Set PAR=on (par: on).', zh: '请设置 PAR=on（par: on）。' },
  push_refused: {
    en: 'the provider does not accept the reference to the pushed authorization request (PAR)',
    zh: '身份认证平台不接受推送授权请求（PAR）的引用',
  },
  check_push: {
    en: 'Allow pushed authorization requests for this client at the provider, or set PAR=off if it does not demand them.',
    zh: '请在平台上为此客户端允许推送授权请求；如果平台没有此要求，也可以设置 PAR=off。',
  },
  set_push_endpoint: {
    en: 'Turn pushed authorization requests on at the provider, name their address (parUrl), or set PAR=off.',
    zh: '请在平台上开启推送授权请求，或写明地址（parUrl），或设置 PAR=off。',
  },
  pushed: {
    en: 'accepted: the browser gets a reference to the request',
    zh: '已接受：浏览器只携带请求的引用',
  },
  certificate_refused: {
    en: 'the provider does not accept the certificate of CLIENT_CERT_FILE',
    zh: '身份认证平台不接受 CLIENT_CERT_FILE 的证书',
  },
  register_certificate: {
    en: 'Register this certificate for the client at the provider: its subject for tls_client_auth, which a trusted authority has to have signed; the certificate itself for self_signed_tls_client_auth.',
    zh: '请在平台上为此客户端登记这张证书：tls_client_auth 登记其主题（须由平台信任的 CA 签发），self_signed_tls_client_auth 登记证书本身。',
  },
  certificate_broke: {
    en: '{reason}; the provider may not accept the certificate of CLIENT_CERT_FILE',
    zh: '{reason}；可能是身份认证平台不接受 CLIENT_CERT_FILE 的证书',
  },
  client_certificate_valid: {
    en: 'valid until {date}',
    zh: '有效期至 {date}',
  },
  client_certificate_expired: {
    en: 'the certificate of CLIENT_CERT_FILE is not valid now, but from {from} to {to}',
    zh: 'CLIENT_CERT_FILE 的证书当前无效，有效期为 {from} 至 {to}',
  },
  client_certificate_ends: {
    en: 'the certificate of CLIENT_CERT_FILE expires on {date}',
    zh: 'CLIENT_CERT_FILE 的证书将于 {date} 过期',
  },
  renew_client_certificate: {
    en: 'Renew it, and register the new one at the provider; it is read again when the file changes.',
    zh: '请更新证书，并在平台上登记新证书；文件变化后会自动重新读取。',
  },
  demands_signed_requests: {
    en: 'the provider demands signed authorization requests (JAR), which Menshen does not do',
    zh: '身份认证平台要求签名的授权请求（JAR），门神不支持',
  },
  answers_by_form: {
    en: 'the provider sends its answer as a form (response_mode=form_post), which Menshen does not take',
    zh: '身份认证平台以表单返回结果（response_mode=form_post），门神不支持',
  },
  set_query_mode: {
    en: 'Set the response mode "query" for this client at the provider.',
    zh: '请在平台上把此客户端的响应方式（response mode）设为 query。',
  },
  scope_without_openid: {
    en: 'SCOPE is {scope}: without openid the provider gives no id_token',
    zh: 'SCOPE 为 {scope}：没有 openid，平台不会给出 id_token',
  },
  add_openid: { en: 'Set SCOPE="openid {scope}".', zh: '请设置 SCOPE="openid {scope}"。' },
  may_demand_pkce: {
    en: 'the provider may demand PKCE, which is off',
    zh: '身份认证平台可能要求 PKCE，而 PKCE 没有开启',
  },
  offers_pkce: {
    en: 'the provider offers PKCE (S256), which is off',
    zh: '身份认证平台支持 PKCE（S256），但没有开启',
  },
  set_pkce: { en: 'Set PKCE=S256 (pkce: true).', zh: '请设置 PKCE=S256（pkce: true）。' },
  lists_no_pkce: {
    en: 'the provider does not list PKCE by S256, which is on',
    zh: 'PKCE 已开启，但身份认证平台没有声明支持 S256',
  },
  set_pkce_off: {
    en: 'If it refuses sign-ins, set PKCE=off.',
    zh: '如果平台拒绝登录，请设置 PKCE=off。',
  },
  offers_no_code: {
    en: 'the provider does not offer the response type code',
    zh: '身份认证平台不支持响应类型（response type）code',
  },
  allow_code_grant_there: {
    en: 'Allow the authorization code grant there.',
    zh: '请在平台上允许授权码模式。',
  },
  scope_not_listed: {
    en: 'the provider does not list the scope {scope}',
    zh: '身份认证平台没有声明支持 scope {scope}',
  },
  check_scope_or_allow: { en: 'Check SCOPE, or allow it there.', zh: '请检查 SCOPE，或在平台上允许它。' },
  also_signs_by_secret: {
    en: 'it can sign id_tokens by {algorithms} too, which Menshen does not accept: if this client is registered so, sign-ins fail (menshen doctor --sign-in shows it)',
    zh: '平台也可以用 {algorithms} 签名 id_token，门神不接受：如果此客户端是这样登记的，登录会失败（menshen doctor --sign-in 可以看到）',
  },
  signs_only_by: {
    en: 'the provider signs id_tokens by {algorithms} only, which Menshen does not take',
    zh: '身份认证平台只用 {algorithms} 签名 id_token，门神不支持',
  },
  set_signing_algorithm: {
    en: 'Set RS256 or ES256 for this client at the provider.',
    zh: '请在平台上为此客户端设置 RS256 或 ES256。',
  },
  client_only_by: {
    en: 'the provider takes a client only by {methods}',
    zh: '身份认证平台只接受以 {methods} 认证的客户端',
  },
  client_only_by_not: {
    en: 'the provider takes a client only by {methods}, and not by {method}',
    zh: '身份认证平台只接受以 {methods} 认证的客户端，不接受 {method}',
  },
  allow_client_auth: {
    en: 'Menshen proves itself by client_secret_basic, client_secret_post, private_key_jwt, tls_client_auth or self_signed_tls_client_auth: allow one of these for this client at the provider.',
    zh: '门神支持 client_secret_basic、client_secret_post、private_key_jwt、tls_client_auth 和 self_signed_tls_client_auth：请在平台上为此客户端允许其中一种。',
  },
  set_client_auth: {
    en: 'Set CLIENT_AUTH to one of: {ways}.',
    zh: '请把 CLIENT_AUTH 设为其中之一：{ways}。',
  },
  assertion_only_by: {
    en: 'the provider takes private_key_jwt only by {algorithms}, and not by {algorithm}',
    zh: '身份认证平台的 private_key_jwt 只接受 {algorithms}，不接受 {algorithm}',
  },
  use_fitting_key: { en: 'Use a key for one of these.', zh: '请使用适用于这些算法的密钥。' },

  // The client at the provider
  made_up_code_accepted: { en: 'a made-up code was accepted', zh: '平台接受了一个编造的授权码' },
  do_not_use_provider: {
    en: 'Anyone who invents a code would be signed in: do not use this provider.',
    zh: '任何人编造授权码都能登录：请不要使用这个平台。',
  },
  client_known: {
    en: 'known: a made-up code gets {answer}, as it should',
    zh: '凭据有效：编造的授权码得到 {answer}，符合预期',
  },
  redirect_not_registered: {
    en: 'the redirect address is not the registered one ({answer})',
    zh: '回调地址与登记的不一致（{answer}）',
  },
  register_redirect: {
    en: 'Register exactly {url} at the provider, or correct BASE_URL.',
    zh: '请在身份认证平台登记完全一致的回调地址 {url}，或修改 BASE_URL。',
  },
  client_refused: {
    en: 'the provider does not accept the client ({answer})',
    zh: '身份认证平台不接受此客户端（{answer}）',
  },
  check_client_credentials: {
    en: 'CLIENT_ID or CLIENT_SECRET is wrong, or CLIENT_AUTH is not the way that is registered for this client.',
    zh: 'CLIENT_ID 或 CLIENT_SECRET 不正确，或者 CLIENT_AUTH 与此客户端登记的方式不一致。',
  },
  redirected_to_error: {
    en: 'the provider leads the browser to an error page of its own ({error}) in place of {url}',
    zh: '身份认证平台把浏览器带到了自己的错误页（{error}），而不是 {url}',
  },
  check_address_and_client: {
    en: 'There is no sign-in page: check PROVIDER, AUTH_URL and CLIENT_ID.',
    zh: '那里没有登录页：请检查 PROVIDER、AUTH_URL 和 CLIENT_ID。',
  },
  no_token_endpoint: { en: 'there is no token endpoint ({answer})', zh: '这里不是令牌端点（{answer}）' },
  check_provider_addresses: {
    en: 'Check PROVIDER, AUTH_URL and the addresses of the provider.',
    zh: '请检查 PROVIDER、AUTH_URL 和平台的各个地址。',
  },
  token_endpoint_broken: {
    en: 'the token endpoint is out of order ({answer})',
    zh: '令牌端点出错（{answer}）',
  },
  code_answer_unclear: {
    en: 'a made-up code gets {answer}, which does not tell whether the client is known',
    zh: '编造的授权码得到 {answer}，无法判断凭据是否有效',
  },
  sign_in_will_tell: { en: 'menshen doctor --sign-in will tell.', zh: '运行 menshen doctor --sign-in 可以确认。' },
  check_client_key: {
    en: 'Check the key or the secret of the client: they could not be used.',
    zh: '客户端的密钥或 secret 无法使用，请检查。',
  },
  check_way_to_provider: {
    en: 'Check the address, and what stands between here and the provider; a slow one needs a larger PROVIDER_TIMEOUT_MS.',
    zh: '请检查地址和中间的网络；如果平台响应较慢，请增大 PROVIDER_TIMEOUT_MS。',
  },
  no_token_answer: {
    en: 'This is no answer of a token endpoint: check AUTH_URL, and what stands between here and the provider.',
    zh: '这不是令牌端点的响应：请检查 AUTH_URL 和中间的网络。',
  },

  // The store
  store_will_be_made: { en: '{store} is not there yet: the start will make it', zh: '{store} 还不存在，启动时会创建' },
  store_cannot_be_made: { en: '{store} cannot be made: {problem}', zh: '无法创建 {store}：{problem}' },
  not_a_folder: { en: '{directory} is not a folder', zh: '{directory} 不是目录' },
  nothing_can_be_made: {
    en: 'nothing can be made in {directory} ({code})',
    zh: '无法在 {directory} 中创建文件（{code}）',
  },
  store_failed: { en: '{problem} ({reason})', zh: '{problem}（{reason}）' },
  make_store_folder: {
    en: 'Make it a file in a folder that this user can write to, on a disk with room, or name another one in STORE.',
    zh: '它应为当前用户可写的目录中的文件，且磁盘有剩余空间；也可以在 STORE 中指定另一个文件。',
  },
  check_store_server: {
    en: 'Check that the server of STORE is running and can be reached, and the name and password in STORE.',
    zh: '请确认 STORE 指向的服务器正在运行且可以访问，并检查 STORE 中的用户名和密码。',
  },
  store_forgets: { en: 'memory: a restart signs everybody out', zh: '内存：重启后所有人都需要重新登录' },
  use_lasting_store: {
    en: 'STORE=sqlite:./data/menshen.db keeps them on this machine, redis://… for several machines.',
    zh: 'STORE=sqlite:./data/menshen.db 把会话保存在本机，redis://… 供多台机器共用。',
  },
  store_cannot_read: { en: 'what was written cannot be read', zh: '写入的数据读不出来' },
  store_cannot_list: {
    en: 'what was written cannot be found by its label',
    zh: '写入的数据无法按标签找到',
  },
  store_does_not_expire: { en: 'what has expired is still there', zh: '过期的数据没有清除' },
  store_cannot_remove: { en: 'what was written cannot be removed', zh: '写入的数据无法删除' },
  look_at_store_log: {
    en: 'Look at the log of the store; nobody else may write to it.',
    zh: '请查看存储的日志；不能有其他程序写入它。',
  },
  store_file_whole: { en: 'the database passes quick_check', zh: '数据库通过了 quick_check' },
  store_file_large: {
    en: 'the database has {size} GB and is not checked',
    zh: '数据库有 {size} GB，未做检查',
  },
  store_file_damaged: { en: 'quick_check reports {reason}', zh: 'quick_check 报告：{reason}' },
  restore_store: {
    en: 'Stop Menshen and restore a backup, or move the file away to begin with an empty store.',
    zh: '请停止门神并恢复备份，或移走该文件以空的存储重新开始。',
  },
  store_disk_room: { en: '{free} MB are free', zh: '剩余 {free} MB' },
  make_store_room: {
    en: 'Make room: on a full disk users cannot sign in.',
    zh: '请腾出空间：磁盘写满后用户无法登录。',
  },
  store_on_network: {
    en: '{file} is on a network file system',
    zh: '{file} 位于网络文件系统上',
  },
  store_on_local_disk: { en: 'a local file system', zh: '本地文件系统' },
  move_store_to_local_disk: {
    en: 'Put the file on a local disk, or use Redis: SQLite needs memory that processes share, which a network does not have.',
    zh: '请把文件放在本地磁盘上，或改用 Redis：SQLite 需要进程间共享内存，网络文件系统不支持。',
  },
  store_works: { en: 'writes, reads, lists, expires and removes', zh: '写入、读取、列举、过期和删除都正常' },
  store_takes: {
    en: 'a write takes {write} ms, a read {read} ms',
    zh: '写入 {write} 毫秒，读取 {read} 毫秒',
  },
  bring_store_nearer: {
    en: 'Every sign-in waits for it: bring the store nearer, or look at what keeps it busy.',
    zh: '每次登录都要等它：请把存储放近一些，或检查它为什么繁忙。',
  },
  store_keys_open: { en: 'our secrets open what it keeps', zh: '可以用当前的密钥打开其中的数据' },
  store_keys_closed: {
    en: 'no secret of ours opens what others have written there: sign-outs of users and of administrators miss their sessions',
    zh: '当前的密钥都打不开其中已有的数据：按用户结束会话时会漏掉这些会话',
  },
  store_keys_of_others: {
    en: 'some sessions were opened under a secret that is not in SECRET: sign-outs of users and of administrators miss them',
    zh: '有些会话所用的密钥不在 SECRET 中：按用户结束会话时会漏掉它们',
  },
  put_former_secret_behind: {
    en: 'Put the former secret behind the present one in SECRET. If another Menshen uses this store, give each its own folder, or its own prefix in Redis.',
    zh: '请在 SECRET 中把原来的密钥放在新的后面。如果有另一个门神在用这个存储，请分别使用不同的目录，或在 Redis 中使用不同的前缀。',
  },
  redis_says_nothing: { en: 'it does not tell about itself ({code})', zh: '无法取得它的信息（{code}）' },
  see_store_line: { en: 'The line about the store says why.', zh: '原因见“存储”一项。' },
  use_newer_redis: {
    en: 'Expected Redis {version} or newer, or Valkey.',
    zh: '需要 Redis {version} 或更新的版本，或 Valkey。',
  },
  does_not_say: { en: 'it does not say', zh: '无法得知' },
  make_sure_noeviction: {
    en: 'Make sure that maxmemory-policy is noeviction.',
    zh: '请确认 maxmemory-policy 是 noeviction。',
  },
  evicts_sessions: {
    en: '{policy}: when its memory is full, it drops sessions and so signs users out',
    zh: '{policy}：内存满时会丢弃会话，用户会因此退出登录',
  },
  set_noeviction: {
    en: 'Set maxmemory-policy to noeviction, and give it enough memory.',
    zh: '请把 maxmemory-policy 设为 noeviction，并分配足够的内存。',
  },
  last_write_failed: { en: 'its last write to the disk failed', zh: '最近一次写入磁盘失败' },
  look_at_redis_disk: { en: 'Look at the log and the disk of Redis.', zh: '请查看 Redis 的日志和磁盘。' },
  set_appendonly: { en: 'Set appendonly to yes.', zh: '请把 appendonly 设为 yes。' },
  snapshots_only: {
    en: 'snapshots only: a crash forgets the latest sign-ins, sign-outs and refreshes',
    zh: '只有快照：崩溃会丢失最近的登录、退出和续期',
  },
  no_persistence: {
    en: 'none: a restart of Redis signs everybody out',
    zh: '没有持久化：Redis 重启后所有人都需要重新登录',
  },
  no_persistence_known: {
    en: 'none, as far as it says: a restart of Redis signs everybody out',
    zh: '看起来没有持久化：Redis 重启后所有人都需要重新登录',
  },

  // Applications
  no_upstream: { en: 'none: our own home page is shown', zh: '没有设置：显示门神自己的首页' },
  upstream_no_answer: { en: 'no answer ({code})', zh: '没有响应（{code}）' },
  check_application_running: {
    en: 'Check that the application is running there and speaks HTTP; users would get a 502 page.',
    zh: '请确认后端应用在那里运行并提供 HTTP，否则用户会看到 502 页面。',
  },
  upstream_is_ourselves: {
    en: 'this very Menshen answers at {url}: requests would go round in a circle',
    zh: '{url} 就是门神自己：请求会无限循环',
  },
  name_application: {
    en: 'Name the address of the application behind Menshen.',
    zh: '请填写门神后面的后端应用的地址。',
  },
  upstream_answers: { en: 'answers {status}', zh: '返回 {status}' },
  application_has_path: {
    en: 'the application answers {path} with {status}, and nobody can reach that page: the path is Menshen’s',
    zh: '应用自己也有 {path}（返回 {status}），但这个路径由门神使用，用户打不开应用的这个页面',
  },
  move_login_path: {
    en: 'If users need that page, set LOGIN_PATH=/_menshen/login; LOGOUT_PATH and CALLBACK_PATH can be moved in the same way.',
    zh: '如果用户需要这个页面，请设置 LOGIN_PATH=/_menshen/login；LOGOUT_PATH 和 CALLBACK_PATH 也可以这样改。',
  },
  look_at_application_log: { en: 'Look at the log of the application.', zh: '请查看后端应用的日志。' },

  // The way from a browser to us
  base_url_certificate: {
    en: 'the certificate of {url} is not accepted ({code})',
    zh: '{url} 的证书不被接受（{code}）',
  },
  browsers_refuse_it: {
    en: 'Browsers will not accept it either, unless they know its authority.',
    zh: '浏览器也不会接受它，除非信任它的签发者。',
  },
  base_url_unknown: {
    en: 'this machine does not know the name {host} ({code})',
    zh: '本机解析不了域名 {host}（{code}）',
  },
  enter_into_dns: {
    en: 'Check the spelling of BASE_URL, and enter the name into DNS or /etc/hosts.',
    zh: '请检查 BASE_URL 的拼写，并在 DNS 或 /etc/hosts 中添加这个域名。',
  },
  base_url_plain_http: {
    en: 'what answers at {url} speaks http there, not https ({code})',
    zh: '{url} 的端口提供的是 http，不是 https（{code}）',
  },
  base_url_not_http: {
    en: 'what answers at {url} does not speak HTTP ({code})',
    zh: '{url} 的响应不是 HTTP（{code}）',
  },
  check_base_url_port: {
    en: 'Check the scheme and the port of BASE_URL.',
    zh: '请检查 BASE_URL 的协议和端口。',
  },
  nothing_at_base_url: { en: 'nothing answers at {url} ({code})', zh: '{url} 没有响应（{code}）' },
  start_and_ask_again: {
    en: 'Start Menshen, and ask again to have the way to it looked at.',
    zh: '请启动门神后再检查一次，才能看到中间的代理是否正常。',
  },
  nothing_behind_proxy: {
    en: 'a proxy answers at {url}, but nothing behind it ({status})',
    zh: '{url} 的代理有响应，但它后面没有服务（{status}）',
  },
  start_and_check_proxy: {
    en: 'Start Menshen, and check that the proxy leads to HOST and PORT.',
    zh: '请启动门神，并确认代理指向 HOST 和 PORT。',
  },
  something_else_answers: {
    en: 'something else than the Menshen of these settings answers at {url} (status {status})',
    zh: '{url} 的响应不是来自使用这些设置的门神（状态码 {status}）',
  },
  check_base_url_and_secrets: {
    en: 'Check BASE_URL, that the proxy leads all paths to Menshen, and that it was started with the same SECRET and CLIENT_SECRET.',
    zh: '请检查 BASE_URL，确认代理把所有路径都转给门神，并且门神启动时使用相同的 SECRET 和 CLIENT_SECRET。',
  },
  host_arrives: { en: 'Host arrives as {host}', zh: '收到的 Host 是 {host}' },
  host_arrives_wrong: {
    en: 'Host arrives as {host}, not as {expected}',
    zh: '收到的 Host 是 {host}，应为 {expected}',
  },
  pass_host: {
    en: 'Let the proxy pass on the Host of the browser (nginx: proxy_set_header Host $http_host).',
    zh: '请让代理传递浏览器的 Host（nginx：proxy_set_header Host $http_host）。',
  },
  without_proxy_proto: { en: '{proto}, without a proxy in between', zh: '{proto}，中间没有代理' },
  without_proxy: { en: 'without a proxy in between', zh: '中间没有代理' },
  proto_arrives: { en: 'X-Forwarded-Proto arrives as {proto}', zh: '收到的 X-Forwarded-Proto 是 {proto}' },
  proto_arrives_wrong: {
    en: 'X-Forwarded-Proto arrives as {proto}, but BASE_URL is {expected}',
    zh: '收到的 X-Forwarded-Proto 是 {proto}，但 BASE_URL 是 {expected}',
  },
  nothing: { en: 'nothing', zh: '空' },
  proto_by_base_url: {
    en: 'the proxy does not say it: BASE_URL says {proto}',
    zh: '代理没有传递，以 BASE_URL 的 {proto} 为准',
  },
  check_proto: {
    en: 'Check the scheme of BASE_URL, and what the proxy says (nginx: $scheme).',
    zh: '请检查 BASE_URL 的协议，以及代理传递的值（nginx：$scheme）。',
  },
  forged_address_passes: {
    en: 'the proxy passes on an X-Forwarded-For that anybody can make up',
    zh: '代理原样传递了任何人都可以伪造的 X-Forwarded-For',
  },
  add_client_address: {
    en: 'Let the proxy add the address that it sees (nginx: proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for).',
    zh: '请让代理加上它看到的地址（nginx：proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for）。',
  },
  proxy_not_trusted: {
    en: 'the proxy at {address} is not trusted: all visitors seem to be one',
    zh: '没有信任 {address} 的代理：所有访客会被当作同一个',
  },
  trust_proxy: { en: 'TRUSTED_PROXIES={address}', zh: '设置 TRUSTED_PROXIES={address}' },
  client_address_arrives: {
    en: 'X-Forwarded-For arrives with what the proxy has seen',
    zh: '收到的 X-Forwarded-For 是代理看到的地址',
  },
  upgrade_passes: { en: 'WebSockets can pass', zh: '可以使用 WebSocket' },
  upgrade_not_needed: {
    en: 'no application behind Menshen: WebSockets do not pass through it',
    zh: '门神后面没有后端应用，WebSocket 不经过门神',
  },
  upgrade_lost: {
    en: 'Upgrade does not arrive: WebSockets of the application cannot pass',
    zh: '没有收到 Upgrade：后端应用无法使用 WebSocket',
  },
  pass_upgrade: {
    en: "Let the proxy pass it on (nginx: proxy_http_version 1.1, proxy_set_header Upgrade $http_upgrade, proxy_set_header Connection 'upgrade').",
    zh: "请让代理传递它（nginx：proxy_http_version 1.1、proxy_set_header Upgrade $http_upgrade、proxy_set_header Connection 'upgrade'）。",
  },

  // The last reload
  reload_refused: {
    en: 'the files are not what runs: refused {time}, {file}: {detail}',
    zh: '文件与正在运行的不一致：{time} 拒绝加载 {file}：{detail}',
  },
  correct_file: {
    en: 'Correct the file. It is read again as soon as it changes.',
    zh: '请修改这个文件，文件变化后会自动重新读取。',
  },
  reloaded: { en: 'the files were read again {time}', zh: '{time} 重新读取了文件' },

  // A trial sign-in
  nobody_signed_in: { en: 'nobody has signed in', zh: '没有人登录' },
  open_address: {
    en: 'Open the address in a browser on any machine that reaches BASE_URL.',
    zh: '请在任何能访问 BASE_URL 的机器上，用浏览器打开上面的地址。',
  },
  browser_at_provider: {
    en: 'A browser has opened it and is at the provider now.',
    zh: '浏览器已打开这个地址，现在在身份认证平台。',
  },
  if_provider_shows_error: {
    en: 'If the provider shows an error there: register exactly {url}, and stop this command (Ctrl-C).',
    zh: '如果平台显示错误，请登记完全一致的回调地址 {url}，并结束此命令（Ctrl-C）。',
  },
  provider_kept_browser: {
    en: 'the provider kept the browser: it went there and never came back',
    zh: '浏览器到了身份认证平台，但没有返回',
  },
  register_redirect_url: {
    en: 'Register exactly {url} as a redirect address at the provider, and check CLIENT_ID; the page that it shows there says more.',
    zh: '请在身份认证平台登记完全一致的回调地址 {url}，并检查 CLIENT_ID；平台显示的页面有更多信息。',
  },
  sign_in_settings_missing: {
    en: 'Nobody can sign in: settings of the provider are missing: {names}.',
    zh: '无法登录：缺少身份认证平台的设置：{names}。',
  },
  store_not_shared: {
    en: 'STORE is "memory:", so that the Menshen that is running cannot be asked; stop it and ask again, or use sqlite: or Redis.',
    zh: 'STORE 是 “memory:”，无法与正在运行的门神通信；请停止它后重试，或改用 sqlite: 或 Redis。',
  },
  came_back_with_error: {
    en: 'the provider came back with the error {error}',
    zh: '身份认证平台返回了错误 {error}',
  },
  would_be_signed_in: {
    en: 'this user would be signed in, as {role}',
    zh: '这个用户可以登录，角色为 {role}',
  },
  see_providers_page: {
    en: 'docs/providers.md says how fields are found.',
    zh: '字段如何对应，见 docs/providers.md。',
  },
  name_right_fields: {
    en: 'docs/providers.md says how fields are found; name the right ones in `fields` of the configuration.',
    zh: '字段如何对应，见 docs/providers.md；请在配置文件的 `fields` 中写明正确的字段。',
  },
  check_network_to_provider: {
    en: 'Check what stands between here and the provider; a slow one needs a larger PROVIDER_TIMEOUT_MS.',
    zh: '请检查到身份认证平台的网络；如果平台响应较慢，请增大 PROVIDER_TIMEOUT_MS。',
  },
  run_doctor: { en: 'Run menshen doctor: it names what is missing.', zh: '请运行 menshen doctor，查看缺少什么。' },
  own_code_refused: {
    en: 'The provider refuses the code that it has just given: check that {url} is registered exactly like this.',
    zh: '平台拒绝了它刚刚签发的授权码：请确认登记的回调地址与 {url} 完全一致。',
  },
  own_code_refused_without_pkce: {
    en: 'The provider refuses the code that it has just given: check that {url} is registered exactly like this, and whether it demands PKCE (PKCE=S256).',
    zh: '平台拒绝了它刚刚签发的授权码：请确认登记的回调地址与 {url} 完全一致，以及平台是否要求 PKCE（PKCE=S256）。',
  },
  check_client_and_auth: {
    en: 'Check CLIENT_ID and CLIENT_SECRET, and that CLIENT_AUTH is the way that is registered for this client.',
    zh: '请检查 CLIENT_ID 和 CLIENT_SECRET，并确认 CLIENT_AUTH 与此客户端登记的方式一致。',
  },
  ask_admin_for_log: {
    en: 'Ask the administrator of the provider: its log says more.',
    zh: '请联系身份认证平台的管理员，平台日志中有更多信息。',
  },
  look_at_provider_log: {
    en: 'Look at the log of the provider, and run menshen doctor.',
    zh: '请查看身份认证平台的日志，并运行 menshen doctor。',
  },
  token_issuer_remedy: {
    en: 'AUTH_URL (or issuer) has to be what the provider calls itself; other names of its own go into alsoIssuers.',
    zh: 'AUTH_URL（或 issuer）必须与身份认证平台声明的 issuer 一致；它的其他名称写在 alsoIssuers 中。',
  },
  token_audience_remedy: {
    en: 'CLIENT_ID has to be the client that the id_token is for.',
    zh: 'CLIENT_ID 必须是 id_token 签发给的客户端。',
  },
  token_algorithm_remedy: {
    en: 'Set RS256 or ES256 as the signature of id_tokens for this client at the provider.',
    zh: '请在平台上把此客户端 id_token 的签名算法设为 RS256 或 ES256。',
  },
  token_encryption_remedy: {
    en: 'Turn the encryption of id_tokens and of user info off for this client at the provider.',
    zh: '请在平台上为此客户端关闭 id_token 和用户信息的加密。',
  },
  token_keys_remedy: {
    en: 'Check that the keys at the address of the metadata (or JWKS_URL) are those of this provider.',
    zh: '请确认元数据中的公钥地址（或 JWKS_URL）属于这个平台。',
  },
  token_nonce_remedy: {
    en: 'Begin again in one browser; if it stays, the provider does not return the nonce, which OpenID Connect demands.',
    zh: '请在同一个浏览器中重试；如果仍然如此，说明平台没有返回 nonce，而 OpenID Connect 要求返回。',
  },
  token_auth_time_remedy: {
    en: 'The provider has to ask users to sign in again when max_age says so.',
    zh: '超过 max_age 时，平台必须要求用户重新登录。',
  },
  token_odd_remedy: {
    en: 'Ask the administrator of the provider: its id_token is not as OpenID Connect says.',
    zh: '请联系身份认证平台的管理员：它的 id_token 不符合 OpenID Connect。',
  },
  user_not_allowed_remedy: {
    en: 'The provider let this user not pass: check who is allowed to use this client, or try another user.',
    zh: '平台没有让这个用户通过：请检查谁可以使用此客户端，或换一个用户试试。',
  },
  invalid_scope_remedy: {
    en: 'Check SCOPE: the provider does not know one of the scopes, or does not allow it for this client.',
    zh: '请检查 SCOPE：其中有平台不认识、或不允许此客户端使用的 scope。',
  },
  allow_code_grant: {
    en: 'Allow the authorization code grant for this client at the provider.',
    zh: '请在平台上为此客户端允许授权码模式。',
  },
  allow_code_response: {
    en: 'Allow the response type "code" for this client at the provider.',
    zh: '请在平台上为此客户端允许响应类型（response type）code。',
  },
  invalid_request_remedy: {
    en: 'Check SCOPE and authorizationParams, and whether the provider demands PKCE (PKCE=S256).',
    zh: '请检查 SCOPE 和 authorizationParams，以及平台是否要求 PKCE（PKCE=S256）。',
  },
  no_refresh_token: {
    en: 'no refresh token: sessions end with the access token after {minutes} minutes',
    zh: '没有 refresh token，无法续期：会话会在 {minutes} 分钟后随 access token 结束',
  },
  no_refresh_token_minute: {
    en: 'no refresh token: sessions end with the access token after 1 minute',
    zh: '没有 refresh token，无法续期：会话会在 1 分钟后随 access token 结束',
  },
  have_refresh_tokens: {
    en: 'Have the provider give refresh tokens to this client.',
    zh: '请让平台向此客户端签发 refresh token。',
  },
  add_offline_access: {
    en: 'Add offline_access: SCOPE="{scope} offline_access".',
    zh: '请加上 offline_access：SCOPE="{scope} offline_access"。',
  },
  allow_refresh_tokens: {
    en: 'offline_access is asked for already: allow refresh tokens for this client at the provider; some want prompt=consent in authorizationParams.',
    zh: '已经请求了 offline_access：请在平台上为此客户端允许 refresh token；有的平台还需要在 authorizationParams 中设置 prompt=consent。',
  },
  open_and_sign_in: {
    en: 'Open this address in a browser and sign in; it works once, within ten minutes:',
    zh: '请用浏览器打开下面的地址并登录；地址只能使用一次，十分钟内有效：',
  },
  open_and_sign_in_at: {
    en: 'Open this address in a browser and sign in; it works once, within ten minutes ({provider}):',
    zh: '请用浏览器打开下面的地址并登录；地址只能使用一次，十分钟内有效（{provider}）：',
  },
  mapping_came: { en: 'What came from the provider ({provider}):', zh: '身份认证平台（{provider}）返回的字段：' },
  mapping_filled: { en: 'How our fields were filled:', zh: '门神的字段取自：' },
  mapping_empty: { en: 'stays empty', zh: '空' },
  mapping_from: { en: 'from {place} of {source}', zh: '{source} 的 {place}' },
  mapping_value: { en: '{from}: {value}', zh: '{from}：{value}' },
  mapping_role: { en: 'The role is {role}; the groups are {groups}.', zh: '角色为 {role}，用户组为 {groups}。' },
  mapping_none: { en: 'none', zh: '无' },
  mapping_admitted: { en: 'This user would be signed in.', zh: '这个用户可以登录。' },
  mapping_refused: { en: 'Nobody would be signed in: {problem}.', zh: '无法登录：{problem}。' },

  // menshen check
  finding_sentence: { en: '{name}: {seen}. {remedy}', zh: '{name}：{seen}。{remedy}' },
  did_you_mean_inside: { en: 'did you mean {name}?', zh: '您是不是想写 {name}？' },
  setting_missing: {
    en: '{name} is missing: nobody can sign in without it.',
    zh: '缺少 {name}：没有它任何人都无法登录。',
  },
  everything_usable: { en: 'Everything can be used.', zh: '全部可用。' },
} as const satisfies Readonly<Record<string, PhraseRow>>
