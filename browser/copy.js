// The buttons that copy a request id. They are shown only where the browser lets a page write to the clipboard.

const SHOWN_MS = 1500

if (navigator.clipboard) {
  document.documentElement.classList.add('can-copy')
  document.addEventListener('click', event => {
    const button = event.target instanceof Element ? event.target.closest('button') : null
    const { copy, copied = '' } = button?.dataset ?? {}
    if (button && copy !== undefined) write(button, copy, copied)
  })
}

/**
 * @param {HTMLButtonElement} button
 * @param {string} text
 * @param {string} said What a screen reader says, and the button shows for a moment.
 */
async function write(button, text, said) {
  await navigator.clipboard.writeText(text)
  const status = document.getElementById('copied')
  if (status) status.textContent = said
  button.classList.add('done')
  setTimeout(() => {
    button.classList.remove('done')
    if (status) status.textContent = ''
  }, SHOWN_MS)
}
