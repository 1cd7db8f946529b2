// The button beside a request id copies it. Without this script, or where the page may not write to the clipboard (plain
// http), there is no button.

for (const button of /** @type {NodeListOf<HTMLButtonElement>} */ (document.querySelectorAll('button[data-copy]'))) {
  if (!navigator.clipboard) continue
  button.hidden = false
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(button.dataset.copy ?? '')
      button.textContent = button.dataset.copied ?? ''
    } catch {
      // The browser was told not to let us: the id can still be read and selected.
      button.hidden = true
    }
  })
}
