// The library's door: what other programs may import.
export type { Menshen } from './create.ts'
export { MenshenError } from './errors.ts'
export { createMenshen } from './library/create-menshen.ts'
export type { MenshenOptions } from './library/options.ts'
export type { Log } from './log.ts'
export { type Config, defineConfig, type Role, type Rule } from './settings/config/config-file.ts'
export { type Environment, readSettings, type Settings } from './settings/read.ts'
