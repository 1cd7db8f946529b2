// A connection to a cluster. Its records are read from their primaries each time: node-redis does not tell which of its
// connections to the nodes an invalidation came from, or was lost with, when it follows records from node to node.

import { createCluster } from 'redis'
import type { ClusterAddress } from './address.ts'
import { commandsOf, scripts } from './commands.ts'
import { type Connect, superviseConnection } from './connection.ts'
import { inTime } from './deadline.ts'
import { COMMAND_OPTIONS, clientOptions } from './options.ts'

const NO_CACHE = 0
/** To one node that hangs; whatever comes on top of them fails at once. */
const MOST_WAITING = 10_000

export function toCluster(address: ClusterAddress): Connect {
  return async () => {
    const cluster = createCluster({
      rootNodes: address.hosts.map(socket => ({ socket })),
      defaults: { ...clientOptions(address, {}), commandsQueueMaxLength: MOST_WAITING },
      commandOptions: COMMAND_OPTIONS,
      scripts,
    })
    cluster.on('error', () => {}) // a node of several; if it matters, connect() says it too
    try {
      await inTime(cluster.connect())
    } catch (error) {
      cluster.destroy()
      throw error
    }
    const connection = superviseConnection(cluster, commandsOf(cluster), NO_CACHE)
    cluster.on('node-error', connection.lose)
    return connection
  }
}
