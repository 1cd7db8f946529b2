// What the users of a site do all day, each a choice of chance, and what they hold Menshen to: a page is theirs, an upload
// that was acknowledged is there, a stream lasts as long as the session, and a session ends when its user says so.

import { createHash, randomBytes } from 'node:crypto'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { type Client, cookieOf, createClient, type Response, signIn } from '../../kit/client.ts'
import type { ScriptedProvider } from '../../kit/scripted-provider.ts'
import type { Random } from '../../security/random.ts'
import { type DayRecord, isQuiet } from './record.ts'
import type { Site } from './site.ts'

const LARGEST_UPLOAD = 64 * 1024
/** How often each does something, at most. */
const THINK_MS = [300, 1900] as const
const STREAM_ENDS_WITHIN_SECONDS = 5
/** The application sends an event twice a second. */
const STREAM_SILENT_SECONDS = 10
/** Tickets that were given back and are tried again after each fault. */
const MOST_REMEMBERED = 60

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
  /** When each sign-in was confirmed. */
  readonly signIns: { readonly site: Site; readonly user: string; readonly at: number }[]
  /** Who found the session gone, and when. */
  readonly lost: { readonly site: Site; readonly user: string; readonly at: number }[]
  readonly counts: { [action: string]: number }
}

export function createPromises(): Promises {
  return { uploads: new Map(), signedOut: [], signIns: [], lost: [], counts: {} }
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
  // Another one at each sign-in, so that each can be found in the audit file.
  let name = ''
  let signIns = 0
  let isSignedIn = false
  let stream: OpenStream | undefined
  let uploaded = 0

  const actions: readonly (readonly [weight: number, name: string, act: () => Promise<void>])[] = [
    [73, 'page', readPage],
    [10, 'me', readMe],
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
    name = `${seat}.${++signIns}`
    expect(await client.get('/pages/home'), isSentToLogin)
    expect(await client.get('/login'), hasStatus(200))
    const answer = await signIn(client, provider, { username: name })
    const error = /^\/login\?error=(\w+)/.exec(answer.headers.location ?? '')?.[1]
    if (error) throw new Failure(`sign-in: ${error}`)
    expect(answer, hasStatus(302))
    isSignedIn = true
    promises.signIns.push({ site, user: name, at: record.now() })
  }

  async function readPage(): Promise<void> {
    const path = `/pages/${random.below(1000)}`
    const { text } = signedInAnswer(await client.get(path), 200)
    if (text !== `<p>${name} reads ${path}</p>`) throw new Failure(`another page: ${text.slice(0, 80)}`)
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
    const cookie = cookieOf(client)
    const left = stream
    if (left) left.mayEnd = true
    // Until it is answered, both is true: this user does not try the session again.
    isSignedIn = false
    try {
      const { status, headers } = await client.post('/logout', '', { headers: { cookie } })
      if (headers.location !== '/login') throw new Failure(String(status))
      promises.signedOut.push({ site, cookie })
      if (promises.signedOut.length > MOST_REMEMBERED) promises.signedOut.shift()
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

  /** Closes the browser without a sign-out: the session stays until its token expires. */
  async function leave(): Promise<void> {
    stream?.close()
    isSignedIn = false
  }

  function signedInAnswer(answer: Response, status: number): Response {
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
export async function checkPromises({ uploads, signedOut }: Promises, folder: string): Promise<string[]> {
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
  return broken
}

function streamOf(client: Client, url: string): Promise<IncomingMessage> {
  const headers = { cookie: cookieOf(client), accept: 'text/event-stream' }
  return new Promise((resolve, reject) => {
    get(`${url.replace('localhost', '127.0.0.1')}/events`, { headers, agent: false }, resolve).on('error', reject)
  })
}

function isSentToLogin({ status, headers }: Response): boolean {
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
  const { code, name, message } = error as NodeJS.ErrnoException
  return code ?? `${name}: ${message}`
}
