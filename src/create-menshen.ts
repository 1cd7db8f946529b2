// createMenshen and defineConfig as applications import them. What they start and check is loaded by the first call, so that
// `import 'menshen'` is fast.

import type { Config } from './config/file.ts'
import type { DEFAULT_ROLE, DefaultRole, Role } from './config/role-names.ts'
import type { Menshen } from './menshen.ts'
import type { MenshenOptions } from './options.ts'

/** Starts Menshen inside this program. Rejects with a MenshenError that says what to change. */
export async function createMenshen<R extends Role = DefaultRole, F extends string = never>(
  options: MenshenOptions<R, F> = {},
): Promise<Menshen<R | typeof DEFAULT_ROLE, F>> {
  const { startMenshen } = await import('./options.ts')
  return startMenshen(options)
}

/** Types a configuration: its rules can name the roles that it defines, and no others. */
export function defineConfig<R extends Role = DefaultRole, F extends string = never>(
  config: Config<R, F>,
): Config<R, F> {
  return config
}
