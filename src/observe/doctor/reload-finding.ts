// What became of the last reload, for the console.
import { phrase } from '../../phrases.ts'
import { type Finding, good, warning } from './finding.ts'

/** Times are milliseconds since 1970. */
export interface ReloadStatus {
  /** When the configuration was read anew and used. */
  reloadedAt?: number
  /** One that was refused since then. */
  refused?: { readonly at: number; readonly file: string; readonly detail: string } | undefined
}

/** Nothing where nothing was read since the start. */
export function reloadFindings({ reloadedAt, refused }: ReloadStatus): Finding[] {
  const timeOf = (at: number) => new Date(at).toISOString()
  if (refused)
    return [
      warning(
        'reload',
        phrase('reload_refused', { time: timeOf(refused.at), file: refused.file, detail: refused.detail }),
        phrase('correct_file'),
      ),
    ]
  return reloadedAt === undefined ? [] : [good('reload', phrase('reloaded', { time: timeOf(reloadedAt) }))]
}
