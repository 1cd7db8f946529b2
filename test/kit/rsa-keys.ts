// RSA key pairs for tests. A new pair takes up to a second of processor time, so the pairs are kept for the next test file and
// the next run.
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { CryptoKey } from 'jose'

const FOLDER = fileURLToPath(new URL('../../node_modules/.cache/menshen-test-keys', import.meta.url))
/** More than one test needs at the same time. */
const PAIRS = 8
const RS256 = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }

/** Processes that start together create different pairs. */
let next = process.pid % PAIRS

/** Different from the pairs that were taken before it, up to `PAIRS` of them. */
export function takeRsaPair(): { readonly publicKey: KeyObject; readonly privateKey: KeyObject } {
  next = (next + 1) % PAIRS
  const file = join(FOLDER, `${next}.pem`)
  const privateKey = readKey(file) ?? createKey(file)
  return { publicKey: createPublicKey(privateKey), privateKey }
}

/** The same for code that expects keys of the Web Crypto API. */
export function takeRs256Pair() {
  const { publicKey, privateKey } = takeRsaPair()
  return {
    publicKey: publicKey.toCryptoKey(RS256, true, ['verify']) as CryptoKey,
    privateKey: privateKey.toCryptoKey(RS256, true, ['sign']) as CryptoKey,
  }
}

function readKey(file: string): KeyObject | undefined {
  try {
    return createPrivateKey(readFileSync(file))
  } catch {
    return undefined
  }
}

function createKey(file: string): KeyObject {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  mkdirSync(FOLDER, { recursive: true })
  const written = `${file}.${process.pid}`
  writeFileSync(written, privateKey.export({ type: 'pkcs8', format: 'pem' }))
  // Another process reads all of it or nothing.
  renameSync(written, file)
  return privateKey
}
