// HTTP/2: a signed-in request against a bare node:http2 server with the same bytes, and gRPC calls against a bare proxy.

import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { freePort } from '../../test/kit/free-port.ts'
import { makeAuthority, makeCertificate } from '../../test/proxies/certificates.ts'
import { type Contender, contestAgainstLast } from '../measure/contest.ts'
import { askByHttp2, type Http2Request, openHttp2Load, openSession } from '../measure/http2-load.ts'
import { median } from '../measure/statistics.ts'
import type { Bench, Part } from '../part.ts'
import type { Mark } from '../report/findings.ts'
import { comparisonCells, comparisonColumns, shareMark } from '../report/words.ts'
import { CLIENT_SECRET } from '../servers/client-secret.ts'
import { startProvider } from '../servers/menshen.ts'
import { folder, type Served, script, served, start, startScript } from '../servers/processes.ts'
import { writeRecorded } from '../servers/recorded-answer.ts'
import { openSqlite } from '../servers/stores.ts'

const LEAST = { check: 0.7, grpc: 0.6 } as const
const READY_DEADLINE_MS = 30_000
/** A message of 100 bytes, as gRPC frames it. */
const MESSAGE = Buffer.concat([Buffer.from([0, 0, 0, 0, 100]), Buffer.alloc(100, 'x')])

export const http2: Part = {
  cases: ['check', 'grpc'],
  async run(bench) {
    await using open = new AsyncDisposableStack()
    const { certFile, keyFile } = makeCertificate(folder, 'http2', makeAuthority(folder))
    const provider = open.use(await startProvider())
    const store = open.use(await openSqlite())
    const upstream = open.use(await startScript('grpc-upstream.ts', []))
    const menshen = open.use(
      await startSecure(bench, {
        AUTH_URL: provider.url,
        STORE: store.address,
        TLS_CERT_FILE: certFile,
        TLS_KEY_FILE: keyFile,
        UPSTREAM: upstream.url.replace('http:', 'h2c:'),
      }),
    )
    const cookie = await signIn(menshen)
    const rows: string[][] = []
    const marks: Mark[] = []
    const costs: Record<string, number> = {}
    const server = bench.cores.server

    async function race(name: keyof typeof LEAST, other: string, bare: Served, request: Http2Request): Promise<void> {
      await using loads = new AsyncDisposableStack()
      const contenders: Contender[] = []
      for (const { url, pid } of [menshen, bare]) {
        const load = loads.use(await openHttp2Load(url, request))
        contenders.push({ pid, warmUpRequests: bench.plan.visitors * 20, measure: seconds => load.measure(seconds) })
      }
      for (const pair of await contestAgainstLast(contenders, bench.plan)) {
        rows.push([name, other, ...comparisonCells(pair)])
        marks.push(shareMark(LEAST[name], `HTTP/2, ${name}, of the rate of ${other}`, pair.comparison))
        costs[`${name} by HTTP/2, CPU µs`] = median(pair.ours.cpu)
      }
    }

    if (bench.wants('check')) {
      bench.say('http2, a signed-in request')
      const request = {
        headers: { ':path': '/_menshen/check', cookie, 'x-original-uri': '/', 'x-original-method': 'GET' },
      }
      const session = await openSession(menshen.url)
      const answer = await askByHttp2(session, request)
      session.destroy()
      const file = join(folder, 'http2-answer.json')
      writeRecorded(file, answer)
      await using bare = secure(await startScript('bare-http2-server.ts', server, certFile, keyFile, file))
      await race('check', 'bare node:http2', bare, request)
    }
    if (bench.wants('grpc')) {
      bench.say('http2, gRPC')
      await using bare = secure(await startScript('bare-http2-proxy.ts', server, certFile, keyFile, upstream.url))
      const headers = {
        ':method': 'POST',
        ':path': '/bench.Echo/Say',
        'content-type': 'application/grpc',
        te: 'trailers',
        cookie,
      }
      await race('grpc', 'a bare proxy', bare, { headers, body: MESSAGE })
    }
    const columns = ['request', 'against', ...comparisonColumns('Menshen', 'other')]
    return { tables: [{ title: 'By HTTP/2', columns, rows }], marks, costs }
  },
}

function secure(bare: Served): Served {
  return { ...bare, url: bare.url.replace('http:', 'https:') }
}

async function startSecure({ cores }: Bench, more: Readonly<Record<string, string>>): Promise<Served> {
  const port = await freePort()
  const running = start(script('../../src/cli/main.ts'), {
    on: cores.server,
    env: {
      PORT: String(port),
      BASE_URL: `https://127.0.0.1:${port}`,
      CLIENT_ID: 'bench',
      CLIENT_SECRET,
      LOG_LEVEL: 'error',
      RATE_LIMIT_PER_MINUTE: '0',
      TRUSTED_PROXIES: '127.0.0.1',
      ...more,
    },
  })
  running.child.stdout?.pipe(process.stderr)
  const menshen = secure(served(port, running))
  for (const startedAt = performance.now(); ; await pause(20)) {
    const session = await openSession(menshen.url).catch(() => undefined)
    session?.destroy()
    if (session) return menshen
    if (performance.now() - startedAt > READY_DEADLINE_MS) throw new Error('Menshen did not get ready')
  }
}

async function signIn({ url }: Served): Promise<string> {
  const session = await openSession(url)
  const { headers } = await askByHttp2(session, { headers: { ':path': '/callback?code=user&state=bench_idp' } })
  session.destroy()
  const [cookie] = /[\w-]*menshen_session=[^;]+/.exec(headers['set-cookie'] ?? '') ?? []
  if (!cookie) throw new Error(`nobody was signed in, but sent to ${headers.location}`)
  return cookie
}
