// Colours: only where somebody looks at a terminal that has them, or asks for them.
import { styleText } from 'node:util'
import type { Environment } from '../../settings/read.ts'

export type Colour = 'red' | 'yellow' | 'green' | 'dim' | 'bold'
export type Paint = (colour: Colour, text: string) => string

/** FORCE_COLOR wins over NO_COLOR, as it does in Node itself. Empty, NO_COLOR means nothing (no-color.org). */
export function wantsColours({ FORCE_COLOR, NO_COLOR, TERM }: Environment, isTerminal: boolean): boolean {
  if (FORCE_COLOR !== undefined) return FORCE_COLOR !== '0' && FORCE_COLOR !== 'false'
  return isTerminal && !NO_COLOR && TERM !== 'dumb'
}

export function createPaint(colours: boolean): Paint {
  return colours ? (colour, text) => styleText(colour, text, { validateStream: false }) : (_colour, text) => text
}
