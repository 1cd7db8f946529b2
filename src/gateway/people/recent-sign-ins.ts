// The last sign-ins of one person, as the audit trail tells them, and which of them came from a device that was new.
import type { LoadedSession } from '../../session/session-cache.ts'
import type { GatewayContext } from '../context.ts'

export interface RecentSignIn {
  readonly time: number
  readonly device: string
  readonly address: string | undefined
  /** No earlier one that is known came from this device and this address. */
  readonly isNew: boolean
}

const SHOWN = 10
/** So many are compared. */
const COMPARED = 50
/** Others may have the same `sub` at another provider: theirs are passed over. */
const MOST_PAGES = 4

export async function recentSignIns(
  { auditTrail, providers }: Pick<GatewayContext, 'auditTrail' | 'providers'>,
  { session }: LoadedSession,
  nameOf: (userAgent: string | undefined) => string,
): Promise<RecentSignIn[]> {
  const query = { event: 'sign_in', sub: session.userInfo.sub, limit: COMPARED }
  const provider = providers.get(session.provider)?.plan.id
  const found: Omit<RecentSignIn, 'isNew'>[] = []
  let before: string | undefined
  for (let n = 0; n < MOST_PAGES && found.length < COMPARED; n++) {
    const page = await auditTrail.find(before === undefined ? query : { ...query, before })
    for (const { time, facts } of page.events)
      if (facts.provider === provider)
        found.push({ time, device: nameOf(textOf(facts.userAgent)), address: textOf(facts.address) })
    before = page.next
    if (before === undefined) break
  }
  const marked = found.map((one, n) => ({ ...one, isNew: isNew(one, found.slice(n + 1)) }))
  return marked.slice(0, SHOWN)
}

/** The first of all is nobody's new device. */
function isNew(
  { device, address }: Omit<RecentSignIn, 'isNew'>,
  earlier: readonly Omit<RecentSignIn, 'isNew'>[],
): boolean {
  return earlier.length > 0 && !earlier.some(other => other.device === device && other.address === address)
}

function textOf(fact: unknown): string | undefined {
  return typeof fact === 'string' ? fact : undefined
}
