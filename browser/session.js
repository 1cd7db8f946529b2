// For applications behind Menshen: <script type="module" src="/_menshen/assets/session.js"></script>
//
// Tells the page when the session is about to end (`menshen:ending`) and when it has ended (`menshen:ended`), also when
// the user signed out in another tab, and offers to sign in again in a new tab, so that nobody loses a form. Listen on
// `window`; `event.preventDefault()` on `menshen:ended` keeps our dialog away.
import { onEnded, onEnding, onResumed } from './client.js'

/** @type {HTMLDialogElement | undefined} */
let dialog

onEnding(expiresAt => {
  window.dispatchEvent(new CustomEvent('menshen:ending', { detail: { expiresAt } }))
})

onEnded(words => {
  if (!window.dispatchEvent(new CustomEvent('menshen:ended', { cancelable: true }))) return
  dialog ??= createDialog(words)
  if (!dialog.open) dialog.showModal()
})

onResumed(() => dialog?.close())

/** @param {import('./client.js').Ended} words */
function createDialog({ lang, text: sentence, link: label, login }) {
  const element = document.createElement('dialog')
  element.lang = lang
  const text = document.createElement('p')
  text.textContent = sentence
  const link = document.createElement('a')
  link.href = login
  link.target = '_blank'
  link.rel = 'noopener'
  link.textContent = label
  element.append(text, link)
  document.body.append(element)
  return element
}
