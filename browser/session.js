// For applications behind Menshen: <script type="module" src="/_menshen/assets/session.js"></script>
//
// Tells the page when the session is about to end (`menshen:ending`) and when it has ended (`menshen:ended`), also when
// the user signed out in another tab, and offers to sign in again in a new tab, so that nobody loses a form. Listen on
// `window`; `event.preventDefault()` on `menshen:ended` keeps our dialog away.

const WARN_BEFORE_MS = 60_000
const LONGEST_WAIT_MS = 10 * 60_000

/** What the dialog says, as the server words it. @typedef {{ lang: string, text: string, link: string }} Words */

/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer
let questions = 0
/** On a public page there may be nobody whose session could end. */
let wasSignedIn = false
/** The end that the page has been warned of. */
let warnedOf = 0
/** Once the session has ended: whether the page leaves it to us to say so. @type {boolean | undefined} */
let isOursToSay
/** @type {HTMLDialogElement | undefined} */
let dialog

window.addEventListener('focus', check)
document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && check())
// Another tab began to sign in.
window.addEventListener('storage', event => event.key === 'oauth_state' && check())
check()

async function check() {
  clearTimeout(timer)
  const question = ++questions
  const answer = await fetch('/_menshen/me', { headers: { accept: 'application/json' } }).catch(() => undefined)
  const { expiresAt, ended: words } = (await answer?.json().catch(() => undefined)) ?? {}
  // Several events come at once and answers overtake each other: the last question counts.
  if (question !== questions) return
  if (answer?.status === 401 && words) return ended(words)
  // Anything else than a clear word proves nothing, such as a 401 that is not ours: ask again later.
  if (!answer?.ok || !expiresAt) return wait(WARN_BEFORE_MS)
  goesOn(expiresAt, expiresAt - serverTime(answer))
}

/** Clocks of browsers can be hours off. @param {Response} answer */
function serverTime(answer) {
  return Date.parse(answer.headers.get('date') ?? '') || Date.now()
}

/** @param {number} expiresAt @param {number} left */
function goesOn(expiresAt, left) {
  wasSignedIn = true
  isOursToSay = undefined
  dialog?.close()
  if (left > WARN_BEFORE_MS) return wait(left - WARN_BEFORE_MS)
  if (warnedOf !== expiresAt) window.dispatchEvent(new CustomEvent('menshen:ending', { detail: { expiresAt } }))
  warnedOf = expiresAt
  wait(left + 1000)
}

/** @param {number} ms */
function wait(ms) {
  timer = setTimeout(check, Math.min(Math.max(ms, 1000), LONGEST_WAIT_MS))
}

/** @param {Words} words */
function ended(words) {
  if (!wasSignedIn) return
  isOursToSay ??= window.dispatchEvent(new CustomEvent('menshen:ended', { cancelable: true }))
  if (!isOursToSay) return
  dialog ??= createDialog(words)
  if (!dialog.open) dialog.showModal()
}

/** @param {Words} words */
function createDialog({ lang, text: sentence, link: label }) {
  const element = document.createElement('dialog')
  element.lang = lang
  const text = document.createElement('p')
  text.textContent = sentence
  const link = document.createElement('a')
  link.href = '/login'
  link.target = '_blank'
  link.rel = 'noopener'
  link.textContent = label
  element.append(text, link)
  document.body.append(element)
  return element
}
