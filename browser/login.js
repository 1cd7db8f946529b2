// The login page's buttons: each makes the state, keeps it, and takes the browser to its provider. Without this script
// the forms do the same through the server.

const STATE_KEY = 'oauth_state'
const STATE_SUFFIX = '_idp'
const FRAGMENT_SECONDS = 600

const languages = /** @type {HTMLFormElement | null} */ (document.querySelector('form.languages'))
const forms = /** @type {NodeListOf<HTMLFormElement>} */ (document.querySelectorAll('form.sign-in'))

const address = hideReturnPath()

keepFragment()

// The switch leads back to the address that the browser names. A redirect keeps the fragment of the address that it answers.
languages?.addEventListener('submit', () => {
  history.replaceState(null, '', address)
  const url = new URL(languages.action)
  url.hash = window.location.hash
  languages.action = url.href
})

for (const form of forms) {
  form.addEventListener('submit', async event => {
    event.preventDefault()
    setBusy(form, true)
    try {
      const { state, location } = form.dataset.remembered === 'true' ? await startAttempt(form) : newAttempt(form)
      if (state) keepState(state)
      window.location.assign(location)
    } catch {
      form.submit()
    }
  })
}

/**
 * The address shows `/login` alone: the signed return path of this tab is in the form. A reload needs the whole address again.
 * Returns the whole address.
 */
function hideReturnPath() {
  const { href, search } = window.location
  if (/[?&]return=/.test(search)) {
    const url = new URL(href)
    url.search = ''
    history.replaceState({ address: href }, '', url)
    return href
  }
  const { address } = /** @type {{ address?: string }} */ (history.state ?? {})
  if (address) window.location.replace(address)
  return address ?? href
}

// Coming back by the back button, the page may be shown as it was left.
window.addEventListener('pageshow', () => {
  for (const form of forms) setBusy(form, false)
})

/**
 * @param {HTMLFormElement} form
 * @param {boolean} busy
 */
function setBusy(form, busy) {
  const button = /** @type {HTMLButtonElement} */ (form.querySelector('button'))
  if (busy) button.setAttribute('aria-busy', 'true')
  else button.removeAttribute('aria-busy')
}

/** @param {HTMLFormElement} form */
function newAttempt(form) {
  const bytes = crypto.getRandomValues(new Uint8Array(32))
  const random = Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('')
  const state = random + STATE_SUFFIX
  const url = new URL(form.dataset.authorize ?? '')
  url.searchParams.set('state', state)
  return { state, location: url.href }
}

/**
 * @param {HTMLFormElement} form
 * @returns {Promise<{ state?: string, location: string }>}
 */
async function startAttempt(form) {
  const fields = /** @type {Record<string, string>} */ (Object.fromEntries(new FormData(form)))
  const { hash } = window.location
  // After an error the cookie has the fragment of the attempt before.
  const body = new URLSearchParams(form.dataset.retry === 'true' && !hash ? fields : { ...fields, fragment: hash })
  const answer = await fetch(form.action, { method: 'POST', headers: { accept: 'application/json' }, body })
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`)
  return answer.json()
}

/** @param {string} state */
function keepState(state) {
  try {
    localStorage.setItem(STATE_KEY, state)
  } catch {
    // Storage can be switched off; signing in does not depend on it.
  }
}

// Browsers carry the fragment of a deep link over to this page and never send it to a server. A cookie that only the
// callback is shown brings the user back to it. After an error the fragment of the previous attempt is still used.
function keepFragment() {
  const retrying = forms[0]?.dataset.retry === 'true'
  if (retrying && !window.location.hash) return
  const value = encodeURIComponent(window.location.hash)
  const callback = forms[0]?.dataset.callback ?? '/callback'
  const life = value ? FRAGMENT_SECONDS : 0
  // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API does not exist on plain http
  document.cookie = `menshen_fragment=${value}; Path=${callback}; Max-Age=${life}; SameSite=Lax`
}

// Another tab has signed in: this one continues to its own page. A sign-in that begins elsewhere is watched for a while; the
// events of a tab that is looked at again find the rest.

const WATCH_EVERY_MS = 1500
const WATCH_FOR_MS = 10 * 60_000
/** @type {ReturnType<typeof setTimeout> | undefined} */
let watching
let hasLeft = false

if (forms[0]?.dataset.visitor === 'true') {
  window.addEventListener('focus', continueIfSignedIn)
  window.addEventListener('pageshow', event => event.persisted && continueIfSignedIn())
  document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && continueIfSignedIn())
  window.addEventListener('storage', event => event.key === STATE_KEY && watch(Date.now() + WATCH_FOR_MS))
}

/** @param {number} until */
function watch(until) {
  clearTimeout(watching)
  if (hasLeft || Date.now() > until) return
  watching = setTimeout(async () => {
    await continueIfSignedIn()
    watch(until)
  }, WATCH_EVERY_MS)
}

/** The login page of a signed-in user says where to continue. */
async function continueIfSignedIn() {
  if (hasLeft || document.querySelector('[aria-busy]')) return
  try {
    const answer = await fetch(address, { headers: { accept: 'text/html' } })
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html')
    const path = page.querySelector('.notice[role=status] + a.button')?.getAttribute('href')
    if (!path?.startsWith('/') || hasLeft) return
    hasLeft = true
    window.location.replace(path + window.location.hash)
  } catch {
    // The server cannot be reached now: the next event asks again.
  }
}
