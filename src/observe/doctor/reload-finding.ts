// What became of the last reload, for the console.
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
        `the files are not what runs: refused ${timeOf(refused.at)}, ${refused.file}: ${refused.detail}`,
        'Correct the file. It is read again as soon as it changes.',
      ),
    ]
  return reloadedAt === undefined ? [] : [good('reload', `the files were read anew ${timeOf(reloadedAt)}`)]
}
