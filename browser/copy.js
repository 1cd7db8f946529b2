// The buttons that copy an id (`data-copy`), or the details of an error (`data-copy-of`: the element that has them). They are shown only where the browser lets a page write to the clipboard: not on plain
// http.

const SHOWN_MS = 1500

if (navigator.clipboard) {
  document.documentElement.classList.add('can-copy')
  for (const button of /** @type {NodeListOf<HTMLButtonElement>} */ (
    document.querySelectorAll('button[data-copy], button[data-copy-of]')
  ))
    button.hidden = false
  document.addEventListener('click', event => {
    const button = event.target instanceof Element ? event.target.closest('button') : null
    const { copy, copyOf, copied = '' } = button?.dataset ?? {}
    if (button && copy !== undefined) write(button, copy, copied)
    if (button && copyOf !== undefined) write(button, detailsIn(copyOf), copied)
  })
}

/**
 * What an administrator needs to find the error. Without the query: it may hold what is meant for the user alone.
 * @param {string} id
 */
function detailsIn(id) {
  const { origin, pathname } = window.location
  const details = document.getElementById(id)?.innerText ?? ''
  const lines = [document.title, ...details.split('\n'), origin + pathname, new Date().toISOString()]
  return lines
    .map(line => line.trim())
    .filter(line => line !== '')
    .join('\n')
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
