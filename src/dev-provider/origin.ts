// Whether a form was sent by a page of this provider, by a page of somebody else, or by no page at all (a script).

export function senderOf(request: Request): 'own page' | 'foreign page' | 'script' {
  const site = request.headers.get('sec-fetch-site')
  if (site !== null) return site === 'same-origin' ? 'own page' : 'foreign page'
  const origin = request.headers.get('origin')
  if (origin === null) return 'script'
  return origin === `http://${request.headers.get('host')}` ? 'own page' : 'foreign page'
}
