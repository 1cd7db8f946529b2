// Random and mutated requests against a running gateway, and the judge of what came of them. A seed gives the same
// requests again.

import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { decodeJwt } from 'jose'
import { createClient, signIn } from '../kit/client.ts'
import { startInstance } from '../kit/instance.ts'
import { requireLinux } from '../kit/requirements.ts'
import { openScriptedProvider } from '../kit/scripted-provider.ts'
import { tempFolder } from '../kit/temp.ts'
import { type Blob, createGenerator } from './fuzz-requests.ts'
import { readResponses } from './fuzz-responses.ts'
import { createRandom } from './random.ts'

export interface Plan {
  seeds: readonly number[]
  /** For each seed. */
  requests: number
}

const RULES = [
  { path: '/internal', roles: ['developer'] },
  { path: '/public', public: true },
]
const AT_ONCE = 32
const SILENCE_MS = 120
const LONGEST_MS = 5000
const CHECK_EVERY = 200
const REMEMBERED_BATCHES = 4
const USERS = ['admin', 'zhangsan', 'lisi'] as const
const IDENTITY = ['user', 'email', 'preferred-username', 'role', 'groups'].map(name => `x-forwarded-${name}`)
const ASSERTION = 'x-menshen-assertion'
/** What is wrong with a callback that the visitor made up; `callback_error` if its parameters are there twice. */
const VISITORS_OWN: unknown[] = ['missing_code', 'invalid_state', 'unknown_error', 'callback_error']
const FAILURES = ['request_failed', 'upgrade_failed', 'upstream_failed', 'sign_in_failed']

export async function fuzz(t: TestContext, { seeds, requests }: Plan) {
  const violations: string[] = []
  const blobs = new Set<Blob>()
  const known = new Map<string, Blob>()
  /** Whose each ticket is or was. */
  const owners = new Map<string, string>()
  let hits = 0

  const application = createServer((request, response) => {
    hits += 1
    for (const complaint of judge(request)) violations.push(`${complaint}: ${request.method} ${request.url}`)
    request.resume()
    response.on('error', () => {}).end('fine')
  })
  application.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // A gateway whose visitor has gone may go too, in the middle of a request.
    const isGone = error.code === 'ECONNRESET' || error.code === 'HPE_INVALID_EOF_STATE' || error.code === 'EPIPE'
    if (!isGone) violations.push(`the gateway sent the application something that is not a request: ${error.code}`)
    socket.destroy()
  })
  application.listen(0, '127.0.0.1')
  await once(application, 'listening')
  t.after(() => {
    application.close()
    application.closeAllConnections()
  })

  /** What no request may bring about at the application. */
  function judge({ method, url = '', headers, rawHeaders }: IncomingMessage): string[] {
    // The doctor asks whether the application is there, whether it is Menshen, and whether it has a login page.
    const isProbe = method === 'HEAD' || (method === 'GET' && ['/_menshen/doctor', '/login'].includes(url))
    if (isProbe && headers['user-agent'] === 'menshen doctor' && !('x-fuzz' in headers)) return []
    const complaints: string[] = []
    const values = (name: string) => rawHeaders.filter((_, i) => i % 2 === 1 && plain(rawHeaders[i - 1]) === name)
    const told = [...IDENTITY, ASSERTION].map(values)
    const user = told[0]?.[0]
    if (told.some(lines => lines.length > 1)) complaints.push('an identity header came twice')
    if (user === undefined && told.some(lines => lines.length > 0)) complaints.push('an identity without a user')
    if (user !== undefined) {
      const assertion = decodeJwt(headers[ASSERTION] as string)
      const nickname = decodeURIComponent(String(headers['x-forwarded-preferred-username']))
      const expected = [user, `${user}@example.com`, '张三', user === 'admin' ? 'developer' : 'common']
      const got = [assertion.username, headers['x-forwarded-email'], nickname, headers['x-forwarded-role']]
      if (expected.join() !== got.join() || assertion.role !== expected[3]) complaints.push(`not our identity: ${got}`)
    }
    if (ownCookie(headers.cookie)) complaints.push(`our cookie was forwarded: ${headers.cookie}`)

    const blob = known.get(String(headers['x-fuzz']))
    const senders = blob ? [blob] : [...blobs]
    const shown = senders.flatMap(({ bytes }) => [...owners].filter(([ticket]) => bytes.includes(ticket)))
    if (user !== undefined && !shown.some(([, owner]) => owner === user))
      complaints.push(`nobody showed ${user}'s ticket`)
    const path = readable(url)
    const below = (prefix: string) => path === prefix || path.startsWith(`${prefix}/`)
    if (below('/internal') && user !== 'admin') complaints.push(`${user ?? 'a visitor'} on a developer's page`)
    if (!below('/public') && user === undefined) complaints.push('a visitor on a protected page')
    return complaints
  }

  const provider = await openScriptedProvider(t)
  const folder = tempFolder(t)
  writeFileSync(join(folder, 'menshen.config.ts'), `export default ${JSON.stringify({ rules: RULES })}\n`)
  const gateway = await startInstance(
    {
      STORE: 'memory:',
      RATE_LIMIT_PER_MINUTE: '0',
      UPSTREAM: `http://127.0.0.1:${(application.address() as AddressInfo).port}`,
      // Otherwise a busy machine collects late, and what is garbage looks kept.
      NODE_OPTIONS: '--max-old-space-size=96',
      ...provider.settings,
    },
    { cwd: folder },
  )
  t.after(() => gateway.killAll('SIGKILL'))
  let ended = false
  gateway.exited.then(() => (ended = true))

  const tickets: string[] = []
  /** Fuzzing signs people out; who is out signs in again. */
  async function signInAgain(): Promise<void> {
    for (const [i, username] of USERS.entries()) {
      const headers = { cookie: `menshen_session=${tickets[i]}` }
      if (tickets[i] && (await createClient(gateway.url).get('/_menshen/me', { headers })).status === 200) continue
      const client = createClient(gateway.url)
      await signIn(client, provider, { username })
      tickets[i] = client.cookies.get('menshen_session') ?? ''
      owners.set(tickets[i], username)
    }
  }

  async function send(blob: Blob): Promise<void> {
    blobs.add(blob)
    for (const id of blob.ids) known.set(id, blob)
    const { bytes, cut } = await exchange(gateway.url, blob.bytes)
    const { responses, problem } = readResponses(bytes, blob.bytes.includes('HEAD'))
    const complain = (what: string) => violations.push(`${what}\n  ${JSON.stringify(blob.bytes.slice(0, 600))}`)
    if (problem && !(cut && problem === 'incomplete')) complain(`an answer does not parse: ${problem}`)
    for (const { status, headers } of responses) {
      counts.set(status, (counts.get(status) ?? 0) + 1)
      if (status >= 500) complain(`status ${status}`)
      const location = headers.get('location')
      if (location !== undefined && !isOurs(location, gateway.url, provider.url)) complain(`a redirect to ${location}`)
    }
  }

  const latest: Blob[][] = []
  /** What was sent can still reach the application a while after its sender has left. */
  function forget(batch: Blob[]): void {
    latest.push(batch)
    for (const blob of latest.length > REMEMBERED_BATCHES ? (latest.shift() ?? []) : []) {
      blobs.delete(blob)
      for (const id of blob.ids) known.delete(id)
    }
  }

  const counts = new Map<number, number>()
  await signInAgain()
  const rssBefore = residentMb(gateway.workers()[0] ?? 0)
  const rssAfterSeeds: number[] = []
  const began = performance.now()
  let sent = 0
  let sinceCheck = 0
  for (const seed of seeds) {
    const generate = createGenerator(createRandom(seed), { tickets, url: gateway.url, name: `s${seed}` })
    let left = requests
    while (left > 0 && !ended && violations.length < 20) {
      const batch: Blob[] = []
      while (batch.length < AT_ONCE && left > 0) {
        const blob = generate()
        batch.push(blob)
        left -= blob.ids.length
        sent += blob.ids.length
        sinceCheck += blob.ids.length
      }
      await Promise.all(batch.map(send))
      forget(batch)
      if (sinceCheck < CHECK_EVERY) continue
      sinceCheck = 0
      if (!ended) await signInAgain()
    }
    if (!ended) rssAfterSeeds.push(residentMb(gateway.workers()[0] ?? 0))
  }
  const failures = gateway.lines.filter(({ event, error, err, reason, count }) => {
    const isVisitorsOwn = err === undefined && VISITORS_OWN.includes(reason)
    // A line with a count stands for lines like one that is there, too.
    return FAILURES.includes(event) && error === undefined && count === undefined && !isVisitorsOwn
  })
  for (const line of failures.slice(0, 5)) violations.push(`logged: ${JSON.stringify(line)}`)
  return {
    violations,
    sent,
    hits,
    ended,
    counts: Object.fromEntries([...counts].sort(([a], [b]) => a - b)),
    seconds: (performance.now() - began) / 1000,
    rssBefore,
    /** In MB, after each seed. */
    rssAfterSeeds,
  }
}

/** Everything that comes back until the other side closes, or has nothing more to say: then `cut`. */
async function exchange(url: string, bytes: string): Promise<{ bytes: Buffer; cut: boolean }> {
  const chunks: Buffer[] = []
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  let cut = false
  const leave = () => {
    cut = true
    socket.destroy()
  }
  // Not `once` of node:events, which takes a reset for a failure.
  const closed = new Promise(resolve => socket.once('close', resolve))
  socket.on('error', () => {})
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  socket.setTimeout(SILENCE_MS, leave)
  const longest = setTimeout(leave, LONGEST_MS)
  socket.write(bytes, 'latin1')
  await closed
  clearTimeout(longest)
  return { bytes: Buffer.concat(chunks), cut }
}

/** As the most generous application would read it. */
function readable(target: string): string {
  let path = target.replace(/[?#].*$/s, '')
  for (let i = 0; i < 3; i++)
    path = path.replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
  const plainPath = path
    .replace(/;[^/]*/g, '')
    .replace(/[\\/]+/g, '/')
    .toLowerCase()
  return new URL(plainPath.replace(/[?#]/g, '_'), 'http://application').pathname
}

const ownCookie = (header = '') =>
  header.split(';').some(pair => /^\s*menshen_(session|return|attempt|fragment)\s*(=|$)/i.test(pair))

const plain = (name = '') => name.toLowerCase().replace(/[^a-z0-9]/g, '-')

function isOurs(location: string, own: string, provider: string): boolean {
  if (!URL.canParse(location, own)) return false
  const { origin, pathname } = new URL(location, own)
  return origin === own || (origin === provider && pathname === '/oauth/authorize')
}

function residentMb(pid: number): number {
  requireLinux('/proc')
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024)
}
