// /_menshen/assets/…: a name that carries its version never changes and can be kept for a year.

import { ASSETS } from '../../pages/look.ts'
import { OWN_PATHS } from '../../paths.ts'
import type { GatewayContext } from '../context.ts'
import type { GatewayRequest } from '../request.ts'
import { errorAnswer, safetyHeaders } from '../respond.ts'

/** Whoever opens an image by its own address sees it, and nothing in it acts. */
const INERT = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

export async function sendAsset(context: GatewayContext, request: GatewayRequest): Promise<Response> {
  const { path, search } = request
  const name = path.slice(OWN_PATHS.assets.length)
  const asset = ASSETS.get(name) ?? context.look.assets.get(name)
  if (!asset) return errorAnswer(context, request, 'not_found')
  const versioned = new URLSearchParams(search).get('v') === asset.version
  const caching = versioned ? 'public, max-age=31536000, immutable' : 'public, max-age=300'
  return new Response(asset.body, {
    headers: {
      ...safetyHeaders(context),
      'content-type': asset.type,
      'cache-control': caching,
      'content-security-policy': INERT,
    },
  })
}
