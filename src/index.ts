// The library's door: what other programs may import.
export { createMenshen, type Menshen, type MenshenOptions } from './create.ts'
export { MenshenError } from './errors.ts'
export type { Log } from './log.ts'
export { type Config, defineConfig, type Role, type Rule } from './settings/config/config-file.ts'
export { type Environment, readSettings, type Settings } from './settings/read.ts'
