// Many users in turn, more than a small cache holds: the cost of a session that this process has not opened, against a bare
// server that gets and sends the same bytes.

import { join } from 'node:path'
import { contender, contestAgainstLast } from '../measure/contest.ts'
import { checkAt, requestOf } from '../measure/requests.ts'
import { median } from '../measure/statistics.ts'
import type { Part } from '../part.ts'
import { comparisonCells, comparisonColumns, shareMark, whole } from '../report/words.ts'
import { startTwin } from '../servers/bare-twin.ts'
import { startMenshen, startProvider } from '../servers/menshen.ts'
import { preload } from '../servers/preloaded.ts'
import { folder } from '../servers/processes.ts'

/** With a cache for a tenth of the users, no user is in it when their turn comes. */
const SMALL = { name: 'small', share: 0.1, least: 0.3 }
/** Also with a signature for each of them, which by itself takes longer than a bare server's answer: no mark, only a figure. */
const SIGNED = { name: 'signed', least: undefined }
const USUAL = { name: 'default', least: 0.75 }

export const cold: Part = {
  cases: [SMALL.name, SIGNED.name, USUAL.name],
  async run({ plan, cores, say, wants }) {
    const users = plan.activeUsers
    const cacheSize = users * SMALL.share
    const small = { SESSION_CACHE_SIZE: String(cacheSize) }
    await using open = new AsyncDisposableStack()
    const provider = open.use(await startProvider())
    const directory = join(folder, 'cold')
    say(`making ${whole(users)} sessions`)
    const cookies = await preload(cores, { directory, sessions: users })
    const cases = [
      { ...SMALL, said: `a cache of ${whole(cacheSize)}`, settings: { ...small, IDENTITY_ASSERTION: 'none' } },
      { ...SIGNED, said: `a cache of ${whole(cacheSize)}, signed`, settings: small },
      { ...USUAL, said: 'the default cache', settings: {} },
    ].filter(({ name }) => wants(name))
    const servers = await Promise.all(
      cases.map(async ({ settings }) =>
        open.use(await startMenshen(`sqlite:${directory}/menshen.db`, provider, cores, settings)),
      ),
    )
    const [first] = servers
    if (!first) throw new Error('there is no such case')
    const { url } = checkAt(first.url)
    const request = requestOf(checkAt(first.url), cookies[0])
    const bare = open.use(await startTwin(url, { request, on: cores.server }))

    say(`${whole(users)} users in turn`)
    const contenders = [...servers, bare].map(server => contender(server, checkAt, cookies))
    const warm = contenders.map(each => (each.pid === bare.pid ? each : { ...each, warmUpRequests: users }))
    const pairs = await contestAgainstLast(warm, plan)
    const costs = Object.fromEntries(
      pairs.map(({ ours }, index) => [`check of cold users, cache ${cases[index]?.name}, CPU µs`, median(ours.cpu)]),
    )
    return {
      tables: [
        {
          title: `${whole(users)} users in turn, on sqlite`,
          columns: ['with', ...comparisonColumns('Menshen', 'bare')],
          rows: pairs.map((pair, index) => [cases[index]?.said ?? '', ...comparisonCells(pair)]),
        },
      ],
      marks: pairs.flatMap(({ comparison }, index) => {
        const measured = cases[index]
        if (measured?.least === undefined) return []
        const what = `${whole(users)} users in turn, ${measured.said}, of a bare server's rate`
        return [shareMark(measured.least, what, comparison)]
      }),
      costs,
    }
  },
}
