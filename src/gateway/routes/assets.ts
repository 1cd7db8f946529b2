// /_menshen/assets/…: a name that carries its version never changes and can be kept for a year.
import { OWN_PATHS } from '../../own-paths.ts'
import { ASSETS } from '../../pages/asset-files.ts'
import type { GatewayContext } from '../context.ts'
import { errorAnswer, safetyHeaders } from '../http/page-answers.ts'
import type { Visit } from '../http/request.ts'

export async function sendAsset(context: GatewayContext, visit: Visit): Promise<Response> {
  const { path, search } = visit
  const asset = ASSETS.get(path.slice(OWN_PATHS.assets.length))
  if (!asset) return errorAnswer(context, visit, 'not_found')
  const versioned = new URLSearchParams(search).get('v') === asset.version
  const caching = versioned ? 'public, max-age=31536000, immutable' : 'public, max-age=300'
  return new Response(asset.body, {
    headers: { ...safetyHeaders(context), 'content-type': asset.type, 'cache-control': caching },
  })
}
