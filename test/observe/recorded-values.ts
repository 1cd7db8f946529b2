// Values of a series as promtool writes them: `0x3 1+2x4 _` is 0 0 0 0 1 3 5 7 9 and then no value.

/** `undefined` where there was none. */
export function compactValues(values: readonly (number | undefined)[]): string {
  const parts: string[] = []
  for (let n = 0; n < values.length; ) {
    const first = values[n]
    const step = first === undefined ? 0 : (values[n + 1] ?? first) - first
    let more = 0
    while (n + more + 1 < values.length && values[n + more + 1] === next(first, step, more + 1)) more++
    parts.push(more === 0 ? `${first ?? '_'}` : first === undefined ? `_x${more + 1}` : `${first}${by(step)}x${more}`)
    n += more + 1
  }
  return parts.join(' ')
}

const next = (first: number | undefined, step: number, times: number) =>
  first === undefined ? undefined : first + step * times

const by = (step: number) => (step === 0 ? '' : `${step > 0 ? '+' : '-'}${Math.abs(step)}`)
