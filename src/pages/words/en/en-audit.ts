// What the console says about the audit trail, in English.
import type { Sentences } from '../sentences.ts'
import type { zhAudit } from '../zh-CN/zh-CN-audit.ts'

export const enAudit: Sentences<typeof zhAudit> = {
  'console.audit': 'Audit',
  'console.store_away':
    'The store cannot be reached, so this cannot be read now. Please reload the page when it is back.',
  'audit.time': 'Time',
  'audit.request': 'Request',
  'audit.event': 'Event',
  'audit.all_events': 'All events',
  'audit.session': 'Session',
  'audit.since': 'Since',
  'audit.until': 'Until',
  'audit.from': 'From',
  'audit.clear': 'Clear',
  'audit.csv': 'Export as CSV',
  'audit.jsonl': 'Export as JSON lines',
  'audit.off': 'AUDIT_KEEP is 0: the store keeps no audit events.',
  'audit.nothing': 'Nothing was found.',
  'audit.new_events': 'New events: {count}.',
  'audit.unreadable': 'Events that do not open any more, because their SECRET is gone: {count}.',
  'audit.newest': 'Back to the newest',
  'audit.older': 'Older events',
  'audit.looked': 'No more events fit within the part that was looked at.',
  'audit.further': 'Continue further back',
  'audit.end': 'There is nothing older.',
  'audit.event_sign_in': 'Signed in',
  'audit.event_sign_in_failed': 'Sign-in failed',
  'audit.event_sign_out': 'Signed out',
  'audit.event_session_ended': 'Session ended by others',
  'audit.event_session_refresh_failed': 'Refresh failed',
  'audit.event_refused': 'Refused: not allowed',
  'audit.event_rate_limited': 'Too many requests, turned away',
  'audit.event_config_reloaded': 'Settings read anew',
}
