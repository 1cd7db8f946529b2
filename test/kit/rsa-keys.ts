// RSA key pairs for tests. A new pair takes up to a second of processor time, so the pairs are kept for the next test file and
// the next run.
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { CryptoKey } from 'jose'

const FOLDER = fileURLToPath(new URL('../../node_modules/.cache/menshen-test-keys', import.meta.url))
const RS256 = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }

let taken = 0
/** Pairs of tests that have ended. */
const free: number[] = []

/** A pair that nothing else in this process has: until the end of the test, or for ever without one. */
export function takeRsaPair(t?: Pick<TestContext, 'after'>): {
  readonly publicKey: KeyObject
  readonly privateKey: KeyObject
} {
  const number = free.pop() ?? taken++
  t?.after(() => void free.push(number))
  const file = join(FOLDER, `${number}.pem`)
  const privateKey = readKey(file) ?? createKey(file)
  return { publicKey: createPublicKey(privateKey), privateKey }
}

/** The same for code that expects keys of the Web Crypto API. */
export function takeRs256Pair(t?: Pick<TestContext, 'after'>) {
  const { publicKey, privateKey } = takeRsaPair(t)
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
