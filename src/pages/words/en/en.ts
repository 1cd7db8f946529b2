// What users and developers read, in English.

import { phraseTable } from '../../../phrases.ts'
import type { Sentences } from '../sentences.ts'
import type { zhCN } from '../zh-CN/zh-CN.ts'
import { enAudit } from './en-audit.ts'
import { enConsole } from './en-console.ts'
import { enOverview } from './en-overview.ts'
import { enPeople } from './en-people.ts'
import { enRules } from './en-rules.ts'
import { enSettings } from './en-settings.ts'

const TRY_LATER = 'Please try again later. If it keeps happening, ask your administrator.'
const ASK_ADMINISTRATOR =
  'Please ask your administrator to check how this application is set up at the identity provider.'
const REFRESH_LATER = 'Please reload the page in a while. If it keeps happening, ask your administrator.'

export const en: Sentences<typeof zhCN> = {
  ...enConsole,
  ...enSettings,
  ...enAudit,
  ...enRules,
  ...enPeople,
  ...enOverview,
  ...phraseTable('en'),
  'language.name': 'English',
  'app.name': 'Sign-in',
  'page.footer': 'Menshen',
  'page.home': 'Back to the home page',
  'page.request_id': 'Reference: {id}',
  'page.copy': 'Copy',
  'page.copied': 'Copied',

  'login.title': 'Sign in',
  'login.provider': 'single sign-on',
  'login.button': 'Sign in with {name}',
  'login.use_account': 'Please sign in with the account of your organization',
  'login.choose': 'Please choose how to sign in',
  'login.wanted': 'After signing in you continue to {path}',
  'login.links': 'Related links',
  'login.hint': 'Your user name and password are only ever entered on the identity provider’s own page.',
  'login.error_code': 'Error code: {code}',
  'login.missing': 'Signing in is not set up yet.',
  'login.missing_settings': 'An administrator has to add these settings and restart:',
  'login.signed_in': 'You are signed in: {name}',
  'login.continue': 'Continue',
  'login.other_account': 'To use another account, sign in again:',
  'login.signed_out_here': 'You have signed out.',
  'login.signed_out_everywhere': 'You have signed out on all devices.',

  'error.missing_code.message': 'The sign-in was not completed: the identity provider sent no code.',
  'error.missing_code.remedy': 'Please sign in again.',
  'error.invalid_state.message': 'This sign-in is no longer valid, or did not begin on this page.',
  'error.invalid_state.remedy': 'To protect your account, please sign in again from this page.',
  'error.token_error.message': 'The sign-in could not be completed with the identity provider.',
  'error.token_error.remedy': TRY_LATER,
  'error.userinfo_error.message': 'You have been identified, but your user information could not be fetched.',
  'error.userinfo_error.remedy': TRY_LATER,
  'error.callback_error.message': 'Something unexpected happened during the sign-in.',
  'error.callback_error.remedy': TRY_LATER,
  'error.access_denied.message': 'The sign-in was cancelled, or you may not use this application.',
  'error.access_denied.remedy': 'You can sign in again. If you need access, ask your administrator.',
  'error.invalid_request.message': 'The sign-in request was incomplete or wrong.',
  'error.invalid_request.remedy': 'Please sign in again. If it keeps happening, ask your administrator.',
  'error.unauthorized_client.message': 'This application may not use the identity provider yet.',
  'error.unauthorized_client.remedy': ASK_ADMINISTRATOR,
  'error.unsupported_response_type.message':
    'The identity provider does not support this application’s way to sign in.',
  'error.unsupported_response_type.remedy': ASK_ADMINISTRATOR,
  'error.invalid_scope.message': 'The identity provider does not grant the scope that this application asks for.',
  'error.invalid_scope.remedy': ASK_ADMINISTRATOR,
  'error.server_error.message': 'The identity provider had an internal error.',
  'error.server_error.remedy': TRY_LATER,
  'error.temporarily_unavailable.message': 'The identity provider is busy or being maintained.',
  'error.temporarily_unavailable.remedy': 'Please try again in a few minutes.',
  'error.other.message': 'The identity provider did not let this sign-in pass.',
  'error.other.remedy': 'Please sign in again. If it keeps happening, tell your administrator the error code below.',

  'notice.retry': 'Try again',
  'notice.signed_in': 'You are signed in. {text}',
  'notice.trial_done.title': 'The trial sign-in is done',
  'notice.trial_done.text':
    'This was a test: nobody was signed in, and the result is in the terminal that runs the check.',
  'notice.trial_done.remedy': 'You can close this page now.',
  'notice.bad_request.title': 'The request cannot be understood',
  'notice.bad_request.text': 'Something is wrong with this address or request.',
  'notice.bad_request.remedy': 'Please check the address, or go back to the home page.',
  'notice.refused.title': 'No access',
  'notice.refused.text': 'You are signed in, but you do not have access to this page.',
  'notice.refused.remedy': 'If you need access, ask your administrator.',
  'notice.foreign.title': 'The request was refused',
  'notice.foreign.text': 'This request came from another website. To protect your account, it was not carried out.',
  'notice.foreign.remedy': 'Please start again from the login page.',
  'notice.not_found.title': 'Page not found',
  'notice.not_found.text': 'There is no such page.',
  'notice.not_found.remedy': 'Please check the address, or go back to the home page.',
  'notice.method_not_allowed.title': 'Not supported',
  'notice.method_not_allowed.text': 'This address does not support this kind of request.',
  'notice.method_not_allowed.remedy': 'Please start again from the home page.',
  'notice.too_large.title': 'Too large',
  'notice.too_large.text': 'What was sent is larger than allowed.',
  'notice.too_large.remedy': 'Please go back and try again.',
  'notice.uri_too_long.title': 'The address is too long',
  'notice.uri_too_long.text': 'The path of this address has more than 4096 bytes or more than 100 segments.',
  'notice.uri_too_long.remedy': 'Please check the address, or go back to the home page.',
  'notice.too_many.title': 'Too many requests',
  'notice.too_many.text': 'There were too many sign-in requests from your network.',
  'notice.too_many.remedy': 'Please wait a minute and try again.',
  'notice.broken.title': 'Something went wrong',
  'notice.broken.text': 'The server had an internal error, which has been recorded.',
  'notice.broken.remedy': TRY_LATER,
  'notice.bad_gateway.title': 'The application cannot be reached',
  'notice.bad_gateway.text': 'The application did not answer.',
  'notice.bad_gateway.remedy': REFRESH_LATER,
  'notice.busy.title': 'The application is busy',
  'notice.busy.text': 'There are more requests now than the application can handle.',
  'notice.busy.remedy': 'Please reload the page in a few seconds. If it keeps happening, ask your administrator.',
  'notice.gateway_timeout.title': 'The application is too slow',
  'notice.gateway_timeout.text': 'The application did not answer in time.',
  'notice.gateway_timeout.remedy': REFRESH_LATER,
  'notice.unavailable.title': 'The service is not available',
  'notice.unavailable.text': 'Whether you are signed in cannot be checked now. You have not been signed out.',
  'notice.unavailable.remedy': 'Please reload the page in a while.',

  'refused.account': 'Account',
  'refused.missing': 'Reason',
  'refused.only': 'Only certain {kinds} have access',
  'refused.role': 'roles',
  'refused.group': 'groups',
  'refused.user': 'users',
  'refused.rule': 'Rule that decided',
  'refused.other_account': 'Sign in with another account',

  'sign_out.title': 'Sign out',
  'sign_out.question': 'Do you want to sign out?',
  'sign_out.reason': 'This request may not have come from you. Please confirm it.',
  'sign_out.no': 'No, back to the home page',

  'lost_cookie.title': 'The sign-in cannot be kept',
  'lost_cookie.heading': 'You have signed in, but the browser did not keep it',
  'lost_cookie.lead': 'Signing in again would lead back here. The likely reasons:',
  'lost_cookie.other_host': 'You came to {host}, and signing in works only at {base_url}.',
  'lost_cookie.plain_http': 'A sign-in can only be kept over https, and this page was opened over http.',
  'lost_cookie.blocked': 'Cookies are switched off in the browser, or an extension or private mode keeps them away.',
  'lost_cookie.hint':
    'Please allow cookies for this website and come back through the address below. Administrators: check the setting {setting}.',

  'session.role': 'Role',
  'session.provider': 'Signed in through',
  'session.expires': 'Valid until',
  'session.unauthenticated': 'Please sign in first.',
  'session.ended':
    'You are no longer signed in. Sign in again in a new tab, then come back and continue here: nothing that you have entered is lost.',
  'session.sign_in_again': 'Sign in again',

  'role.developer': 'Developer',
  'role.common': 'User',
}
