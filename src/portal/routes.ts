// The portal: the page with the user's applications, the same as JSON, and their icons. `/` shows the page as well, if BASE_URL
// has no application.

import { admits } from '../access/rules.ts'
import { assetAnswer } from '../gateway/assets.ts'
import type { Home } from '../gateway/listener.ts'
import {
  jsonAnswer,
  languageOf,
  type OwnAnswer,
  pageAnswer,
  type ResponseAnswer,
  tooManyAnswer,
} from '../http/answers.ts'
import type { GatewayRequest } from '../http/request.ts'
import type { RouteTable } from '../http/route-table.ts'
import { send } from '../http/send.ts'
import type { SignedInCaller } from '../identify/admission.ts'
import { admit } from '../identify/admit.ts'
import { OWN_PATHS } from '../paths.ts'
import { unauthenticated } from '../sign-in/denial.ts'
import { guarded } from '../sign-in/guarded.ts'
import { applicationsFor } from './applications.ts'
import type { Application, PortalContext } from './context.ts'
import type { Icon } from './icon.ts'
import { FILTER_FIELD, portalPage } from './page.ts'

export function portalRoutes(applications: readonly Application[]): RouteTable<PortalContext> {
  const page = guarded(async (context: PortalContext, request, caller) => pageFor(context, request, caller))
  const icons = applications.map(({ icon }) => [icon.path, iconRoute(icon)] as const)
  return {
    [OWN_PATHS.portal]: { GET: page, HEAD: page },
    [OWN_PATHS.applications]: { GET: listApplications, HEAD: listApplications },
    ...Object.fromEntries(icons),
  }
}

/** `/` of BASE_URL. Without any application it stays `home`. */
export function createPortalHome(context: PortalContext, home: Home): Home {
  if (context.applications.length === 0) return home
  return (request, admission, response) => {
    const { method, path, observed } = request
    const { loaded } = admission
    if (path !== '/' || !loaded || (method !== 'GET' && method !== 'HEAD')) return home(request, admission, response)
    return send(response, pageFor(context, request, { ...admission, loaded }).response, observed.requestId)
  }
}

function pageFor(context: PortalContext, request: GatewayRequest, caller: SignedInCaller): ResponseAnswer {
  const { pages } = context
  const html = portalPage(languageOf(pages, request), caller.loaded, {
    shown: applicationsFor(context, request, caller),
    filter: new URLSearchParams(request.search).get(FILTER_FIELD) ?? '',
    leadsHome: leadsHome(context, caller),
  })
  return pageAnswer(pages, html, { cookies: caller.cookies })
}

/** `/` is not the portal if there is an application, as behind a proxy and in the library, or the built-in home page. */
function leadsHome({ auth, applications, proxy }: PortalContext, { loaded: { who } }: SignedInCaller): boolean {
  const isPortal = applications.length > 0 && proxy.upstreams.for('/') === undefined
  return !isPortal && admits(auth.rules.decide('GET', '/', who).rule, who)
}

async function listApplications(context: PortalContext, request: GatewayRequest): Promise<OwnAnswer> {
  const { pages, settings } = context
  const admission = await admit(context, request)
  const { outcome, loaded, cookies } = admission
  if (outcome === 'limited') return tooManyAnswer(pages, request)
  if (!loaded) return unauthenticated(pages, request, admission)
  const { origin } = new URL(settings.BASE_URL)
  const applications = applicationsFor(context, request, { ...admission, loaded }).map(
    ({ application: { title, description, url, icon }, unavailable }) => ({
      title,
      description,
      url,
      icon: origin + icon.path,
      ...(unavailable && { unavailable: unavailable.code }),
    }),
  )
  return jsonAnswer(pages, { applications }, { cookies })
}

/** The address changes with the icon. Only this user learns it, so no shared cache may keep it. */
const ICON_CACHE_CONTROL = 'private, max-age=31536000, immutable'

function iconRoute(icon: Icon): RouteTable<PortalContext>[string] {
  const sendIcon = async (context: PortalContext) => assetAnswer(context, icon, ICON_CACHE_CONTROL)
  return { GET: sendIcon, HEAD: sendIcon }
}
