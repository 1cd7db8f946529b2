// The library's own start: options in, the whole sign-in out. Like the command it hands on the clock, and of the environment
// it reads NODE_ENV alone: whether others rely on this place is for the process to say.
import { createCore, type Menshen } from '../create.ts'
import { MenshenError } from '../errors.ts'
import { sendAnswer } from '../gateway/embedded/send-answer.ts'
import { newRequestId, REQUEST_ID } from '../gateway/http/request-id.ts'
import { isOwnPath } from '../own-paths.ts'
import type { Config, Role, UsualRole } from '../settings/config/config-file.ts'
import type { NOBODYS_ROLE } from '../settings/config/role-names.ts'
import { readOver } from '../settings/read.ts'
import { demandDevelopment, startDevelopment } from './development.ts'
import { inOptionNames } from './option-names.ts'
import { type MenshenOptions, readOptions } from './options.ts'
import { tellOfStart } from './tell-of-start.ts'

/** Starts Menshen inside this program. Rejects with a MenshenError that says what to change. */
export async function createMenshen<R extends Role = UsualRole, F extends string = never>(
  options: MenshenOptions<R, F> = {},
): Promise<Menshen<R | typeof NOBODYS_ROLE, F>> {
  try {
    // Its roles and fields are those that the options name.
    return (await start(options as MenshenOptions)) as unknown as Menshen<R | typeof NOBODYS_ROLE, F>
  } catch (error) {
    // Whoever gives settings of the environment knows them by those names.
    if (!(error instanceof MenshenError) || options?.settings) throw error
    throw new MenshenError(error.code, inOptionNames(error.message), error.cause)
  }
}

async function start(options: MenshenOptions): Promise<Menshen> {
  demandSettings(Object(options).settings)
  const read = await readOptions(options, process.env.NODE_ENV || undefined)
  const { config, log, isLogged, now = Date.now, devProvider, devProviderPort = 0, hooks } = read
  if (devProvider) {
    demandDevelopment(read.settings, config)
    demandNoBearer(config)
  }
  await using opened = new AsyncDisposableStack()
  const development = devProvider ? await startDevelopment(read.settings, config, devProviderPort, now) : undefined
  if (development) opened.defer(() => development.close())
  const settings = development ? readOver(read.settings, development.settings) : read.settings
  // An application that wants other settings makes another one.
  const { prepare: _, noteRefused: __, ...core } = await createCore({ settings, config, log, now, hooks })
  tellOfStart({
    settings,
    config,
    users: development?.users,
    log: isLogged ? log : undefined,
    now,
    byOptions: options.settings === undefined,
  })
  const provider = opened.move()
  let closed: Promise<void> | undefined
  return {
    ...core,
    session: async (...args) => (closed ? refuseClosed() : core.session(...args)),
    accessToken: async (...args) => (closed ? refuseClosed() : core.accessToken(...args)),
    fetch: async (request, source) => {
      if (!closed) return core.fetch(request, source)
      return isOwnPath(new URL(request.url).pathname, core.callbackPaths) ? closedAnswer() : undefined
    },
    admit: async (request, source) => {
      if (!closed) return core.admit(request, source)
      const answer = closedAnswer()
      return { answer, cookies: [], requestId: answer.headers.get(REQUEST_ID) ?? '', require: () => answer }
    },
    listener: (request, response) => {
      if (closed) sendAnswer(response, closedAnswer()).catch(() => response.destroy())
      else core.listener(request, response)
    },
    close(patienceMs) {
      closed ??= core.close(patienceMs).finally(() => provider.disposeAsync())
      return closed
    },
  }
}

/** Not an environment: that is all text, and has no default of any row. */
function demandSettings(settings: unknown): void {
  if (settings === undefined || typeof Object(settings).SESSION_MAX_HOURS === 'number') return
  throw new MenshenError('bad_settings', 'settings: expected what readSettings gave, and not the environment itself.')
}

/** Its tokens are no JWTs, and it answers no questions about them. */
function demandNoBearer({ rules = [] }: Config): void {
  const first = rules.findIndex(({ bearer }) => bearer)
  if (first < 0) return
  throw new MenshenError(
    'bad_settings',
    `rules.${first} says bearer, and tokens of devProvider cannot be judged; leave the rule out while devProvider is in use, or use a provider with issuer and jwksUrl, or introspectionUrl.`,
  )
}

function refuseClosed(): never {
  throw new MenshenError('store_unavailable', 'Menshen is closed.')
}

/** A server that was not closed first may still get requests. */
function closedAnswer(): Response {
  const headers = { 'retry-after': '1', 'cache-control': 'no-store', connection: 'close', [REQUEST_ID]: newRequestId() }
  return new Response(null, { status: 503, headers })
}
