// GET /_menshen/console/live: the overview's sentences and plots, as they change.
import { figures, problemList } from '../../pages/console/overview-page.ts'
import type { SignedInCaller } from '../admission/admit.ts'
import type { GatewayContext } from '../context.ts'
import type { Visit } from '../http/request.ts'
import { languageOf } from '../language/language-of.ts'
import { overviewView, rangeOf } from './overview-view.ts'

export async function streamOverview(context: GatewayContext, visit: Visit, caller: SignedInCaller): Promise<Response> {
  const words = languageOf(context, visit)
  const range = rangeOf(visit)
  return context.liveStreams.open(context, visit, caller, async () => {
    const view = await overviewView(context, range)
    return [
      ['problems', String(problemList(words, view))],
      ['figures', String(figures(words, view.plot))],
      ['plot', view.plot],
    ]
  })
}
