// A signed-in request against a bare node:http server that sends the same status, headers and bytes.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { freePort } from '../test/kit/free-port.ts'
import { ask, writeAnswer } from './answer.ts'
import { contest, median, ratio } from './contest.ts'
import { signIn, startProvider } from './menshen.ts'
import type { Bench } from './part.ts'
import { folder, type Served, script, served, startUntil } from './processes.ts'
import { atLeast, type Findings, hundredths, type Mark, whole } from './report.ts'
import { menshenOnEachStore, type StoreName } from './stores.ts'

const CHECK = '/_menshen/check'
const PATHS = [CHECK, '/']
/** How much of the bare server's rate a check has to reach. */
const LEAST: Partial<Record<StoreName, number>> = { lmdb: 0.85, redis: 0.75 }
const DAY_SECONDS = 86_400

export async function benchCheck(bench: Bench): Promise<Findings> {
  const rows: string[][] = []
  const marks: Mark[] = []
  await using provider = await startProvider(DAY_SECONDS)
  for await (const { name, menshen } of menshenOnEachStore(bench, provider)) {
    const cookie = await signIn(menshen, 'user')
    for (const path of PATHS) {
      bench.say(`${path} on ${name}`)
      const url = menshen.url + path
      await using bare = await startBareTwin(url, cookie, bench.cores.server)
      const [ours, bares] = await contest(
        [
          { url, cookie },
          { url: bare.url, cookie },
        ],
        bench.plan,
      )
      const share = ratio(ours, bares)
      rows.push([path, name, whole(median(ours)), whole(median(bares)), hundredths(share)])
      const least = LEAST[name]
      if (path === CHECK && least) marks.push(atLeast(least, `check on ${name}, of a bare server's rate`, share))
    }
  }
  const columns = ['signed-in request', 'store', 'Menshen /s', 'bare /s', 'ratio']
  return { table: { title: 'A signed-in request', columns, rows }, marks }
}

/** A bare server that answers everything as `url` answered once. */
async function startBareTwin(url: string, cookie: string, on: readonly string[]): Promise<Served> {
  const answer = await ask(url, cookie)
  if (answer.status !== 200) throw new Error(`${url} answered ${answer.status}`)
  const file = join(folder, 'answer.json')
  writeFileSync(file, writeAnswer(answer))
  const port = await freePort()
  const twin = served(port, await startUntil('ready', script('bare-server.ts', port, file), { on }))
  if (!isDeepStrictEqual(await ask(twin.url, cookie), answer)) throw new Error(`the bare server differs from ${url}`)
  return twin
}
