// What a process that runs tells of files that have changed: rows of the one table in events.ts.
import type { EventRow } from '../events.ts'

export const RELOAD_EVENTS = {
  config_reloaded: {
    level: 'info',
    sentence: 'settings and configuration were read anew from their files and are in use',
    // `changed` names settings and parts of the configuration; of the others it is how many there are now.
    fields: ['changed', 'rules', 'upstreams'],
    audited: true,
  },
  config_refused: {
    level: 'error',
    sentence: 'settings or configuration have changed and cannot be used; everything stays as it was',
    fields: ['file'],
  },
  certificate_reloaded: { level: 'info', sentence: 'the changed certificate is in use', fields: ['file'] },
  certificate_refused: {
    level: 'error',
    sentence: 'the changed certificate cannot be used; the old one stays',
    fields: ['file'],
  },
} as const satisfies Record<string, EventRow>
