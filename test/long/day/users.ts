// What the users of a site do all day, each a choice of chance, and what they hold Menshen to: a page is theirs, an upload
// that was acknowledged is there, a stream lasts as long as the session, and a session ends when its user says so.

import { createHash, randomBytes } from 'node:crypto'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import * as http from 'node:http'
import { connect } from 'node:http2'
import * as https from 'node:https'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { type Client, cookieOf, createClient, type Response, signIn } from '../../kit/client.ts'
import type { ScriptedProvider } from '../../kit/scripted-provider.ts'
import type { Random } from '../../security/random.ts'
import { type DayRecord, isQuiet } from './record.ts'
import { HOST, type Site } from './site.ts'

const LARGEST_UPLOAD = 64 * 1024
/** How often each does something, at most. */
const THINK_MS = [300, 1900] as const
const STREAM_ENDS_WITHIN_SECONDS = 5
/** The application sends an event twice a second. */
const STREAM_SILENT_SECONDS = 10
/** Tickets that were given back and are tried again after each fault. */
const MAX_REMEMBERED = 60
/** The share of the users who have keys. */
const KEY_OWNERS = 0.25
/** A key takes a sign-in of the last ten minutes. */
const KEYS_WITHIN_SECONDS = 500
const MAX_REDIRECTS = 6
const ANSWERS_WITHIN_MS = 30_000

export interface Town {
  readonly record: DayRecord
  readonly provider: ScriptedProvider
  readonly random: Random
}

/** What users were promised, to be checked after each fault. */
export interface Promises {
  /** Digests by name. */
  readonly uploads: Map<string, string>
  readonly signedOut: { readonly site: Site; readonly cookie: string }[]
  readonly revoked: { readonly site: Site; readonly key: string }[]
  /** When each sign-in was confirmed. */
  readonly signIns: { readonly site: Site; readonly user: string; readonly at: number }[]
  /** Who found the session gone, and when. */
  readonly lost: { readonly site: Site; readonly user: string; readonly at: number }[]
  readonly counts: { [action: string]: number }
}

export function createPromises(): Promises {
  return { uploads: new Map(), signedOut: [], revoked: [], signIns: [], lost: [], counts: {} }
}

/** An answer that the user of a session must not get. */
class Failure extends Error {
  readonly kind: string
  constructor(kind: string) {
    super(kind)
    this.kind = kind
  }
}

/** A user who has not signed out is asked to sign in. */
class SessionLost extends Error {}

type Answer = Pick<Response, 'status' | 'text'> & { readonly headers: { readonly location?: string | undefined } }

/** A key of a user, as the user has it and as the account page lists it. */
interface PersonalKey {
  readonly text: string
  readonly id: string
}

/** What a browser sends when a user opens a page. */
const NAVIGATION = { accept: 'text/html', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }

interface OpenStream {
  /** When its last event came. */
  heardAt: number
  readonly ended: Promise<void>
  /** Whether its end would be no surprise. */
  mayEnd: boolean
  close(): void
}

/** Lives until it is over. */
export async function liveAs(
  seat: string,
  site: Site,
  { record, provider, random }: Town,
  promises: Promises,
  isOver: () => boolean,
): Promise<void> {
  let client = createClient(site.url)
  let atHost = createClient(site.url)
  let key: PersonalKey | undefined
  let keysMade = 0
  let signedInAt = 0
  // Another one at each sign-in, so that each can be found in the audit file. Who has keys keeps the name: the store keeps a record of
  // each owner for as long as their keys could be valid, which is longer than the day.
  let name = ''
  const hasKeys = random.chance(KEY_OWNERS)
  let signIns = 0
  let isSignedIn = false
  let stream: OpenStream | undefined
  let uploaded = 0
  /** Of a form of ours that a user has sent. */
  const ofPage = { ...NAVIGATION, 'sec-fetch-site': 'same-origin', 'sec-fetch-user': '?1', origin: site.url }

  const actions: readonly (readonly [weight: number, name: string, act: () => Promise<void>])[] = [
    [50, 'page', readPage],
    ...(site.url.startsWith('https:') ? ([[12, 'HTTP/2 page', readPageByHttp2]] as const) : []),
    [8, 'host page', readHostPage],
    ...(hasKeys ? ([[8 / KEY_OWNERS, 'key', useKey]] as const) : []),
    [8, 'me', readMe],
    [8, 'upload', upload],
    [7, 'stream', openStream],
    [1.3, 'sign-out', signOut],
    [0.7, 'leave', leave],
  ]

  while (!isOver()) {
    await pause(THINK_MS[0] + random.next() * (THINK_MS[1] - THINK_MS[0]))
    checkStream()
    if (isSignedIn) await attempt(...pickAction())
    else await attempt('sign-in', comeIn)
  }
  stream?.close()

  function pickAction(): [string, () => Promise<void>] {
    let rest = random.next() * actions.reduce((sum, [weight]) => sum + weight, 0)
    for (const [weight, action, act] of actions) {
      rest -= weight
      if (rest < 0) return [action, act]
    }
    return ['page', readPage]
  }

  async function attempt(action: string, act: () => Promise<void>): Promise<void> {
    const began = record.now()
    try {
      await act()
      record.answered(began, action === 'page')
      promises.counts[action] = (promises.counts[action] ?? 0) + 1
    } catch (error) {
      // What became of its refresh decides, at the end of the day.
      if (error instanceof SessionLost) promises.lost.push({ site, user: name, at: record.now() })
      else record.failed({ began, site: site.name, user: name, kind: kindOf(error), action })
    }
  }

  async function comeIn(): Promise<void> {
    client = createClient(site.url)
    atHost = createClient(site.url)
    name = hasKeys ? seat : `${seat}.${++signIns}`
    expect(await client.get('/pages/home'), isSentToLogin)
    expect(await client.get('/login'), hasStatus(200))
    const answer = await signIn(client, provider, { username: name })
    const error = /^\/login\?error=(\w+)/.exec(answer.headers.location ?? '')?.[1]
    if (error) throw new Failure(`sign-in: ${error}`)
    expect(answer, hasStatus(302))
    isSignedIn = true
    signedInAt = record.now()
    promises.signIns.push({ site, user: name, at: signedInAt })
  }

  function anyPath(folder = '/pages'): string {
    return `${folder}/${random.below(1000)}`
  }

  function expectOwnPage(path: string, answer: Answer): void {
    const { text } = signedInAnswer(answer, 200)
    if (text !== `<p>${name} reads ${path}</p>`) throw new Failure(`another page: ${text.slice(0, 80)}`)
  }

  async function readPage(): Promise<void> {
    const path = anyPath()
    expectOwnPage(path, await client.get(path))
  }

  async function readPageByHttp2(): Promise<void> {
    const path = anyPath()
    expectOwnPage(path, await getByHttp2(site.url, path, cookieOf(client)))
  }

  /** At the other host name; the first time its user is led there by way of the portal. */
  async function readHostPage(): Promise<void> {
    const path = anyPath()
    let answer = await atHost.get(path, { headers: { ...NAVIGATION, host: HOST } })
    for (let hops = 0; answer.headers.location && hops < MAX_REDIRECTS && !isSentToLogin(answer); hops++) {
      const { hostname, pathname, search } = new URL(answer.headers.location, `https://${HOST}`)
      const next = pathname + search
      answer =
        hostname === HOST
          ? await atHost.get(next, { headers: { ...NAVIGATION, host: HOST } })
          : await client.get(next, { headers: NAVIGATION })
    }
    expectOwnPage(path, answer)
  }

  /** Makes one, reads a page by it, or revokes it. */
  async function useKey(): Promise<void> {
    if (!key && record.now() - signedInAt < KEYS_WITHIN_SECONDS) return makeKey()
    if (!key) return
    if (random.chance(0.2)) return revokeKey()
    const path = anyPath('/api')
    expectOwnPage(path, await createClient(site.url).get(path, { headers: { authorization: `Bearer ${key.text}` } }))
  }

  async function makeKey(): Promise<void> {
    // Each has its own: a key whose revocation a fault prevented keeps its name.
    const form = { name: `key-${++keysMade}`, days: '1' }
    // A fault may have kept the answer about an earlier key from its owner.
    const before = await listKeys()
    const { text } = signedInAnswer(await client.post('/_menshen/account/keys', form, { headers: ofPage }), 200)
    const made = /<code>(mk_[\w-]{43})<\/code>/.exec(text)?.[1]
    const id = (await listKeys()).find(one => !before.includes(one))
    if (!made || !id) throw new Failure('a page without its key')
    key = { text: made, id }
  }

  async function listKeys(): Promise<string[]> {
    const { text } = signedInAnswer(await client.get('/_menshen/account'), 200)
    return [...text.matchAll(/name="key" value="([\da-f]{64})"/g)].map(([, id = '']) => id)
  }

  async function revokeKey(): Promise<void> {
    const old = key
    // Until it is answered, both is true: this user does not use the key again.
    key = undefined
    if (!old) return
    const { status } = await client.post('/_menshen/account/keys/revoke', { key: old.id }, { headers: ofPage })
    if (status !== 303 && status !== 302) throw new Failure(String(status))
    promises.revoked.push({ site, key: old.text })
    if (promises.revoked.length > MAX_REMEMBERED) promises.revoked.shift()
  }

  async function readMe(): Promise<void> {
    const answer = signedInAnswer(await client.get('/_menshen/me'), 200)
    const { userInfo } = answer.json<{ userInfo: { username: string } }>()
    if (userInfo.username !== name) throw new Failure(`another user: ${userInfo.username}`)
  }

  async function upload(): Promise<void> {
    const body = randomBytes(1 + random.below(LARGEST_UPLOAD))
    const file = `${name}-${uploaded++}`
    const answer = signedInAnswer(await client.request({ method: 'PUT', path: `/uploads/${file}`, body }), 201)
    const digest = createHash('sha256').update(body).digest('hex')
    if (answer.text !== digest) throw new Failure('an upload that was changed')
    promises.uploads.set(file, digest)
  }

  async function openStream(): Promise<void> {
    if (stream) return
    const began = record.now()
    const response = await streamOf(client, site.url)
    if (response.statusCode !== 200) {
      response.resume()
      if (response.statusCode === 302 || response.statusCode === 401) throw loseSession()
      throw new Failure(String(response.statusCode))
    }
    const ended = new Promise<void>(resolve => response.on('error', () => {}).once('close', resolve))
    const opened: OpenStream = {
      ended,
      heardAt: began,
      mayEnd: false,
      close() {
        opened.mayEnd = true
        response.destroy()
      },
    }
    stream = opened
    let next = 0
    const lines = createInterface({ input: response })
    // Of a stream that is cut off: its end is told below.
    lines.on('error', () => {})
    lines.on('line', line => {
      opened.heardAt = record.now()
      if (line !== '' && line !== `data: ${next++}`) record.violated(`${name}: an event stream said ${line}`)
    })
    const user = name
    void ended.then(() => {
      if (stream === opened) stream = undefined
      if (opened.mayEnd || isOver()) return
      const since = Math.max(began, record.now() - 1)
      record.failed({ began: since, site: site.name, user, kind: 'stream ended', action: 'stream' })
    })
  }

  function checkStream(): void {
    if (!stream || record.now() - stream.heardAt < STREAM_SILENT_SECONDS) return
    record.violated(`${name}: an event stream is silent`)
    stream.close()
  }

  async function signOut(): Promise<void> {
    await revokeKey()
    const cookie = cookieOf(client)
    const left = stream
    if (left) left.mayEnd = true
    // Until it is answered, both is true: this user does not try the session again.
    isSignedIn = false
    try {
      const { status, headers } = await client.post('/logout', '', { headers: { cookie } })
      if (headers.location !== '/login') throw new Failure(String(status))
      promises.signedOut.push({ site, cookie })
      if (promises.signedOut.length > MAX_REMEMBERED) promises.signedOut.shift()
      if (left && !(await endsInTime(left))) throw new Failure('a stream outlived its session')
    } finally {
      left?.close()
    }
  }

  /** A stream stays while the store cannot be asked, so that its time counts from when the store was there again. */
  async function endsInTime({ ended }: OpenStream): Promise<boolean> {
    const isLate = () => pause(STREAM_ENDS_WITHIN_SECONDS * 1000, true)
    while (await Promise.race([ended, isLate()])) {
      const at = record.now()
      const ofStore = record.faults.filter(fault => fault.site === site.name && fault.expected.includes('503'))
      if (isQuiet(ofStore, at - STREAM_ENDS_WITHIN_SECONDS, at)) return false
    }
    return true
  }

  /** Closes the browser without a sign-out: the session stays until it is idle. */
  async function leave(): Promise<void> {
    await revokeKey()
    stream?.close()
    isSignedIn = false
  }

  function signedInAnswer<Given extends Answer>(answer: Given, status: number): Given {
    if (isSentToLogin(answer) || answer.status === 401) throw loseSession()
    if (answer.status !== status) throw new Failure(String(answer.status))
    return answer
  }

  function loseSession(): SessionLost {
    isSignedIn = false
    return new SessionLost()
  }
}

/** Says what was promised and is not so; `folder` is the application's. What was found is forgotten, so that a long day needs no more room than a short one. */
export async function checkPromises({ uploads, signedOut, revoked }: Promises, folder: string): Promise<string[]> {
  const broken: string[] = []
  for (const [name, digest] of uploads) {
    const path = join(folder, name)
    const found = existsSync(path) ? createHash('sha256').update(readFileSync(path)).digest('hex') : 'no file'
    if (found !== digest) broken.push(`the upload ${name} was acknowledged, and there is ${found}`)
    rmSync(path, { force: true })
    uploads.delete(name)
  }
  for (const { site, cookie } of [...signedOut]) {
    const answer = await createClient(site.url).get('/pages/again', { headers: { cookie } })
    if (!isSentToLogin(answer)) broken.push(`a ticket of ${site.name} that was given back gets ${answer.status}`)
  }
  for (const { site, key } of [...revoked]) {
    const { status } = await createClient(site.url).get('/api/again', { headers: { authorization: `Bearer ${key}` } })
    if (status !== 401) broken.push(`a key of ${site.name} that was revoked gets ${status}`)
  }
  return broken
}

function streamOf(client: Client, url: string): Promise<http.IncomingMessage> {
  const headers = { cookie: cookieOf(client), accept: 'text/event-stream' }
  const options = { headers, agent: false, rejectUnauthorized: false }
  const { get } = url.startsWith('https:') ? https : http
  return new Promise((resolve, reject) => {
    get(`${url.replace('localhost', '127.0.0.1')}/events`, options, resolve).on('error', reject)
  })
}

/** By a connection of its own. */
function getByHttp2(url: string, path: string, cookie: string): Promise<Answer> {
  const connection = connect(url.replace('localhost', '127.0.0.1'), { rejectUnauthorized: false })
  connection.setTimeout(ANSWERS_WITHIN_MS, () => connection.destroy(new Failure('no answer')))
  return new Promise<Answer>((resolve, reject) => {
    connection.on('error', reject)
    // A server that is killed ends its connections without a word.
    connection.on('close', () => reject(new Failure('ECONNRESET')))
    const stream = connection.request({ ':path': path, ':authority': new URL(url).host, cookie })
    stream.on('error', reject)
    stream.on('response', ({ ':status': status = 0, location }) => {
      const headers = { location }
      text(stream).then(content => resolve({ status, headers, text: content }), reject)
    })
  }).finally(() => connection.close())
}

function isSentToLogin({ status, headers }: Answer): boolean {
  return status === 302 && headers.location === '/login'
}

function hasStatus(status: number): (answer: Response) => boolean {
  return answer => answer.status === status
}

function expect(answer: Response, isSo: (answer: Response) => boolean): void {
  if (!isSo(answer)) throw new Failure(String(answer.status))
}

function kindOf(error: unknown): string {
  if (error instanceof Failure) return error.kind
  const { code, name, message, cause } = error as NodeJS.ErrnoException
  if (code?.startsWith('ERR_HTTP2_')) {
    // Either the connection could not be opened, or it was cut off.
    const { code: opening } = (cause ?? {}) as NodeJS.ErrnoException
    return opening ?? 'ECONNRESET'
  }
  return code ?? `${name}: ${message}`
}
