// GET /_menshen/doctor: tells the doctor what of its request has arrived here. Nobody else learns that there is such a page.
import { proofFor, QUESTION_HEADER } from '../../observe/doctor/question.ts'
import type { Arrival } from '../../observe/doctor/way-in.ts'
import type { GatewayContext } from '../context.ts'
import { errorAnswer, jsonAnswer } from '../http/page-answers.ts'
import type { Visit } from '../http/request.ts'
import { clientAddress, isTrusted, plainAddress } from '../http/trusted-proxies.ts'

export async function answerDoctor(context: GatewayContext, visit: Visit): Promise<Response> {
  const { headers, address } = visit
  const { TRUSTED_PROXIES: proxies } = context.settings
  const proof = proofFor(String(headers[QUESTION_HEADER] ?? ''), context.keys.doctor, context.now())
  if (proof === undefined) return errorAnswer(context, visit, 'not_found')
  const arrived: Arrival = {
    proof,
    host: headers.host ?? '',
    proto: String(headers['x-forwarded-proto'] ?? ''),
    client: clientAddress(proxies, visit),
    peer: plainAddress(address),
    isTrusted: isTrusted(proxies, address),
    hasUpgrade: headers.upgrade?.toLowerCase() === 'websocket',
  }
  return jsonAnswer(context, arrived)
}
