// The exports of the library.

export {
  type Config,
  type DefaultRole,
  defineConfig,
  type Role,
  type RoleConfig,
  type Rule,
} from './config/file.ts'
export type { ProviderConfig } from './config/provider.ts'
export { readSettings } from './config/read.ts'
export type { Environment, Settings } from './config/settings.ts'
export { createMenshen } from './create-menshen.ts'
export { MenshenError, type Problem } from './errors.ts'
export type { Admitted, RequestSource, TokenExchange, WithHeaders } from './gateway/embedded.ts'
export { type AnswerWithCookies, addCookies } from './http/add-cookies.ts'
export { sendAnswer } from './http/send.ts'
export type { Log } from './log.ts'
export type { Menshen } from './menshen.ts'
export type { MenshenOptions } from './options.ts'
export { isOwnPath } from './paths.ts'
export type { UserInfo } from './provider/user.ts'
export type { SessionData } from './session/record.ts'
export type { Hooks } from './sign-in/hooks.ts'
export type { UserSession as Session } from './sign-in/user-session.ts'
