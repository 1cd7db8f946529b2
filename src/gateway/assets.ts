// /_menshen/assets/…: a file whose name contains its version never changes and can be cached for a year.

import { errorAnswer, type OwnAnswer, safetyHeaders } from '../http/answers.ts'
import type { GatewayRequest } from '../http/request.ts'
import { ASSETS, type Asset } from '../pages/branding.ts'
import { OWN_PATHS } from '../paths.ts'
import type { GatewayContext } from './context.ts'

/** An image that is opened as a page runs no scripts. */
const IMAGE_CSP = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

export async function sendAsset(context: GatewayContext, request: GatewayRequest): Promise<OwnAnswer> {
  const { path, search } = request
  const name = path.slice(OWN_PATHS.assets.length)
  const asset = ASSETS.get(name) ?? context.pages.branding.assets.get(name)
  if (!asset) return errorAnswer(context.pages, request, 'not_found')
  const versioned = new URLSearchParams(search).get('v') === asset.version
  return assetAnswer(context, asset, versioned ? 'public, max-age=31536000, immutable' : 'public, max-age=300')
}

export function assetAnswer(
  { settings }: GatewayContext,
  { type, body }: Pick<Asset, 'type' | 'body'>,
  caching: string,
): OwnAnswer {
  const response = new Response(null, {
    headers: {
      ...safetyHeaders(settings),
      'content-type': type,
      'cache-control': caching,
      'content-security-policy': IMAGE_CSP,
    },
  })
  return { outcome: 'own', response, sharedBody: body }
}
