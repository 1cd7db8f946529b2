// Positions in a trail that counts its events: numbers, as texts of one length.

const DIGITS = 16

export function positionOf(number: number): string {
  return String(number).padStart(DIGITS, '0')
}

/** `undefined` if it is no position. */
export function numberOf(position: string | undefined): number | undefined {
  return position !== undefined && /^\d{16}$/.test(position) ? Number(position) : undefined
}
