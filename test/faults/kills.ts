// kill -9 and a new start, again and again, while users sign in and out.

import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { freePort } from '../kit/free-port.ts'
import { type Instance, isSentToLogin, isServed, type SignedInUser, setUpInstances, signedIn } from '../kit/instance.ts'

const USERS_AT_ONCE = 8
/** How much is answered before the next kill, at least. */
const ANSWERS_BETWEEN = 12

export interface Outcome {
  readonly signIns: number
  readonly signOuts: number
  /** How long each new start took until it was ready, the shortest first. */
  readonly startsMs: readonly number[]
}

/** Fails if an answered sign-in was lost, or an answered sign-out was undone. */
export async function signInUnderKills(t: TestContext, kills: number): Promise<Outcome> {
  const PORT = String(await freePort())
  const { provider, start } = await setUpInstances(t, { PORT })
  const signedInUsers = new Set<SignedInUser>()
  const signedOutUsers = new Set<SignedInUser>()
  const startsMs: number[] = []
  let signIns = 0
  let signOuts = 0
  let menshen: Instance = await start()

  for (let kill = 0; kill < kills; kill++) {
    let answers = 0
    let isDead = false
    const enough = Promise.withResolvers<void>()
    const answered = () => {
      if (++answers === ANSWERS_BETWEEN) enough.resolve()
    }
    const comeAndGo = async (n: number) => {
      while (!isDead) {
        const user = await signedIn(menshen, provider)
        signIns += 1
        signedInUsers.add(user)
        answered()
        // Every other one leaves; until that is answered, both is true.
        if (n % 2) continue
        signedInUsers.delete(user)
        const { headers } = await user.signOut(menshen)
        assert.equal(headers.location, '/login')
        signedOutUsers.add(user)
        signOuts += 1
        answered()
      }
    }
    const users = Array.from({ length: USERS_AT_ONCE }, (_, n) =>
      comeAndGo(n).catch((error: NodeJS.ErrnoException) => {
        assert.ok(['ECONNRESET', 'ECONNREFUSED'].includes(error.code ?? ''), `${error.stack}`)
      }),
    )
    const all = Promise.all(users)
    await Promise.race([enough.promise, all])
    isDead = true
    await menshen.kill('SIGKILL')
    await all
    menshen = await start()
    startsMs.push(Math.round(menshen.readyAfterMs))
    for (const user of signedInUsers) assert.ok(isServed(await user.get(menshen)), `lost after kill ${kill + 1}`)
    for (const user of signedOutUsers) assert.ok(isSentToLogin(await user.get(menshen)), `back after kill ${kill + 1}`)
    // The later ones are about the later kills.
    if (signedInUsers.size > 200) signedInUsers.clear()
    if (signedOutUsers.size > 200) signedOutUsers.clear()
  }
  return { signIns, signOuts, startsMs: startsMs.toSorted((a, b) => a - b) }
}
