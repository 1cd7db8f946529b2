// Hides the rows of the page's tables that do not have the text of the filter, as one types. Parts of the page that have no row
// left are hidden, too.

const form = document.getElementById('filter')
const text = /** @type {HTMLInputElement | null} */ (document.getElementById('filter-text'))
const onlyChanged = /** @type {HTMLInputElement | null} */ (document.getElementById('filter-changed'))
const nothing = document.getElementById('filter-nothing')

if (form && text) {
  form.addEventListener('input', apply)
  form.addEventListener('submit', event => {
    event.preventDefault()
    apply()
  })
  // The browser may have kept what was typed before a reload.
  apply()
}

function apply() {
  const wanted = text?.value.trim().toLowerCase() ?? ''
  let shown = 0
  for (const part of document.querySelectorAll('[data-filtered]')) {
    const rows = /** @type {NodeListOf<HTMLElement>} */ (part.querySelectorAll('tbody > tr'))
    for (const row of rows) row.hidden = !fits(row, wanted)
    const left = [...rows].filter(row => !row.hidden).length
    if (part instanceof HTMLElement) part.hidden = left === 0
    shown += left
  }
  if (nothing) nothing.textContent = shown === 0 ? (nothing.dataset.nothing ?? '') : ''
}

/**
 * @param {HTMLElement} row
 * @param {string} wanted
 */
function fits(row, wanted) {
  if (onlyChanged?.checked && !row.querySelector('.changed')) return false
  return (row.textContent ?? '').toLowerCase().includes(wanted)
}
