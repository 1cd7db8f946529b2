// Every error code of Menshen with its sentence: those that the login page shows to users, and those that operators see.

/** Broken, not absent: thrown when something outside failed. Decide by `code`; the message is for people. */
export class MenshenError extends Error {
  readonly code: ErrorCode

  constructor(code: ErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'MenshenError'
    this.code = code
  }
}

/** For the log, without the cause: it can carry what came from outside. */
export function factsOf(error: unknown): { error: ErrorCode; detail: string } | { err: unknown } {
  return error instanceof MenshenError ? { error: error.code, detail: error.message } : { err: error }
}

export type ErrorCode = keyof typeof ERRORS

/** What operators find as `error` in the log. */
export const ERRORS = {
  bad_settings: 'one or more settings are wrong or missing',
  cannot_start: 'something that the start needs is not available: a port, a folder, a file',
  provider_unreachable: 'the provider gave no whole answer: no connection, a broken one, or the deadline passed',
  provider_refused: 'the provider refused the code or the token: it is not valid (any more)',
  provider_busy: 'more calls to the provider at once than PROVIDER_PARALLEL_CALLS allows',
  provider_answer:
    'the provider answered something that cannot be used: another status, a refusal of the client, a page of a firewall, missing fields',
  store_unavailable: 'the store could not be read or written',
  assertion_missing:
    'a request came to an application without an assertion: not through the gateway, or from a visitor',
  assertion_invalid: 'an assertion is forged, too old, or for another application',
  keys_unavailable: 'an application could not fetch the keys of the gateway',
} as const

interface LoginError {
  readonly message: string
  /** What to do next. */
  readonly remedy: string
}

const TRY_LATER = '请稍后重试；如果一直这样，请联系管理员。'
const ASK_ADMINISTRATOR = '请联系管理员检查此应用在身份认证平台上的配置。'

/** What `/login?error=<code>` tells the user. */
export const LOGIN_ERRORS: Readonly<Record<string, LoginError>> = {
  missing_code: { message: '登录没有完成：身份认证平台没有返回授权码。', remedy: '请重新登录。' },
  invalid_state: { message: '这次登录已失效，或者不是从本页开始的。', remedy: '为了保护您的账号，请从本页重新登录。' },
  token_error: { message: '暂时无法与身份认证平台完成登录。', remedy: TRY_LATER },
  userinfo_error: { message: '身份已确认，但没能取得您的用户信息。', remedy: TRY_LATER },
  callback_error: { message: '登录过程中出现了意外的问题。', remedy: TRY_LATER },
  access_denied: {
    message: '登录已被取消，或者您没有使用此应用的权限。',
    remedy: '您可以重新登录；如果需要权限，请联系管理员。',
  },
  invalid_request: { message: '登录请求不完整或有误。', remedy: '请重新登录；如果一直这样，请联系管理员。' },
  unauthorized_client: { message: '此应用还没有获准使用统一身份认证。', remedy: ASK_ADMINISTRATOR },
  unsupported_response_type: { message: '身份认证平台不支持此应用的登录方式。', remedy: ASK_ADMINISTRATOR },
  invalid_scope: { message: '身份认证平台不接受此应用申请的权限范围。', remedy: ASK_ADMINISTRATOR },
  server_error: { message: '身份认证平台出现了内部错误。', remedy: TRY_LATER },
  temporarily_unavailable: { message: '身份认证平台正忙或正在维护。', remedy: '请过几分钟再试。' },
}

const UNKNOWN_LOGIN_ERROR: LoginError = {
  message: '身份认证平台没有让这次登录通过。',
  remedy: '请重新登录；如果一直这样，请把下面的错误代码告诉管理员。',
}

export function loginError(code: string): LoginError {
  return (Object.hasOwn(LOGIN_ERRORS, code) && LOGIN_ERRORS[code]) || UNKNOWN_LOGIN_ERROR
}
