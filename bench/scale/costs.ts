// The costs that the simulation uses: what the benchmarks measured, in seconds and bytes.

/** The cost of one check, sign-in or refresh. */
interface Cost {
  readonly menshen: number
  readonly redis: number
  readonly commands: number
  readonly bytes: number
}

export interface Costs {
  /** A check of a session that is in the cache. */
  readonly check: Pick<Cost, 'menshen'>
  /** A check of a session that has to be read from Redis. */
  readonly cold: Cost
  readonly signIn: Cost
  readonly refresh: Cost
  /** Notifying one process of a change. */
  readonly invalidation: Pick<Cost, 'redis' | 'bytes'>
  readonly sessionInRedis: number
  readonly sessionInCache: number
  readonly memoryAtStart: number
}

/** Throws an error that names what was not measured yet. */
export function readCosts(measured: Readonly<Record<string, number>>): Costs {
  function value(name: string): number {
    const given = measured[name]
    if (given === undefined || !Number.isFinite(given)) {
      throw new Error(`"${name}" has not been measured: run npm run bench, or -- check redis memory --keep`)
    }
    return given
  }
  const cost = (what: string): Cost => ({
    menshen: value(`${what}, CPU µs`) / 1e6,
    redis: value(`${what}, Redis µs`) / 1e6,
    commands: value(`${what}, Redis commands`),
    bytes: value(`${what}, bytes received`) + value(`${what}, bytes sent`),
  })
  return {
    check: { menshen: value('check on redis, CPU µs') / 1e6 },
    cold: cost('check on redis, not cached'),
    signIn: cost('sign-in on redis'),
    refresh: cost('refresh on redis'),
    invalidation: { redis: value('invalidation, Redis µs') / 1e6, bytes: value('invalidation, bytes sent') },
    sessionInRedis: value('session in Redis, bytes'),
    sessionInCache: value('memory of a session in the cache, bytes'),
    memoryAtStart: value('memory at the start, bytes'),
  }
}
