// A signed-in request of an application with Menshen inside, against the same application with the usual sign-in of its framework.

import { ask } from '../measure/answer.ts'
import { compare, contender, contest } from '../measure/contest.ts'
import type { Shape } from '../measure/requests.ts'
import type { Part } from '../part.ts'
import type { Mark } from '../report/findings.ts'
import { comparisonCells, comparisonColumns, rivalMark } from '../report/words.ts'
import { signIn, startProvider } from '../servers/menshen.ts'
import { type Served, startScript } from '../servers/processes.ts'

const PAIRS = [
  { framework: 'Express', ours: 'express-menshen', theirs: 'express-passport', usual: 'express-session and passport' },
  { framework: 'Fastify', ours: 'fastify-menshen', theirs: 'fastify-session', usual: '@fastify/session' },
]
/** How much of our rate the other may reach. */
const MOST = 0.67

export const library: Part = {
  cases: PAIRS.map(({ framework }) => framework),
  async run({ plan, cores, say, wants }) {
    const rows: string[][] = []
    const marks: Mark[] = []
    await using provider = await startProvider()
    for (const { framework, ours, theirs, usual } of PAIRS.filter(({ framework }) => wants(framework))) {
      say(`${framework}: Menshen and ${usual}`)
      await using one = await startScript('application.ts', cores.server, provider.url, ours)
      await using other = await startScript('application.ts', cores.server, provider.url, theirs)
      const cookies = [await signIn(one, 'user'), await signInThere(other, 'user')]
      const contenders = []
      for (const [index, server] of [one, other].entries()) {
        const cookie = cookies[index] ?? ''
        await demandGreeting(server, cookie)
        contenders.push(contender(server, pageAt, [cookie]))
      }
      const [rated, usually] = await contest(contenders, plan)
      if (!rated || !usually) throw new Error('nothing was measured')
      rows.push([
        framework,
        usual,
        ...comparisonCells({ ours: rated, reference: usually, comparison: compare(rated, usually) }),
      ])
      marks.push(rivalMark(MOST, `${framework} with ${usual}, of the rate with Menshen`, compare(usually, rated)))
    }
    const columns = ['application', 'against', ...comparisonColumns('Menshen', 'other')]
    return { tables: [{ title: 'Inside an application', columns, rows }], marks }
  },
}

function pageAt(base: string): Shape {
  return { url: `${base}/` }
}

async function signInThere({ url }: Served, username: string): Promise<string> {
  const { headers } = await ask(`${url}/sign-in?user=${username}`)
  const [cookie = ''] = (headers['set-cookie'] ?? '').split(';')
  return cookie
}

/** Checks that the page and the user are the same: otherwise something else would be measured. */
async function demandGreeting({ url }: Served, cookie: string): Promise<void> {
  const { status, body } = await ask(`${url}/`, cookie)
  if (status !== 200 || body.toString() !== 'Hello user') throw new Error(`${url} answered ${status} ${body}`)
}
