// The doctor's question to the Menshen that runs at BASE_URL: what of my request has arrived at you? Only whoever has our
// secret can ask it, and only we can answer it.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { KeyList } from '../../session/keys/derived-keys.ts'

export const QUESTION_HEADER = 'x-menshen-doctor'
/** Clocks of the machines behind one address may be a little apart. */
const VALID_MS = 60_000

export function newQuestion([key]: KeyList, now: number): string {
  const said = `${now}.${randomBytes(16).toString('base64url')}`
  return `${said}.${sign(key, 'question', said)}`
}

/** The proof that goes with the answer; `undefined` if nobody with our secret asked this, or not just now. */
export function proofFor(question: string, keys: KeyList, now: number): string | undefined {
  const [, said, askedAt, signature] = /^((\d{1,15})\.[\w-]{22})\.([\w-]{43})$/.exec(question) ?? []
  if (said === undefined || signature === undefined || Math.abs(now - Number(askedAt)) > VALID_MS) return undefined
  const key = keys.find(one => isSame(signature, sign(one, 'question', said)))
  return key && sign(key, 'answer', question)
}

export function isProof(proof: string, question: string, [key]: KeyList): boolean {
  return isSame(proof, sign(key, 'answer', question))
}

function sign(key: Uint8Array, purpose: 'question' | 'answer', said: string): string {
  return createHmac('sha256', key).update(`${purpose} ${said}`).digest('base64url')
}

function isSame(given: string, right: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(right)]
  return one.length === other.length && timingSafeEqual(one, other)
}
