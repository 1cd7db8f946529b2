// For applications behind Menshen: <script type="module" src="/_menshen/assets/session.js"></script>
//
// Tells the page when the session is about to end (`menshen:ending`) and when it has ended (`menshen:ended`), also when
// the user signed out in another tab, and offers to sign in again in a new tab, so that no form is lost. One minute
// before a session ends because its user does nothing (`menshen:idle`), it asks whether they are still there. Listen on
// `window`; `event.preventDefault()` on `menshen:ended` or `menshen:idle` keeps our dialog away.
import { onActive, onEnded, onEnding, onIdle, onResumed, signOut, stay } from './client.js'

/** @type {HTMLDialogElement | undefined} */
let dialog
/** @type {ReturnType<typeof createWarning> | undefined} */
let warning
/** The page shows the warning itself. */
let isQuiet = false

onEnding(expiresAt => {
  window.dispatchEvent(new CustomEvent('menshen:ending', { detail: { expiresAt } }))
})

onEnded(words => {
  if (!window.dispatchEvent(new CustomEvent('menshen:ended', { cancelable: true }))) return
  dialog ??= createDialog(words)
  if (!dialog.open) dialog.showModal()
})

onResumed(() => dialog?.close())

onIdle(idle => {
  if (!warning && !isQuiet) {
    const event = new CustomEvent('menshen:idle', { cancelable: true, detail: { leftMs: idle.leftMs } })
    if (window.dispatchEvent(event)) warning = createWarning(idle)
    else isQuiet = true
  }
  warning?.show(idle.leftMs)
})

onActive(() => {
  warning?.close()
  warning = undefined
  isQuiet = false
  window.dispatchEvent(new CustomEvent('menshen:active'))
})

/** @param {import('./client.js').Ended} words */
function createDialog({ lang, title, text, link: label, login, colors }) {
  const { element, content } = createFrame(lang, colors)
  const words = nameAndDescribe(element, title, text)
  const link = document.createElement('a')
  link.href = login
  link.target = '_blank'
  link.rel = 'noopener'
  link.textContent = label
  link.className = 'button'
  content.append(...words, link)
  closeByClickOutside(element, () => element.close())
  return element
}

/** @param {import('./client.js').Idle} words */
function createWarning({ lang, title, text, stay: stayLabel, leave, leftMs: wholeMs, colors }) {
  const { host, element, content } = createFrame(lang, colors)
  // It interrupts: screen readers read the title and the text at once, and the numbers only when asked.
  element.setAttribute('role', 'alertdialog')
  const words = nameAndDescribe(element, title, text)
  const bar = make('div', '')
  bar.className = 'bar'
  const left = make('p', '')
  left.className = 'left'
  left.setAttribute('role', 'timer')
  const stayButton = make('button', stayLabel)
  stayButton.className = 'button'
  const leaveButton = make('button', leave)
  leaveButton.className = 'button quiet'
  const actions = make('div', '')
  actions.className = 'actions'
  actions.append(stayButton, leaveButton)
  content.append(bar, ...words, left, actions)

  let endsAt = 0
  /** @type {ReturnType<typeof setInterval> | undefined} */
  let ticking

  function tick() {
    const seconds = Math.max(0, Math.ceil((endsAt - performance.now()) / 1000))
    left.textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
    bar.style.transform = `scaleX(${Math.min(1, (seconds * 1000) / wholeMs)})`
  }

  /** Who closes the warning by any key is there. */
  function staySignedIn() {
    stayButton.setAttribute('aria-busy', 'true')
    stay()
      .catch(() => {})
      .finally(() => stayButton.removeAttribute('aria-busy'))
  }

  stayButton.addEventListener('click', staySignedIn)
  leaveButton.addEventListener('click', signOut)
  element.addEventListener('cancel', event => {
    event.preventDefault()
    staySignedIn()
  })
  closeByClickOutside(element, staySignedIn)

  return {
    /** @param {number} leftMs */
    show(leftMs) {
      endsAt = performance.now() + leftMs
      ticking ??= setInterval(tick, 1000)
      tick()
      if (element.open) return
      element.showModal()
      stayButton.focus()
    },
    close() {
      clearInterval(ticking)
      element.close()
      host.remove()
    },
  }
}

/**
 * The heading and the text of a dialog; they are its accessible name and its description, too.
 * @param {HTMLDialogElement} element
 * @param {string} title
 * @param {string} text
 */
function nameAndDescribe(element, title, text) {
  element.setAttribute('aria-labelledby', 'title')
  element.setAttribute('aria-describedby', 'text')
  const heading = make('h2', title)
  heading.id = 'title'
  const sentence = make('p', text)
  sentence.id = 'text'
  return [heading, sentence]
}

/**
 * The content fills the dialog: a click on the dialog itself is one on what is behind it.
 * @param {HTMLDialogElement} element
 * @param {() => void} close
 */
function closeByClickOutside(element, close) {
  let isOutside = false
  // A selection that begins inside may end outside.
  element.addEventListener('pointerdown', event => {
    isOutside = event.target === element
  })
  element.addEventListener('click', event => {
    if (isOutside && event.target === element) close()
  })
}

/**
 * @param {string} name
 * @param {string} text
 */
function make(name, text) {
  const element = document.createElement(name)
  element.textContent = text
  return element
}

/**
 * The styles of the page do not reach it; the colours are those of menshen.css. A policy that forbids inline styles allows
 * this sheet.
 */
const STYLES = `
:host { all: initial; color-scheme: light dark; }
dialog {
  --card: light-dark(#ffffff, #1f2227);
  --ink: light-dark(#1f2328, #eceae6);
  --soft: light-dark(#5c6470, #a3a9b3);
  --line: light-dark(#e7e2da, #33373e);
  --field-line: light-dark(#8a8378, #78808b);
  --accent: light-dark(#1d5b8f, #7fb5e6);
  --on-accent: light-dark(#ffffff, #081a2a);
  --link: light-dark(#1a5a94, #8fc0ee);
  box-sizing: border-box;
  width: min(26rem, calc(100vw - 2rem));
  padding: 0;
  overflow: hidden auto;
  border: 1px solid var(--line);
  border-radius: 1rem;
  background: var(--card);
  color: var(--ink);
  font: 1rem/1.7 system-ui, -apple-system, "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", "Noto Sans SC", sans-serif;
  text-align: center;
  box-shadow: 0 12px 40px rgb(0 0 0 / 30%);
  overflow-wrap: anywhere;
}
dialog::backdrop { background: rgb(15 18 22 / 55%); }
.content { padding: 2rem 1.75rem 1.75rem; }
h2 { margin: 0 0 0.5rem; font-size: 1.25rem; font-weight: 650; line-height: 1.4; text-wrap: balance; }
p { margin: 0 0 1.25rem; color: var(--soft); text-wrap: pretty; }
.left {
  margin: 0 0 1.25rem;
  font-size: 2.5rem;
  font-weight: 600;
  line-height: 1.1;
  font-variant-numeric: tabular-nums;
  color: var(--link);
}
.bar {
  position: absolute;
  inset: 0 0 auto;
  height: 0.25rem;
  background: var(--accent);
  transform-origin: left;
}
.actions { display: grid; gap: 0.75rem; }
.button {
  display: block;
  box-sizing: border-box;
  width: 100%;
  min-height: 3rem;
  padding: 0.625rem 1.25rem;
  border: 1px solid transparent;
  border-radius: 0.625rem;
  background: var(--accent);
  color: var(--on-accent);
  font: inherit;
  font-weight: 600;
  text-align: center;
  text-decoration: none;
  cursor: pointer;
}
.quiet { background: transparent; border-color: var(--field-line); color: var(--ink); }
.button[aria-busy="true"] { opacity: 0.7; cursor: progress; }
.button:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
@media (forced-colors: active) { .button { border-color: ButtonBorder; } .bar { background: CanvasText; } }
@media (prefers-reduced-motion: no-preference) { .bar { transition: transform 1s linear; } }
`

/**
 * @param {string} lang
 * @param {import('./client.js').DialogColors | undefined} colors
 */
function createFrame(lang, colors) {
  const host = document.createElement('div')
  const root = host.attachShadow({ mode: 'open' })
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(STYLES)
  root.adoptedStyleSheets = [sheet]
  const element = document.createElement('dialog')
  element.lang = lang
  if (colors) {
    element.style.setProperty('--accent', colors.accent)
    element.style.setProperty('--on-accent', colors.onAccent)
    element.style.setProperty('--link', colors.link)
  }
  const content = make('div', '')
  content.className = 'content'
  element.append(content)
  root.append(element)
  document.body.append(host)
  return { host, element, content }
}
