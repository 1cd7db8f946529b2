// What the overview of the console says, in English.
import type { Sentences } from '../sentences.ts'
import type { zhOverview } from '../zh-CN/zh-CN-overview.ts'

export const enOverview: Sentences<typeof zhOverview> = {
  'overview.range': 'Range',
  'overview.hour': 'Last hour',
  'overview.day': 'Last day',
  'overview.week': 'Last week',
  'overview.plot_signIns': 'Sign-ins and failures',
  'overview.plot_sessions': 'Sessions',
  'overview.plot_requests': 'Requests and refusals',
  'overview.plot_times': 'Times (milliseconds)',
  'overview.numbers': 'The numbers',
  'overview.sessions_now': 'Sessions',
  'overview.sign_ins': 'Signed in',
  'overview.failures': 'Failed sign-ins',
  'overview.refusals': 'Refused',
  'overview.failed_for': 'Failed:',
  'overview.admitted': 'Admitted',
  'overview.visitors': 'Not signed in',
  'overview.errors': 'Errors',
  'overview.of_requests': 'Requests',
  'overview.of_provider': 'Provider',
  'overview.of_store': 'Store',
  'overview.time': 'Time',
  'problem.store_away': 'The store cannot be reached: only what this process has seen is shown.',
  'problem.more': 'Related checks that failed: {count}; see {health}.',
  'problem.provider':
    '{provider} has not completed a sign-in or a refresh since {since}: {failures} failures, {people} users or addresses affected.',
  'problem.recovered': '{provider} failed {failures} times within the last hour, and works again since {until}.',
  'problem.request_failed': '{times} requests failed within the last hour, by an error of our own.',
  'problem.upstream_failed': 'The application did not answer, or broke off: {times} times within the last hour.',
  'problem.upstream_busy': 'The application is too busy: {times} requests were turned away within the last hour.',
  'problem.store_unreachable': 'The store could not be reached {times} times within the last hour.',
  'problem.tokens_not_saved': 'Refreshed tokens could not be saved at once, {times} times.',
  'problem.record_unreadable': '{times} records of sessions do not open.',
  'problem.data_keys_closed':
    'No SECRET opens the data keys of the store: put the former one behind the new one. ({times} times)',
  'problem.cookie_lost': 'A browser did not keep the cookie after signing in, {times} times: check BASE_URL.',
  'problem.rate_limited': '{times} requests were turned away within the last hour because there were too many.',
}
