// Reads answers from the wire, strictly: a client that is as strict must never be led astray.

interface Response {
  status: number
  headers: Map<string, string>
}

/** `headPossible`: an answer to HEAD promises a length and has no body. */
export function readResponses(bytes: Buffer, headPossible: boolean): { responses: Response[]; problem?: string } {
  const responses: Response[] = []
  let rest = bytes.toString('latin1')
  while (rest !== '') {
    const end = rest.indexOf('\r\n\r\n')
    if (end < 0) return { responses, problem: 'incomplete' }
    const [statusLine = '', ...lines] = rest.slice(0, end).split('\r\n')
    rest = rest.slice(end + 4)
    const status = Number(/^HTTP\/1\.1 (\d{3}) ?[\x20-\x7e]*$/.exec(statusLine)?.[1])
    if (!status) return { responses, problem: `status line ${JSON.stringify(statusLine)}` }
    const headers = new Map<string, string>()
    for (const line of lines) {
      const [, name = '', value = ''] = /^([!#$%&'*+.^_`|~\w-]+): ?([\x20-\x7e\x80-\xff\t]*)$/.exec(line) ?? []
      if (!name) return { responses, problem: `header line ${JSON.stringify(line)}` }
      const key = name.toLowerCase()
      if (['content-length', 'location', 'transfer-encoding'].includes(key) && headers.has(key))
        return { responses, problem: `${key} twice` }
      headers.set(key, value)
    }
    responses.push({ status, headers })
    const body = readBody(rest, status, headers, headPossible)
    if (typeof body === 'string') return { responses, problem: body }
    rest = rest.slice(body.length)
  }
  return { responses }
}

function readBody(
  rest: string,
  status: number,
  headers: Map<string, string>,
  headPossible: boolean,
): { length: number } | string {
  if (status < 200 || status === 204 || status === 304) return { length: 0 }
  const isNext = rest === '' || rest.startsWith('HTTP/1.1 ')
  const coding = headers.get('transfer-encoding')
  if (coding !== undefined && headers.has('content-length')) return 'both a length and a coding'
  if (headPossible && isNext) return { length: 0 }
  if (coding !== undefined) return coding === 'chunked' ? readChunks(rest) : `coding ${coding}`
  const length = headers.get('content-length')
  if (length === undefined) return { length: rest.length }
  if (!/^\d+$/.test(length)) return `length ${length}`
  return Number(length) <= rest.length ? { length: Number(length) } : 'incomplete'
}

function readChunks(rest: string): { length: number } | string {
  let at = 0
  for (;;) {
    const line = rest.indexOf('\r\n', at)
    if (line < 0) return 'incomplete'
    const size = rest.slice(at, line)
    if (!/^[0-9a-f]+$/i.test(size)) return `chunk size ${JSON.stringify(size)}`
    const end = line + 2 + Number.parseInt(size, 16)
    if (end + 2 > rest.length) return 'incomplete'
    if (rest.slice(end, end + 2) !== '\r\n') return 'a chunk does not end where it says'
    at = end + 2
    if (Number.parseInt(size, 16) === 0) return { length: at }
  }
}
