// Reading parameters, at the door: each at most once, and an empty one counts as absent (RFC 6749, section 3).

export type Fields = ReadonlyMap<string, string>

/** Undefined if a parameter is repeated. */
export function readFields(params: URLSearchParams): Fields | undefined {
  const fields = new Map(params)
  if (fields.size !== params.size) return undefined
  for (const [name, value] of fields) if (value === '') fields.delete(name)
  return fields
}

/** Undefined if the body is not a form, repeats a parameter, or ends before it is whole. */
export async function readForm(request: Request): Promise<Fields | undefined> {
  const [type = ''] = (request.headers.get('content-type') ?? '').split(';')
  if (type.trim().toLowerCase() !== 'application/x-www-form-urlencoded') return undefined
  const body = await request.text().catch(() => undefined)
  return body === undefined ? undefined : readFields(new URLSearchParams(body))
}
