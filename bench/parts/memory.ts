// What a process holds in memory: at its start, with many users in its cache, and after many sign-ins.

import { join } from 'node:path'
import { checkAt, requestsOf } from '../measure/requests.ts'
import { measure } from '../measure/wrk.ts'
import type { Part } from '../part.ts'
import { memoryOf } from '../process-memory.ts'
import { belowMark, megabytes, whole } from '../report/words.ts'
import { startMenshen, startProvider } from '../servers/menshen.ts'
import { preload } from '../servers/preloaded.ts'
import { folder } from '../servers/processes.ts'

/** How much more the same users may take the second time: the garbage collector decides when it runs. */
const MAX_GROWTH = 1.2

export const memory: Part = {
  async run({ plan, cores, say }) {
    const users = plan.activeUsers
    const directory = join(folder, 'memory')
    say(`making ${whole(users)} sessions`)
    const cookies = await preload(cores, { directory, sessions: users })
    await using provider = await startProvider()
    await using menshen = await startMenshen(`sqlite:${directory}/menshen.db`, provider, cores)
    const rows: string[][] = []
    const note = (when: string, requests: number): number => {
      const { anonymous, resident } = memoryOf(menshen.pid)
      rows.push([when, whole(requests), megabytes(anonymous), megabytes(resident)])
      return anonymous
    }
    const shape = checkAt(menshen.url)
    const load = { url: shape.url, requests: requestsOf(shape, cookies) }
    const visitAll = async () => {
      let served = 0
      while (served < users) served += (await measure(load, plan.memorySeconds, served)).requests
      return served
    }

    const atStart = note('at the start', 0)
    say(`memory with ${whole(users)} users`)
    const once = note(`${whole(users)} users came once`, await visitAll())
    const again = note('they came again', await visitAll())
    say('memory with sign-ins')
    const callback = { url: `${menshen.url}/callback?code=user&state=bench_idp` }
    const signIns = { url: callback.url, requests: requestsOf(callback, ['']) }
    note('after sign-ins', (await measure(signIns, plan.memorySeconds * 2)).requests)
    const each = (again - atStart) / users
    return {
      tables: [
        {
          title: 'Memory, on sqlite',
          columns: ['when', 'requests', 'its own (RssAnon)', 'with the mapped file (RSS)'],
          rows,
        },
      ],
      marks: [
        belowMark(`the same ${whole(users)} users again, memory of the process`, again, once * MAX_GROWTH, megabytes),
      ],
      costs: { 'memory at the start, bytes': atStart, 'memory of a session in the cache, bytes': each },
    }
  },
}
