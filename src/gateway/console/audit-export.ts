// GET /_menshen/console/audit.csv and audit.jsonl: whatever fits the console's filters, the oldest first, for other programs.
import { CSV_HEAD, csvLine } from '../../observe/audit/audit-csv.ts'
import { type AuditEvent, jsonLine } from '../../observe/audit/audit-event.ts'
import type { FoundEvent } from '../../observe/audit/trail-reader.ts'
import type { SignedInCaller } from '../admission/admit.ts'
import type { GatewayContext } from '../context.ts'
import { safetyHeaders } from '../http/page-answers.ts'
import type { Visit } from '../http/request.ts'
import { filterOf, readQuestion } from './audit-question.ts'

interface Format {
  readonly type: string
  readonly extension: string
  readonly head: string
  line(event: AuditEvent): string
}

const CSV: Format = { type: 'text/csv; charset=utf-8', extension: 'csv', head: CSV_HEAD, line: csvLine }
const JSON_LINES: Format = { type: 'application/jsonl; charset=utf-8', extension: 'jsonl', head: '', line: jsonLine }

/** So many go out at once. */
const IN_A_PART = 200

export function sendAuditCsv(context: GatewayContext, visit: Visit, caller: SignedInCaller): Promise<Response> {
  return send(context, visit, caller, CSV)
}

export function sendAuditJson(context: GatewayContext, visit: Visit, caller: SignedInCaller): Promise<Response> {
  return send(context, visit, caller, JSON_LINES)
}

async function send(
  context: GatewayContext,
  visit: Visit,
  { cookies }: SignedInCaller,
  format: Format,
): Promise<Response> {
  const parts = partsOf(context, visit, format)
  // A store that is away is told of by a page; once the file has begun, only by breaking it off.
  const first = await parts.next()
  const day = new Date(context.now()).toISOString().slice(0, 10)
  const headers = new Headers({
    ...safetyHeaders(context),
    'content-type': format.type,
    'content-disposition': `attachment; filename="audit-${day}.${format.extension}"`,
  })
  for (const cookie of cookies) headers.append('set-cookie', cookie)
  return new Response(streamOf(first, parts), { headers })
}

async function* partsOf(
  { auditTrail, settings }: Pick<GatewayContext, 'auditTrail' | 'settings'>,
  visit: Visit,
  { head, line }: Format,
): AsyncGenerator<string, void, void> {
  let lines = head
  let count = 0
  const events: AsyncIterable<FoundEvent | 'unreadable'> = auditTrail.walk(filterOf(readQuestion(visit)))
  for await (const event of events) {
    if (event === 'unreadable') continue
    lines += line(event)
    // What is written meanwhile must not make it endless.
    if (++count >= settings.AUDIT_KEEP) break
    if (count % IN_A_PART > 0) continue
    yield lines
    lines = ''
  }
  if (lines !== '') yield lines
}

function streamOf(first: IteratorResult<string, void>, parts: AsyncGenerator<string, void, void>) {
  const encoder = new TextEncoder()
  let next: IteratorResult<string, void> | undefined = first
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const part: IteratorResult<string, void> = next ?? (await parts.next())
      next = undefined
      if (part.done) controller.close()
      else controller.enqueue(encoder.encode(part.value))
    },
    async cancel() {
      await parts.return()
    },
  })
}
