// Labels and tags as the database keeps them: a JSON list. A damaged one is read as empty.

export function readLabels(json: unknown): string[] {
  if (typeof json !== 'string') return []
  try {
    const labels: unknown = JSON.parse(json)
    return Array.isArray(labels) ? labels.filter(label => typeof label === 'string') : []
  } catch {
    return []
  }
}
