// How the provider answers a made-up code: it is refused to everybody, and the way it is refused tells whether it knows us,
// our secret and our redirect address.
import { MenshenError } from '../../errors.ts'
import { phrase } from '../../phrases.ts'
import type { ProviderPlan } from '../../provider/plan.ts'
import { RefusalError } from '../../provider/token-answer.ts'
import { type Finding, failure, good, warning, whatFailed } from './finding.ts'

/** The error codes of RFC 6749, and of those who have their own. */
const CODE_REFUSED = ['invalid_grant', 'invalid_token', 'bad_verification_code', 'invalid_code']
const CLIENT_REFUSED = ['invalid_client', 'unauthorized_client', 'incorrect_client_credentials']
const REDIRECT_REFUSED = ['redirect_uri_mismatch', 'invalid_redirect_uri', 'redirect_mismatch']
/** WeCom: a wrong code; a wrong secret, id or company. */
const COMPANY_CODE_REFUSED = ['40029', '40163', '42003']
const COMPANY_CLIENT_REFUSED = ['40001', '40013', '40056', '40091']
const NO_SUCH_PLACE = [404, 405, 410]

/** `attempt` is the redemption of a code that the provider never gave. */
export async function probeClient(
  what: string,
  plan: ProviderPlan,
  redirectUri: string,
  attempt: Promise<unknown>,
): Promise<Finding> {
  try {
    await attempt
  } catch (error) {
    return error instanceof RefusalError ? judge(what, plan, redirectUri, error) : unusable(what, error)
  }
  return failure(what, phrase('made_up_code_accepted'), phrase('do_not_use_provider'))
}

function judge(what: string, plan: ProviderPlan, redirectUri: string, error: RefusalError): Finding {
  const { status, said = '' } = error
  const isCompany = plan.kind === 'company_token'
  const answer = `${status}${said && ` ${said}`}`
  const codeRefused = [...CODE_REFUSED, ...plan.refreshEnds, ...(isCompany ? COMPANY_CODE_REFUSED : [])]
  const clientRefused = [...CLIENT_REFUSED, ...(isCompany ? COMPANY_CLIENT_REFUSED : [])]
  if (codeRefused.includes(said)) return good(what, phrase('client_known', { answer }))
  if (REDIRECT_REFUSED.includes(said))
    return failure(
      what,
      phrase('redirect_not_registered', { answer }),
      phrase('register_redirect', { url: redirectUri }),
    )
  if (error.remedy) return failure(what, whatFailed(error), error.remedy)
  if (clientRefused.includes(said) || status === 401)
    return failure(what, phrase('client_refused', { answer }), phrase('check_client_credentials'))
  if (NO_SUCH_PLACE.includes(status))
    return failure(what, phrase('no_token_endpoint', { answer }), phrase('check_provider_addresses'))
  if (status >= 500) return failure(what, phrase('token_endpoint_broken', { answer }), phrase('ask_provider_admin'))
  return warning(what, phrase('code_answer_unclear', { answer }), phrase('sign_in_will_tell'))
}

function unusable(what: string, error: unknown): Finding {
  if (!(error instanceof MenshenError)) return failure(what, whatFailed(error), phrase('check_client_key'))
  const remedy = error.code === 'provider_unreachable' ? phrase('check_way_to_provider') : phrase('no_token_answer')
  return failure(what, whatFailed(error), remedy)
}
