// What has been proven since the files last changed. Every write begins a new generation; while it is the same one, a
// record that was looked up still is what it was, and one look at the generation serves all requests of an event turn.

export interface Proofs {
  /** From now on, the reads of this turn see what all processes had done when it began. */
  beginTurn(): void
  /** Whether the record is known to have this version, looking it up only if something has changed. */
  holds(key: string, version: number): boolean
  /** Something may have changed in the middle of a turn. */
  lookAgain(): void
}

interface Proof {
  readonly version: number
  readonly expiresAt: number
}

interface ProofsOptions {
  /** Makes the reads of this turn see what all processes have done up to now, and gives the generation. */
  readGeneration(): number
  lookUp(key: string): Proof | undefined
  now(): number
}

/** More than any cache of opened sessions asks about between two writes. */
const MOST_PROOFS = 100_000

export function createProofs({ readGeneration, lookUp, now }: ProofsOptions): Proofs {
  // No `lru-cache`: every write empties it, and a bounded cache takes as long for that as it is large.
  const proven = new Map<string, Proof>()
  let generation: number | undefined
  let turnBegan = false

  function beginTurn(): void {
    if (turnBegan) return
    const latest = readGeneration()
    if (latest !== generation || proven.size > MOST_PROOFS) proven.clear()
    generation = latest
    // Only now: after a look that failed, nothing is proven.
    turnBegan = true
    setImmediate(() => {
      turnBegan = false
    })
  }

  function prove(key: string): Proof | undefined {
    const found = lookUp(key)
    if (found) proven.set(key, found)
    return found
  }

  return {
    beginTurn,
    holds(key, version) {
      beginTurn()
      const proof = proven.get(key) ?? prove(key)
      return proof !== undefined && proof.version === version && proof.expiresAt > now()
    },
    lookAgain() {
      turnBegan = false
    },
  }
}
