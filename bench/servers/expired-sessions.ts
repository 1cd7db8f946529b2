// How many expired records an embedded store still has, read beside whoever sweeps them.

import { open } from 'lmdb'

export interface ExpiredSessions extends AsyncDisposable {
  count(): number
}

export function watchExpired(directory: string): ExpiredSessions {
  const root = open({ path: directory, readOnly: true, noSubdir: false })
  const byExpiry = root.openDB<Buffer, [expiresAt: number, key: string]>('byExpiry', { encoding: 'binary' })
  return {
    count() {
      byExpiry.resetReadTxn()
      return byExpiry.getKeysCount({ end: [Date.now(), ''] })
    },
    [Symbol.asyncDispose]: () => root.close(),
  }
}
