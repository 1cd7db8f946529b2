// The overview's plots, redrawn whenever the server sends new data.
import { listen } from './live.js'
import { showMoments } from './moments.js'
import uPlot from './uplot.js'

/** @typedef {import('../src/observe/history.ts').Plot} Plot */
/** @typedef {[label: string, column: readonly (number | null)[]]} Line */
/** @typedef {keyof typeof SHOWN} PlotName */

const plots = byId('plots')
/** @type {Record<string, string>} */
const words = Object.fromEntries(new URLSearchParams(plots.dataset.words))
const language = document.documentElement.lang
/**
 * Seen by day and by night, and told apart also by those who do not see all colours: the lines differ in dashes, too. In the
 * order of what a plot shows: green for what went well, amber for what was refused, red for errors.
 */
const COLOURS = ['#2f7d5b', '#4a7fc1', '#a06a00', '#d0453b', '#9366bd', '#747c88']
/** Counts are whole numbers. */
const WHOLE = [1, 2, 5].flatMap(step => [0, 1, 2, 3, 4, 5, 6].map(power => step * 10 ** power)).sort((a, b) => a - b)
const HEIGHT = 200
const DASHES = [[], [6, 3], [2, 3], [8, 3, 2, 3]]
/** @type {Map<string, { labels: string, chart: uPlot }>} */
const drawn = new Map()

/** What each plot shows. */
const SHOWN = {
  /** @type {(plot: Plot) => Line[]} */
  signIns: plot => [
    line('signIns', plot.signIns),
    ...Object.entries(plot.failures).map(([reason, column]) => line(`failed_${reason}`, column)),
  ],
  /** @type {(plot: Plot) => Line[]} */
  sessions: plot => [line('sessions', plot.sessions)],
  /** @type {(plot: Plot) => Line[]} */
  requests: ({ requests }) => [
    line('admitted', requests.admitted),
    line('visitor', requests.visitor),
    line('refused', requests.refused),
    line('error', requests.error),
  ],
  /** @type {(plot: Plot) => Line[]} */
  times: ({ times }) =>
    Object.entries(times).flatMap(([name, { p50, p99 }]) => [line(`${name}_p50`, p50), line(`${name}_p99`, p99)]),
}

/**
 * @param {string} name
 * @param {Line[1]} column
 * @returns {Line}
 */
function line(name, column) {
  return [words[name] ?? name, column]
}

/** @param {string} id */
function byId(id) {
  const element = document.getElementById(id)
  if (!element) throw new Error(`the page has no ${id}`)
  return element
}

/**
 * @param {PlotName} name
 * @param {Plot} plot
 */
function draw(name, plot) {
  const place = byId(`plot-${name}`)
  const lines = SHOWN[name](plot)
  const data = /** @type {uPlot.AlignedData} */ ([plot.at, ...lines.map(([, column]) => column)])
  const labels = lines.map(([label]) => label).join('\n')
  const known = drawn.get(name)
  if (known?.labels === labels) return known.chart.setData(data)
  known?.chart.destroy()
  drawn.set(name, { labels, chart: new uPlot(optionsFor(name, place, lines), data, place) })
}

/**
 * @param {PlotName} name
 * @param {HTMLElement} place
 * @param {Line[]} lines
 * @returns {uPlot.Options}
 */
function optionsFor(name, place, lines) {
  const style = getComputedStyle(document.body)
  const axis = {
    stroke: style.getPropertyValue('--soft'),
    grid: { stroke: style.getPropertyValue('--line'), width: 1 },
  }
  const times = new Intl.DateTimeFormat(language, { dateStyle: 'short', timeStyle: 'short' })
  return {
    width: widthFor(place),
    height: HEIGHT,
    cursor: { y: false },
    axes: [
      { ...axis, space: 72, values: (_chart, ticks) => ticks.map(tick => shortTime(tick, ticks)) },
      { ...axis, size: 56, ...(name === 'times' ? logarithmic(axis.grid) : { incrs: WHOLE, space: 36 }) },
    ],
    // Times of a tenth of a millisecond and of ten seconds have to fit into one plot.
    scales: { y: name === 'times' ? { distr: 3 } : { range: (_chart, _least, most) => [0, Math.max(1, most ?? 1)] } },
    series: [
      {
        label: words.time ?? '',
        value: (chart, at) => {
          const shown = at ?? chart.data[0].at(-1)
          return shown === undefined ? '—' : times.format(shown * 1000)
        },
      },
      ...lines.map(([label], n) => seriesFor(label, n)),
    ],
  }
}

/** @param {uPlot.Axis.Grid} grid */
function logarithmic(grid) {
  return { filter: tens, grid: { ...grid, filter: tens }, ticks: { ...grid, size: 6, filter: tens } }
}

/**
 * The plot without its legend, which is beside it where there is room.
 * @param {HTMLElement} place
 */
function widthFor(place) {
  const legend = Number.parseFloat(getComputedStyle(place).getPropertyValue('--legend')) || 0
  const rem = Number.parseFloat(getComputedStyle(document.documentElement).fontSize)
  return Math.max(160, place.clientWidth - legend * rem)
}

/**
 * Of the many lines of a logarithmic scale those that have a number.
 * @type {uPlot.Axis.Filter}
 */
function tens(_chart, splits) {
  return splits.map(split => (Number.isInteger(Math.log10(split)) ? split : null))
}

/**
 * @param {string} label
 * @param {number} n
 * @returns {uPlot.Series}
 */
function seriesFor(label, n) {
  return {
    label,
    stroke: COLOURS[n % COLOURS.length] ?? 'currentColor',
    dash: DASHES[n % DASHES.length] ?? [],
    width: 1.5,
    points: { size: 5 },
    // Without a pointer, the latest value.
    value: (chart, number, series, at) => (at === null ? latestOf(chart.data[series]) : number) ?? '—',
  }
}

/** @param {ArrayLike<number | null | undefined> | undefined} column */
function latestOf(column) {
  return column && Array.from(column).findLast(number => number !== null && number !== undefined)
}

/**
 * @param {number} tick
 * @param {number[]} ticks
 */
function shortTime(tick, ticks) {
  const spansDays = (ticks.at(-1) ?? tick) - (ticks[0] ?? tick) > 86_400
  /** @type {Intl.DateTimeFormatOptions} */
  const format = spansDays ? { month: 'numeric', day: 'numeric' } : { hour: '2-digit', minute: '2-digit' }
  return new Intl.DateTimeFormat(language, format).format(tick * 1000)
}

function redraw() {
  for (const [name, { chart }] of drawn) chart.setSize({ width: widthFor(byId(`plot-${name}`)), height: HEIGHT })
}

/** @type {Map<string, string>} */
const shown = new Map()
// The page has this already: a reader may have opened it.
shown.set('advice', byId('advice').innerHTML)

/**
 * Only what differs: a screen reader need not hear the same again.
 * @param {string} id
 * @param {string} markup
 */
function show(id, markup) {
  const parsed = document.createElement('template')
  parsed.innerHTML = markup
  if (shown.get(id) === parsed.innerHTML) return
  shown.set(id, parsed.innerHTML)
  const place = byId(id)
  const wasOpen = place.querySelector('details')?.open ?? false
  place.innerHTML = markup
  const details = place.querySelector('details')
  if (details) details.open = wasOpen
  showMoments(place)
}

/** @type {Plot | undefined} */
let latest

listen(() => plots.dataset.live ?? '', {
  state: markup => show('state', markup),
  problems: markup => show('problems', markup),
  figures: markup => show('figures', markup),
  advice: markup => {
    show('advice', markup)
    hideDismissed()
  },
  plot: plot => {
    latest = plot
    drawAll()
  },
})

// Advice that the reader has dismissed, by its fingerprint: advice that says something else has another one.

const DISMISSED = 'menshen-dismissed-advice'

/** @returns {string[]} */
function readDismissed() {
  try {
    const kept = JSON.parse(localStorage.getItem(DISMISSED) ?? '[]')
    return Array.isArray(kept) ? kept.map(String) : []
  } catch {
    // The browser keeps nothing for this page.
    return []
  }
}

/** @param {string[]} fingerprints */
function dismiss(fingerprints) {
  try {
    localStorage.setItem(DISMISSED, JSON.stringify(fingerprints))
  } catch {
    // It is hidden until the page is loaded again.
  }
  hideDismissed(fingerprints)
}

function hideDismissed(dismissed = readDismissed()) {
  const lines = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll('[data-advice]'))
  for (const line of lines) {
    line.hidden = dismissed.includes(line.dataset.advice ?? '')
    for (const button of line.querySelectorAll('button')) button.hidden = false
  }
  const left = [...lines].filter(line => !line.hidden).length
  const details = /** @type {HTMLElement | null} */ (document.querySelector('#advice details'))
  if (details) details.hidden = left === 0
  const count = document.querySelector('#advice summary .tag')
  if (count) count.textContent = String(left)
  const again = document.getElementById('dismissed')
  if (again) again.hidden = left === lines.length
}

byId('advice').addEventListener('click', event => {
  const button = event.target instanceof Element ? event.target.closest('button') : null
  if (!button) return
  const line = /** @type {HTMLElement | null} */ (button.closest('[data-advice]'))
  const others = [...document.querySelectorAll('[data-advice]')].map(other => String(other.getAttribute('data-advice')))
  // What is not on the page any more need not be kept.
  if (line) dismiss([...readDismissed().filter(kept => others.includes(kept)), line.dataset.advice ?? ''])
  else dismiss([])
})
hideDismissed()

function drawAll() {
  if (!latest) return
  for (const name of /** @type {PlotName[]} */ (Object.keys(SHOWN))) draw(name, latest)
}

/** In the colours of the other half of the day. */
function drawAnew() {
  for (const { chart } of drawn.values()) chart.destroy()
  drawn.clear()
  drawAll()
}

new ResizeObserver(redraw).observe(plots)
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawAnew)
