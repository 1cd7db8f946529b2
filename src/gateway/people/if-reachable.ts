// For pages that have something to say even while the store is away.
import { factsOf, MenshenError } from '../../errors.ts'
import type { GatewayContext } from '../context.ts'
import type { Visit } from '../http/request.ts'
import { whoAsks } from '../http/who-asks.ts'

/** What was asked of the store; `undefined`, and a line in the log, if it is away. */
export async function ifReachable<T>(
  context: Pick<GatewayContext, 'settings' | 'report'>,
  visit: Visit,
  asked: Promise<T>,
): Promise<T | undefined> {
  try {
    return await asked
  } catch (error) {
    if (!(error instanceof MenshenError) || error.code !== 'store_unavailable') throw error
    const { method, path } = visit
    context.report('request_failed', { ...factsOf(error), ...whoAsks(context, visit), method, path })
    return undefined
  }
}
