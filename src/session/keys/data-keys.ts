// The data keys: made once and kept in the store, wrapped under each of our secrets, so that a secret can be replaced while
// everything that was labelled and sealed with them stays in its place.
import type { Report } from '../../events.ts'
import type { Store, Stored } from '../../stores/store.ts'
import { type DataKeys, SESSION_LABEL } from '../session-record.ts'
import type { DerivedKeys } from './derived-keys.ts'
import {
  decodeWrappers,
  encodeWrappers,
  hasOtherKeys,
  newDataKeys,
  openAllWrappers,
  openWrappers,
  renewWrappers,
  sameWrappers,
  type Wrapper,
} from './key-wrappers.ts'

export interface DataKeyring {
  /** The keys that all instances share, as the store has them now. */
  current(): Promise<DataKeys>
  /** What `current` gave last. */
  latest(): DataKeys | undefined
  /** Our secrets have changed: the next `current` wraps for the new ones what it has. */
  use(keys: WrappingKeys): void
}

type WrappingKeys = Pick<DerivedKeys, 'wrapping' | 'formerWrapping' | 'formerDataKeys'>

interface DataKeyringOptions {
  readonly store: Store
  readonly keys: WrappingKeys
  readonly now: () => number
  readonly report: Report
}

/**
 * Those of a store, without changing anything there: for whoever only looks at it. None if none of our secrets opens them;
 * new ones where there are none yet, and so nothing that they would have to open. More than one, the oldest first, after a
 * start with another secret.
 */
export async function readDataKeys(
  store: Pick<Store, 'read'>,
  { wrapping, formerWrapping }: Pick<DerivedKeys, 'wrapping' | 'formerWrapping'>,
): Promise<DataKeys[]> {
  const stored = await store.read(STORE_KEY)
  if (!stored) return [newDataKeys()]
  return openAllWrappers(decodeWrappers(stored.value) ?? [], [...wrapping, ...formerWrapping])
}

/** What our secrets open in a store, without changing anything there. */
export type DataKeysState =
  /** There are none yet, or a newer version has written them. */
  | { readonly kind: 'unknown' }
  /** None of our secrets opens them. */
  | { readonly kind: 'closed' }
  /** `hasOthers`: beside ours there are data keys of a secret that we do not have. */
  | { readonly kind: 'open'; readonly keys: readonly DataKeys[]; readonly hasOthers: boolean }

export async function inspectDataKeys(
  store: Pick<Store, 'read'>,
  { wrapping, formerWrapping }: Pick<DerivedKeys, 'wrapping' | 'formerWrapping'>,
): Promise<DataKeysState> {
  const stored = await store.read(STORE_KEY)
  const wrappers = stored && decodeWrappers(stored.value)
  if (!wrappers || wrapping.length === 0) return { kind: 'unknown' }
  const keys = openAllWrappers(wrappers, [...wrapping, ...formerWrapping])
  return keys.length > 0 ? { kind: 'open', keys, hasOthers: hasOtherKeys(wrappers, keys) } : { kind: 'closed' }
}

const STORE_KEY = 'data-keys'
const CENTURY_MS = 100 * 365 * 24 * 3_600_000

export function createDataKeyring({ store, keys, now, report }: DataKeyringOptions): DataKeyring {
  let { wrapping, formerWrapping, formerDataKeys } = keys
  // Without a secret there is nothing that could open them again: they are ours alone, and end with this process.
  let own = wrapping.length === 0 ? newDataKeys() : undefined
  let isRenewed = false
  let known: { readonly dataKeys: DataKeys; readonly version: number } | undefined
  const told = new Set<string>()

  function tellOnce(code: 'data_keys_closed' | 'newer_format'): void {
    if (!told.has(code)) report(code, { record: STORE_KEY })
    told.add(code)
  }

  const toEntry = (wrappers: readonly Wrapper[]) => ({
    value: encodeWrappers(wrappers),
    expiresAt: now() + CENTURY_MS,
    labels: [],
  })

  /** A store that was emptied gets those that we have; one that is older than data keys, those that it was filled with. */
  async function create(): Promise<void> {
    const dataKeys = known?.dataKeys ?? (await formerKeys()) ?? newDataKeys()
    // Of all instances that try, one succeeds, and the others open what it made.
    await store.create(STORE_KEY, toEntry(renewWrappers([], wrapping, dataKeys)))
  }

  async function formerKeys(): Promise<DataKeys | undefined> {
    const { entries, next } = await store.list({ label: SESSION_LABEL, limit: 1 })
    return entries.length > 0 || next !== undefined ? formerDataKeys : undefined
  }

  /** The keys in use from now on; `undefined` if others changed the store's meanwhile. */
  async function open({ value, version }: Stored): Promise<DataKeys | undefined> {
    const wrappers = decodeWrappers(value)
    if (!wrappers) tellOnce('newer_format')
    const opened = wrappers && openWrappers(wrappers, [...wrapping, ...formerWrapping])
    if (wrappers && !opened) tellOnce('data_keys_closed')
    const dataKeys = opened ?? known?.dataKeys ?? newDataKeys()
    // Once for each change of ours: instances whose lists differ would go on for ever, and a secret that others have taken
    // away while we ran is not for us to bring back.
    const renewed = wrappers && !isRenewed ? renewWrappers(wrappers, wrapping, dataKeys) : undefined
    const isChanged = wrappers && renewed && !sameWrappers(renewed, wrappers)
    if (isChanged && !(await store.replace(STORE_KEY, toEntry(renewed), version))) return undefined
    known = { dataKeys, version }
    isRenewed = true
    return dataKeys
  }

  return {
    latest: () => own ?? known?.dataKeys,
    use(keys) {
      ;({ wrapping, formerWrapping, formerDataKeys } = keys)
      if (wrapping.length > 0) own = undefined
      isRenewed = false
    },
    async current() {
      if (own) return own
      // Every sign-in asks for them: to read and unpack what is known already would be in vain.
      if (known && isRenewed && store.holds(STORE_KEY, known.version)) return known.dataKeys
      for (;;) {
        const stored = await store.read(STORE_KEY)
        if (stored && known?.version === stored.version && isRenewed) return known.dataKeys
        const opened = stored ? await open(stored) : await create()
        if (opened) return opened
      }
    },
  }
}
