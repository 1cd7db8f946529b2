// The audit trail as it grows: new events appear at the top, and are announced. Times are meant in the reader's time zone.
import { listen } from './live.js'
import { showMoments } from './moments.js'

const zone = /** @type {HTMLInputElement | null} */ (document.querySelector('#filters [name=zone]'))
if (zone) useOwnZone(zone)

/**
 * A link may give its times in another time zone than the reader's.
 * @param {HTMLInputElement} zone
 */
function useOwnZone(zone) {
  const own = new Date().getTimezoneOffset()
  const given = zone.value === '' ? own : Number(zone.value)
  zone.value = String(own)
  if (given === own) return
  for (const name of ['since', 'until']) {
    const field = /** @type {HTMLInputElement | null} */ (document.querySelector(`#filters [name=${name}]`))
    if (!field?.value) continue
    const at = Date.parse(`${field.value.replace(' ', 'T')}Z`) + (given - own) * 60_000
    if (!Number.isNaN(at)) field.value = new Date(at).toISOString().slice(0, 16).replace('T', ' ')
  }
}

const trail = document.getElementById('trail')
const news = document.getElementById('news')
const { live, after = '' } = trail?.dataset ?? {}

if (trail && news && live) follow(trail, news, live, after)

/**
 * @param {HTMLElement} trail
 * @param {HTMLElement} news
 * @param {string} live
 * @param {string} newest What is here already is not asked for again.
 */
function follow(trail, news, live, newest) {
  listen(() => `${live}&after=${newest}`, {
    events: ({ rows, said, after }) => {
      newest = after
      const body = trail.querySelector('tbody')
      if (!body) return
      // Made by our own server, with everything that others wrote escaped.
      body.insertAdjacentHTML('afterbegin', rows)
      showMoments(body)
      trail.hidden = false
      document.getElementById('nothing')?.remove()
      news.textContent = said
    },
  })
}
