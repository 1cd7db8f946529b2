// Headers whose value is a list, separated by commas.

export function splitList(header: string | string[] | undefined): string[] {
  return String(header ?? '')
    .split(',')
    .map(part => part.trim())
    .filter(Boolean)
}
