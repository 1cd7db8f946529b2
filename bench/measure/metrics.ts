// What Menshen counts itself, as Prometheus reads it.

import { ask } from './answer.ts'

/** The sum over the lines of a counter whose labels are wanted. */
export async function readCounter(base: string, name: string, wanted: (labels: string) => boolean): Promise<number> {
  const { status, body } = await ask(`${base}/_menshen/metrics`)
  if (status !== 200) throw new Error(`the metrics of ${base} answered ${status}`)
  const lines = body.toString().matchAll(new RegExp(`^${name}\\{(.*)\\} (\\d+)`, 'gm'))
  return lines.filter(([, labels = '']) => wanted(labels)).reduce((sum, [, , value]) => sum + Number(value), 0)
}
