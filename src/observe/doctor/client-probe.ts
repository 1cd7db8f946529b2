// How the provider answers a made-up code: it is refused to everybody, and the way it is refused tells whether it knows us,
// our secret and our redirect address.
import { MenshenError } from '../../errors.ts'
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
  return failure(
    what,
    'a made-up code was accepted',
    'Whoever invents a code would be signed in: do not use this provider.',
  )
}

function judge(what: string, plan: ProviderPlan, redirectUri: string, error: RefusalError): Finding {
  const { status, said = '' } = error
  const isCompany = plan.kind === 'company_token'
  const answered = `${status}${said && ` ${said}`}`
  const codeRefused = [...CODE_REFUSED, ...plan.refreshEnds, ...(isCompany ? COMPANY_CODE_REFUSED : [])]
  const clientRefused = [...CLIENT_REFUSED, ...(isCompany ? COMPANY_CLIENT_REFUSED : [])]
  if (codeRefused.includes(said)) return good(what, `known: a made-up code gets ${answered}, as it should`)
  if (REDIRECT_REFUSED.includes(said))
    return failure(
      what,
      `the redirect address is not the registered one (${answered})`,
      `Register exactly ${redirectUri} at the provider, or correct BASE_URL.`,
    )
  if (error.remedy) return failure(what, error.message, error.remedy)
  if (clientRefused.includes(said) || status === 401)
    return failure(
      what,
      `the provider does not accept the client (${answered})`,
      'CLIENT_ID or CLIENT_SECRET is wrong, or CLIENT_AUTH is not the way that is registered for this client.',
    )
  if (NO_SUCH_PLACE.includes(status))
    return failure(
      what,
      `there is no token endpoint (${answered})`,
      'Check AUTH_URL and the addresses of the provider.',
    )
  if (status >= 500)
    return failure(what, `the token endpoint is out of order (${answered})`, 'Ask whoever runs the provider.')
  return warning(
    what,
    `a made-up code gets ${answered}, which does not tell whether the client is known`,
    'menshen doctor --sign-in will tell.',
  )
}

function unusable(what: string, error: unknown): Finding {
  if (!(error instanceof MenshenError))
    return failure(what, whatFailed(error), 'Check the key or the secret of the client: they could not be used.')
  const remedy =
    error.code === 'provider_unreachable'
      ? 'Check the address, and what stands between here and the provider; a slow one needs a larger PROVIDER_TIMEOUT_MS.'
      : 'This is no answer of a token endpoint: check AUTH_URL, and what stands between here and the provider.'
  return failure(what, error.message, remedy)
}
