// A page that says that something is unavailable tries again by itself: it counts down, loads again, and waits twice as long
// each time. A click anywhere stops it, and so does the last try. A tab that is not looked at waits until it is.
//
//   failed, 5 s, failed, 10 s, failed, 20 s, failed, 40 s, failed, 60 s, failed: the user decides

const MOST_TRIES = 5
const LONGEST_SECONDS = 60
/** Failures that are further apart have nothing to do with each other. */
const FORGET_MS = 5 * 60_000
const KEY = `menshen_retry:${window.location.pathname}`

const box = /** @type {HTMLElement | null} */ (document.querySelector('.retry'))
const shown = /** @type {HTMLElement | null} */ (box?.querySelector('[role=timer]') ?? null)
if (box && shown) start(box, shown)

/**
 * @param {HTMLElement} box
 * @param {HTMLElement} shown
 */
function start(box, shown) {
  const { seconds, stopped = '', givenUp = '' } = box.dataset
  const tries = readTries()
  if (tries === undefined) return
  box.hidden = false
  if (tries >= MOST_TRIES) return end(givenUp)
  let left = secondsBefore(tries, Number(seconds) || 5)
  const timer = setInterval(tick, 1000)
  document.addEventListener('click', stop)
  show()

  function show() {
    shown.textContent = (shown.dataset.text ?? '').replace('#', String(left))
  }

  function tick() {
    if (document.visibilityState === 'hidden') return
    left -= 1
    if (left > 0) return show()
    clearInterval(timer)
    keepTries(tries + 1)
    window.location.reload()
  }

  function stop() {
    clearInterval(timer)
    document.removeEventListener('click', stop)
    end(stopped)
  }

  /** @param {string} text */
  function end(text) {
    box.setAttribute('role', 'status')
    shown.textContent = text
    box.querySelector('button')?.remove()
  }
}

/**
 * Up to a fifth more at random: not all browsers come back at the same moment.
 * @param {number} tries
 * @param {number} first
 */
function secondsBefore(tries, first) {
  return Math.ceil(Math.min(LONGEST_SECONDS, first * 2 ** tries) * (1 + Math.random() / 5))
}

/** `undefined` where nothing can be remembered: such a page would load itself for ever. */
function readTries() {
  try {
    const { tries, at } = JSON.parse(sessionStorage.getItem(KEY) ?? '{}')
    return Number.isInteger(tries) && Date.now() - at < FORGET_MS ? tries : 0
  } catch {
    return undefined
  }
}

/** @param {number} tries */
function keepTries(tries) {
  sessionStorage.setItem(KEY, JSON.stringify({ tries, at: Date.now() }))
}
