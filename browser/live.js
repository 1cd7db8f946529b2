// A stream of the console that does not give up: a browser's own stops for good at the first response that is not a stream, such
// as that of a proxy while the gateway restarts, and the page would keep showing old data.

const FIRST_PAUSE_MS = 1000
/** The session may have ended, or the page is forgotten: then it asks once a minute. */
const LONGEST_PAUSE_MS = 60_000

/**
 * @param {() => string} address Called whenever the stream is opened again.
 * @param {Record<string, (data: any) => void>} listeners By the names of the events.
 */
export function listen(address, listeners, pauseMs = FIRST_PAUSE_MS) {
  const stream = new EventSource(address())
  let again = pauseMs
  stream.addEventListener('open', () => {
    again = FIRST_PAUSE_MS
  })
  for (const [name, hear] of Object.entries(listeners))
    stream.addEventListener(name, ({ data }) => hear(JSON.parse(data)))
  stream.addEventListener('error', () => {
    stream.close()
    setTimeout(() => listen(address, listeners, Math.min(2 * again, LONGEST_PAUSE_MS)), again)
  })
}
