// How many expired records an embedded store still has, read beside the process that sweeps them.

import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

export interface ExpiredSessions extends AsyncDisposable {
  count(): number
}

export function watchExpired(directory: string): ExpiredSessions {
  const database = new DatabaseSync(join(directory, 'menshen.db'), { readOnly: true })
  const expired = database.prepare('SELECT count(*) AS count FROM records WHERE expires_at <= ?')
  return {
    count: () => Number(expired.get(Date.now())?.count),
    [Symbol.asyncDispose]: async () => database.close(),
  }
}
