// The filter of the portal. Ctrl+K or ⌘K focuses it, Escape clears it, Enter opens the only match or goes to the first of several.

const field = /** @type {HTMLInputElement} */ (document.getElementById('filter'))
const status = /** @type {HTMLElement} */ (document.getElementById('status'))
const nothing = /** @type {HTMLElement} */ (document.getElementById('nothing'))
const tiles = [...document.querySelectorAll('.applications > li')].map(element => /** @type {HTMLElement} */ (element))

field.addEventListener('input', event => {
  // Letters of pinyin match nothing until they have become characters.
  if (!(event instanceof InputEvent && event.isComposing)) filter()
})
field.addEventListener('compositionend', filter)
field.form?.addEventListener('submit', event => {
  event.preventDefault()
  const [first, ...others] = linksShown()
  if (others.length === 0) first?.click()
  else first?.focus()
})
field.addEventListener('keydown', event => {
  if (event.key !== 'Escape' || event.isComposing) return
  event.preventDefault()
  if (field.value === '') field.blur()
  field.value = ''
  filter()
})
document.addEventListener('keydown', event => {
  // A letter alone would get in the way of people who speak to their computer (WCAG 2.1.4).
  const isShortcut =
    event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey
  if (!isShortcut || event.isComposing) return
  event.preventDefault()
  field.focus()
  field.select()
})
const key = field.nextElementSibling
if (key && navigator.platform.startsWith('Mac')) key.textContent = '⌘K'
// A browser that comes back to the page fills the field in again.
if (field.value !== '') filter()
addEventListener('pageshow', filter)

function filter() {
  const words = searchable(field.value).trim().split(/\s+/)
  let shown = 0
  for (const tile of tiles) {
    const text = tile.dataset.text ?? ''
    tile.hidden = !words.every(word => text.includes(word))
    if (!tile.hidden) shown++
  }
  nothing.hidden = shown > 0
  const { all = '', shown: some = '' } = status.dataset
  const text = field.value.trim() === '' ? all : some.replace('%shown%', String(shown))
  // The same text again would be read out again.
  if (status.textContent !== text) status.textContent = text
}

function linksShown() {
  return tiles.filter(tile => !tile.hidden).flatMap(tile => tile.querySelector('a') ?? [])
}

/** As `searchable` of src/portal/applications.ts. @param {string} text */
function searchable(text) {
  return text.normalize('NFKC').toLowerCase()
}
