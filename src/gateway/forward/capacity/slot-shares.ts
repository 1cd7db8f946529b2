// How many slots each owner holds. Counted only while slots are short: a request that finds one free asks nobody whose it is.

export interface SlotShares {
  /** Begins to count, with these. Does nothing while it counts. */
  begin(owners: () => Iterable<string>): void
  end(): void
  add(holder: Holder): void
  remove(holder: Holder): void
  /** Whether somebody holds so many that others are short of them. */
  readonly hasHog: boolean
  isHog(owner: string): boolean
  /** Whether somebody holds so few that they may have one on top. */
  hasFew(owner: string): boolean
}

interface Holder {
  readonly owner: string
}

export interface Share {
  /** From so many on, others are short of them. */
  readonly many: number
  /** Below so many, an owner may have one on top. */
  readonly few: number
}

export function createSlotShares({ many, few }: Share): SlotShares {
  let held: Map<string, number> | undefined
  let hogs = 0

  function change(owner: string, by: 1 | -1): void {
    if (!held) return
    const before = held.get(owner) ?? 0
    const after = before + by
    if (after > 0) held.set(owner, after)
    else held.delete(owner)
    if (before < many && after >= many) hogs++
    else if (before >= many && after < many) hogs--
  }

  return {
    begin(owners) {
      if (held) return
      held = new Map()
      hogs = 0
      for (const owner of owners()) change(owner, 1)
    },
    end() {
      held = undefined
      hogs = 0
    },
    add(holder) {
      if (held) change(holder.owner, 1)
    },
    remove(holder) {
      if (held) change(holder.owner, -1)
    },
    get hasHog() {
      return hogs > 0
    },
    isHog: owner => (held?.get(owner) ?? 0) >= many,
    hasFew: owner => (held?.get(owner) ?? 0) < few,
  }
}
