// What has been proven since the files last changed. Every write begins a new generation; while it is the same one, a
// record that was looked up still is what it was, and one look at the generation serves all requests of an event turn.
//
// Requests that are heard in one turn had arrived before it: none of them can follow from something that another process
// has done since. A timer's turn is another matter: the requests that are heard next arrive after it. So a look serves the
// callback that it is made in, and only if that is a request's, all that come until the turn is over.

export interface Proofs {
  /** A request has just been heard. */
  beginTurn(): void
  /** Makes reads see what all processes have done up to now, or up to a look that still serves. */
  look(): void
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
  /** Makes reads see what all processes have done up to now, and gives the generation. */
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
  let isTurnOfRequests = false
  let hasLooked = false

  function beginTurn(): void {
    if (isTurnOfRequests) return
    isTurnOfRequests = true
    hasLooked = false
    setImmediate(() => {
      isTurnOfRequests = false
      hasLooked = false
    })
  }

  function lookAgain(): void {
    hasLooked = false
  }

  function look(): void {
    if (hasLooked) return
    const latest = readGeneration()
    if (latest !== generation || proven.size > MOST_PROOFS) proven.clear()
    generation = latest
    // Only now: after a look that failed, nothing is proven.
    hasLooked = true
    if (!isTurnOfRequests) process.nextTick(lookAgain)
  }

  function prove(key: string): Proof | undefined {
    const found = lookUp(key)
    if (found) proven.set(key, found)
    return found
  }

  return {
    beginTurn,
    look,
    lookAgain,
    holds(key, version) {
      look()
      const proof = proven.get(key) ?? prove(key)
      return proof !== undefined && proof.version === version && proof.expiresAt > now()
    },
  }
}
