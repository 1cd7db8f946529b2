// A store whose every answer is measured.
import type { Measure, MeasureAtOnce } from '../events.ts'
import type { Store } from '../stores/store.ts'

/** Without `measureAtOnce`, nothing is read at once. */
export function observedStore(store: Store, measure: Measure, measureAtOnce?: MeasureAtOnce): Store {
  const { readAtOnce } = store
  return {
    ...(readAtOnce && measureAtOnce && { readAtOnce: key => measureAtOnce('store', 'read', () => readAtOnce(key)) }),
    create: (key, entry) => measure('store', 'create', () => store.create(key, entry)),
    read: key => measure('store', 'read', () => store.read(key)),
    ...(store.beginTurn && { beginTurn: store.beginTurn }),
    // Without waiting, and so nothing to measure.
    holds: store.holds,
    replace: (key, entry, version) => measure('store', 'replace', () => store.replace(key, entry, version)),
    remove: key => measure('store', 'remove', () => store.remove(key)),
    take: key => measure('store', 'take', () => store.take(key)),
    list: query => measure('store', 'list', () => store.list(query)),
    newest: query => measure('store', 'newest', () => store.newest(query)),
    count: () => measure('store', 'count', () => store.count()),
    trail: {
      append: (events, keep) => measure('store', 'trail_append', () => store.trail.append(events, keep)),
      read: query => measure('store', 'trail_read', () => store.trail.read(query)),
    },
    ready: () => measure('store', 'ready', () => store.ready()),
    close: () => store.close(),
  }
}
