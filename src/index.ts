// The library's door: what other programs may import.
export type { Menshen } from './create.ts'
export { MenshenError } from './errors.ts'
export { type AnswerWithCookies, addCookies } from './gateway/embedded/add-cookies.ts'
export type { Admitted } from './gateway/embedded/embedded.ts'
export type { RequestSource, WithHeaders } from './gateway/embedded/request-head.ts'
export { sendAnswer } from './gateway/embedded/send-answer.ts'
export type { UserSession as Session } from './gateway/embedded/user-session.ts'
export type { Hooks } from './gateway/hooks.ts'
export { createMenshen } from './library/create-menshen.ts'
export type { MenshenOptions } from './library/options.ts'
export type { Log } from './log.ts'
export { isOwnPath } from './own-paths.ts'
export type { UserInfo } from './provider/user-facts.ts'
export type { SessionData } from './session/session-record.ts'
export {
  type Config,
  defineConfig,
  type Role,
  type RoleConfig,
  type Rule,
  type UsualRole,
} from './settings/config/config-file.ts'
export type { ProviderConfig } from './settings/config/provider-config.ts'
export { type Environment, readSettings, type Settings } from './settings/read.ts'
