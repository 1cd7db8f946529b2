// /_menshen/assets/…: a name that carries its version never changes and can be kept for a year.
import { ASSETS } from '../pages/assets.ts'
import { noticeAnswer, safetyHeaders } from './answers.ts'
import type { House } from './house.ts'
import type { Visit } from './request.ts'

export const ASSETS_PATH = '/_menshen/assets/'

export async function sendAsset(house: House, { path, search }: Visit): Promise<Response> {
  const asset = ASSETS.get(path.slice(ASSETS_PATH.length))
  if (!asset) return noticeAnswer(house, 'not_found')
  const versioned = new URLSearchParams(search).get('v') === asset.version
  const caching = versioned ? 'public, max-age=31536000, immutable' : 'public, max-age=300'
  return new Response(asset.body, {
    headers: { ...safetyHeaders(house), 'content-type': asset.type, 'cache-control': caching },
  })
}
