// The name that somebody probably meant.

/** How many letters to add, take away, replace, or swap with their neighbour. */
function distance(one: string, other: string): number {
  const rows: number[][] = [Array.from({ length: other.length + 1 }, (_, column) => column)]
  const at = (row: number, column: number) => rows[row]?.[column] ?? 0
  for (let row = 1; row <= one.length; row++) {
    rows.push([row])
    for (let column = 1; column <= other.length; column++) {
      const differs = one[row - 1] === other[column - 1] ? 0 : 1
      const isSwapped = one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1]
      const steps = [at(row - 1, column) + 1, at(row, column - 1) + 1, at(row - 1, column - 1) + differs]
      if (isSwapped) steps.push(at(row - 2, column - 2) + 1)
      rows[row]?.push(Math.min(...steps))
    }
  }
  return at(one.length, other.length)
}

/** The name that is fewest letters away, if `isNear` accepts that distance for it. */
export function nearest(
  given: string,
  names: readonly string[],
  isNear: (letters: number, name: string) => boolean,
): string | undefined {
  const ranked = names.map(name => ({ name, letters: distance(given, name) })).sort((a, b) => a.letters - b.letters)
  return ranked.find(({ name, letters }) => isNear(letters, name))?.name
}

/** What was probably meant by a name that is none of these; `undefined` if nothing is near. */
export function likelyMeantOf(given: string, names: readonly string[]): string | undefined {
  const letters = (name: string) => name.replace(/[_-]/g, '').toLowerCase()
  return (
    names.find(name => letters(name) === letters(given)) ??
    nearest(given, names, distance => distance <= Math.max(1, Math.floor(given.length / 4)))
  )
}
