// The audit trail as it grows: new events appear at the top, and are announced. Times are meant in the reader's time zone.
import { showMoments } from './moments.js'

const zone = /** @type {HTMLInputElement | null} */ (document.querySelector('#filters [name=zone]'))
if (zone) zone.value = String(new Date().getTimezoneOffset())

const trail = document.getElementById('trail')
const news = document.getElementById('news')
const { live, after = '' } = trail?.dataset ?? {}
const AGAIN_MS = 5000

if (trail && news && live) listen(trail, news, live, after)

/**
 * By hand: a stream that connects again by itself would ask for what is here already.
 * @param {HTMLElement} trail
 * @param {HTMLElement} news
 * @param {string} live
 * @param {string} newest
 */
function listen(trail, news, live, newest) {
  const stream = new EventSource(`${live}&after=${newest}`)
  stream.addEventListener('events', ({ data }) => {
    const { rows, said, after } = JSON.parse(data)
    newest = after
    const body = trail.querySelector('tbody')
    if (!body) return
    // Made by our own server, with everything that others wrote escaped.
    body.insertAdjacentHTML('afterbegin', rows)
    showMoments(body)
    trail.hidden = false
    document.getElementById('nothing')?.remove()
    news.textContent = said
  })
  stream.addEventListener('error', () => {
    stream.close()
    setTimeout(() => listen(trail, news, live, newest), AGAIN_MS)
  })
}
