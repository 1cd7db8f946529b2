// What there is to say about a setting.
import type { Kind } from './kinds.ts'

export interface Row<T> extends Kind<T> {
  /** The text that counts when nothing is set; a row without one is `undefined` then. */
  readonly default?: string
  /** What the documentation says in place of a default that depends on other settings. */
  readonly defaultNote?: string
  readonly sentence: string
  /** The same in Chinese, with the same marks. */
  readonly sentenceZh: string
  /** Another value in a file counts as soon as it is read anew; all others wait for a restart. */
  readonly reloads?: true
}

export const optional = <T>(row: Row<T>): Row<T | undefined> => row
/** Always has a value. The documentation shows the default as the example, unless the row has an example of its own. */
export const required = <T>(row: Omit<Row<T>, 'example'> & { default: string; example?: string }): Row<T> => ({
  ...row,
  example: row.example ?? row.default,
})
