// The login page's buttons: each makes the state, keeps it, and takes the browser to its provider. Without this script
// the forms do the same through the server.

const STATE_KEY = 'oauth_state'
const STATE_SUFFIX = '_idp'
const FRAGMENT_SECONDS = 600

const languages = /** @type {HTMLFormElement | null} */ (document.querySelector('form.languages'))
const forms = /** @type {NodeListOf<HTMLFormElement>} */ (document.querySelectorAll('form.sign-in'))

keepFragment()

// A redirect keeps the fragment of the address that it answers.
languages?.addEventListener('submit', () => {
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
      keepState(state)
      window.location.assign(location)
    } catch {
      form.submit()
    }
  })
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
 * @returns {Promise<{ state: string, location: string }>}
 */
async function startAttempt(form) {
  const fields = /** @type {Record<string, string>} */ (Object.fromEntries(new FormData(form)))
  const body = new URLSearchParams(fields)
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
// callback is shown brings the user back to it. After an error the fragment of the attempt before still counts.
function keepFragment() {
  const retrying = new URLSearchParams(window.location.search).has('error')
  if (retrying && !window.location.hash) return
  const value = encodeURIComponent(window.location.hash)
  const callback = forms[0]?.dataset.callback ?? '/callback'
  const life = value ? FRAGMENT_SECONDS : 0
  // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API does not exist on plain http
  document.cookie = `menshen_fragment=${value}; Path=${callback}; Max-Age=${life}; SameSite=Lax`
}
