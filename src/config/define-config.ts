// defineConfig, apart from the checks of a configuration: applications import it without them.

import type { Config, DefaultRole, Role } from './file.ts'

/** Gives the file its types: the roles that it names, and no others, are those of its rules. */
export function defineConfig<R extends Role = DefaultRole, F extends string = never>(
  config: Config<R, F>,
): Config<R, F> {
  return config
}
