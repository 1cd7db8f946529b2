// The buttons that copy a request id. They are shown only where the browser lets a page write to the clipboard: not on plain
// http.

const SHOWN_MS = 1500

if (navigator.clipboard) {
  document.documentElement.classList.add('can-copy')
  for (const button of /** @type {NodeListOf<HTMLButtonElement>} */ (document.querySelectorAll('button[data-copy]')))
    button.hidden = false
  document.addEventListener('click', event => {
    const button = event.target instanceof Element ? event.target.closest('button') : null
    const { copy, copied = '' } = button?.dataset ?? {}
    if (button && copy !== undefined) write(button, copy, copied)
  })
}

/**
 * @param {HTMLButtonElement} button
 * @param {string} text
 * @param {string} said What a screen reader says. A button with a text shows it; one with an icon shows a mark for a moment.
 */
async function write(button, text, said) {
  try {
    await navigator.clipboard.writeText(text)
  } catch {
    // The browser was told not to let us: the id can still be read and selected.
    button.hidden = true
    return
  }
  const status = document.getElementById('copied')
  if (!status) {
    button.textContent = said
    return
  }
  status.textContent = said
  button.classList.add('done')
  setTimeout(() => {
    button.classList.remove('done')
    status.textContent = ''
  }, SHOWN_MS)
}
