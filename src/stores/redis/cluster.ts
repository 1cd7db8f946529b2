// A connection to a cluster. Records are read from their primaries each time: the cache of single.ts is right because one
// server puts answers and invalidations in order, and here there are several. A lease could be seen to be free before it
// is known that its session has changed.

import { RedisCluster } from 'redis'
import { inTime } from '../deadline.ts'
import { COMMAND_OPTIONS, clientOptions, DEADLINE_MS } from './client-options.ts'
import { commandsOf } from './commands.ts'
import { type Connect, superviseConnection } from './connection.ts'
import type { ClusterAddress } from './redis-address.ts'
import { scripts } from './scripts.ts'
import { tlsOptionsOf } from './tls-options.ts'

const NO_CACHE = undefined
/** At a node that hangs: whatever comes on top fails at once. */
const MOST_WAITING = 10_000

const makeCluster = RedisCluster.factory({ scripts })

export function toCluster(address: ClusterAddress): Connect {
  // The cluster itself names its nodes, and each has to prove the name or address that it has there.
  const tls = tlsOptionsOf(address)()
  return async () => {
    const cluster = makeCluster({
      rootNodes: address.hosts.map(host => ({ socket: { ...host, ...tls } })),
      defaults: { ...clientOptions(address, tls), commandsQueueMaxLength: MOST_WAITING },
    })
    // Of one node of several; connect() would only say that none of them is available.
    let reason: unknown
    cluster.on('error', error => {
      reason = error
    })
    try {
      await inTime(cluster.connect(), DEADLINE_MS)
    } catch (error) {
      cluster.destroy()
      throw reason ?? error
    }
    const connection = superviseConnection(
      cluster,
      commandsOf(cluster.withCommandOptions(COMMAND_OPTIONS), address.prefix),
      NO_CACHE,
    )
    cluster.on('node-error', connection.lose)
    return connection
  }
}
