// menshen/browser: the session as scripts of a page see it, for bundlers and as /_menshen/assets/client.js. Importing it does
// nothing yet, so it can also be imported where there is no window.

/**
 * Who is signed in.
 * @template {string} [F=never] further fields that the configuration maps
 * @typedef {object} Me
 * @property {UserInfo & { readonly [K in F]?: string }} userInfo
 * @property {string} userRole
 * @property {readonly string[]} groups
 * @property {string} [provider] which of several
 * @property {number} expiresAt milliseconds since 1970; a session that can be refreshed goes on
 * @property {number} [idleEndsAt] when it ends without activity, in milliseconds since 1970; with SESSION_IDLE_MINUTES
 * @property {number} [idleLeftMs] how long that is from now, by the clock of the server
 */

/**
 * A session is about to end because its user does nothing.
 * @typedef {object} Idle
 * @property {number} leftMs until it ends
 * @property {string} lang of the words
 * @property {string} title
 * @property {string} text
 * @property {string} stay the words of a button that calls `stay`
 * @property {string} leave the words of a button that calls `signOut`
 * @property {DialogColors} [colors] with ACCENT_COLOR
 */

/**
 * The colours of the organisation, each for light and dark pages (`light-dark(…)`).
 * @typedef {object} DialogColors
 * @property {string} accent of a button
 * @property {string} onAccent of the words on it
 * @property {string} link of other text
 */

/**
 * What the provider says of the user; a field that it does not have is empty.
 * @typedef {object} UserInfo
 * @property {string} sub
 * @property {string} username
 * @property {string} nickname
 * @property {string} email
 * @property {string} phone_number
 * @property {string} ou_id
 * @property {string} ou_name
 */

/**
 * What to tell a user whose session has ended, in the language of the login page.
 * @typedef {object} Ended
 * @property {string} lang
 * @property {string} title that the session has ended
 * @property {string} text what to do
 * @property {string} link the words of a link to the login page
 * @property {string} login the path of the login page
 * @property {DialogColors} [colors] with ACCENT_COLOR
 */

const WARN_BEFORE_MS = 60_000
const LONGEST_WAIT_MS = 10 * 60_000
/** While a warning is shown: another tab may be in use. */
const LOOK_AGAIN_MS = 5000

/**
 * `told`: of which end each knows.
 * @type {Record<'ending' | 'ended' | 'resumed' | 'idle' | 'active', Set<{ tell: () => void, told?: number }>>}
 */
const listeners = { ending: new Set(), ended: new Set(), resumed: new Set(), idle: new Set(), active: new Set() }
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer
let questions = 0
/** The end of the session as last heard; 0 while there was none: on a public page there may be no user. */
let expected = 0
/** Once it has ended. @type {Ended | undefined} */
let ended
/** In the last minute before an idle end. @type {Idle | undefined} */
let idle
/** Tells other tabs that the user is active. @type {BroadcastChannel | undefined} */
let tabs

/**
 * Who is signed in; `undefined` if no user is. Rejects if the server cannot tell.
 * @template {string} [F=never]
 * @returns {Promise<Me<F> | undefined>}
 */
export async function me() {
  const { answer, said } = await ask()
  if (said.ended) return undefined
  if (!said.expiresAt) throw new Error(`/_menshen/me answered ${answer.status}`)
  return { groups: [], ...said }
}

/**
 * To the login page, and afterwards back to this page, or to the path that is given.
 * @param {string} [returnTo]
 */
export function signIn(returnTo) {
  const { pathname, search, hash } = new URL(returnTo ?? window.location.href, window.location.href)
  // Only the browser ever sees the fragment: the login page keeps it.
  const query = `?return=${encodeURIComponent(pathname + search)}${hash}`
  withPaths(({ login }) => window.location.assign(login + query))
}

/** Here and at the provider; then to the login page. */
export function signOut() {
  withPaths(({ logout }) => {
    const form = document.createElement('form')
    form.method = 'post'
    form.action = logout
    document.body.append(form)
    form.submit()
  })
}

/** The settings can move them: `/_menshen/me` says where they are. @type {{ login: string, logout: string } | undefined} */
let paths

/** @param {(paths: { login: string, logout: string }) => void} go */
async function withPaths(go) {
  if (!paths) await ask().catch(() => {})
  go(paths ?? { login: '/login', logout: '/logout' })
}

/** @param {Response} answer */
function readPaths({ headers }) {
  const link = headers.get('link') ?? ''
  const [, login] = /<([^>]+)>; rel="login"/.exec(link) ?? []
  const [, logout] = /<([^>]+)>; rel="logout"/.exec(link) ?? []
  if (login && logout) paths = { login, logout }
}

/**
 * A session that cannot be refreshed ends within a minute. Returns what takes the listener away.
 * @param {(expiresAt: number) => void} listener
 * @returns {() => void}
 */
export function onEnding(listener) {
  return on('ending', () => listener(expected))
}

/**
 * The session has ended, also by a sign-out elsewhere. Returns what takes the listener away.
 * @param {(ended: Ended) => void} listener
 * @returns {() => void}
 */
export function onEnded(listener) {
  return on('ended', () => ended && listener(ended))
}

/**
 * After an end, a user has signed in again in another tab. Returns a function that removes the listener.
 * @param {() => void} listener
 * @returns {() => void}
 */
export function onResumed(listener) {
  return on('resumed', listener)
}

/**
 * The session ends within a minute because its user does nothing (SESSION_IDLE_MINUTES). It is told again every few seconds,
 * with the time that is left. Returns what takes the listener away.
 * @param {(idle: Idle) => void} listener
 * @returns {() => void}
 */
export function onIdle(listener) {
  return on('idle', () => idle && listener(idle))
}

/**
 * After `onIdle` the user was active, here or in another tab, or the session has ended. Returns what takes the listener away.
 * @param {() => void} listener
 * @returns {() => void}
 */
export function onActive(listener) {
  return on('active', listener)
}

/** The user is there: the idle time begins again. Rejects if the server cannot be reached. */
export async function stay() {
  await fetch('/_menshen/stay', { method: 'POST', headers: { accept: 'application/json' } })
  tabs?.postMessage('active')
  await check()
}

/**
 * The server is asked as long as there is a listener.
 * @param {keyof typeof listeners} what
 * @param {() => void} tell
 */
function on(what, tell) {
  const listener = { tell }
  if (!isHeard()) start()
  listeners[what].add(listener)
  // Soon: several listeners come at once, and one question answers them all.
  clearTimeout(timer)
  timer = setTimeout(check)
  return () => {
    listeners[what].delete(listener)
    if (!isHeard()) stop()
  }
}

function isHeard() {
  return Object.values(listeners).some(({ size }) => size > 0)
}

function start() {
  window.addEventListener('focus', check)
  document.addEventListener('visibilitychange', checkIfSeen)
  window.addEventListener('storage', checkIfSignIn)
  tabs = new BroadcastChannel('menshen')
  tabs.addEventListener('message', check)
}

function stop() {
  window.removeEventListener('focus', check)
  document.removeEventListener('visibilitychange', checkIfSeen)
  window.removeEventListener('storage', checkIfSignIn)
  tabs?.close()
  clearTimeout(timer)
  questions += 1
}

function checkIfSeen() {
  if (document.visibilityState === 'visible') check()
}

/** Another tab began to sign in. @param {StorageEvent} event */
function checkIfSignIn(event) {
  if (event.key === 'oauth_state') check()
}

async function check() {
  clearTimeout(timer)
  const question = ++questions
  const { answer, said } = await ask().catch(() => ({ answer: undefined, said: {} }))
  // Several events come at once and answers overtake each other: the last question counts.
  if (question !== questions) return
  if (said.ended) return over(said.ended)
  // Anything else than a clear word proves nothing, such as a 401 that is not ours: ask again later.
  if (!answer || !said.expiresAt) return wait(WARN_BEFORE_MS)
  const untilIdle = seesIdle(said)
  goesOn(said.expiresAt, said.expiresAt - serverTime(answer), untilIdle)
}

/**
 * Whether the session is about to end for lack of activity, and when to check again.
 * @param {{ idleLeftMs?: number, idleWarning?: Omit<Idle, 'leftMs'> }} said
 */
function seesIdle({ idleLeftMs: leftMs = Number.POSITIVE_INFINITY, idleWarning }) {
  if (!idleWarning || leftMs > WARN_BEFORE_MS) {
    isActive()
    return leftMs - WARN_BEFORE_MS
  }
  idle = { ...idleWarning, leftMs }
  tellEach('idle')
  return Math.min(leftMs + 1000, LOOK_AGAIN_MS)
}

function isActive() {
  if (!idle) return
  idle = undefined
  tellEach('active')
}

/** @param {'idle' | 'active'} what */
function tellEach(what) {
  for (const { tell } of [...listeners[what]]) tell()
}

async function ask() {
  const answer = await fetch('/_menshen/me', { headers: { accept: 'application/json' } })
  readPaths(answer)
  const body = await answer.json().catch(() => undefined)
  return { answer, said: (answer.ok && body) || (answer.status === 401 && { ended: endedIn(body) }) || {} }
}

/** @param {{ ended?: Ended, login?: string } | undefined} body @returns {Ended | undefined} */
function endedIn(body) {
  return body?.ended && { ...body.ended, login: body.login ?? '/login' }
}

/** Clocks of browsers can be hours off. @param {Response} answer */
function serverTime(answer) {
  return Date.parse(answer.headers.get('date') ?? '') || Date.now()
}

/** @param {number} expiresAt @param {number} left @param {number} untilIdle */
function goesOn(expiresAt, left, untilIdle) {
  const isBack = ended
  expected = expiresAt
  ended = undefined
  if (isBack) tell('resumed')
  if (left > WARN_BEFORE_MS) return wait(Math.min(left - WARN_BEFORE_MS, untilIdle))
  tell('ending')
  wait(Math.min(left + 1000, untilIdle))
}

/** @param {number} ms */
function wait(ms) {
  timer = setTimeout(check, Math.min(Math.max(ms, 1000), LONGEST_WAIT_MS))
}

/** @param {Ended} said */
function over(said) {
  isActive()
  if (!expected) return
  ended = said
  tell('ended')
}

/** Each of them once for each end. @param {keyof typeof listeners} what */
function tell(what) {
  for (const listener of [...listeners[what]]) {
    if (listener.told === expected) continue
    listener.told = expected
    listener.tell()
  }
}
