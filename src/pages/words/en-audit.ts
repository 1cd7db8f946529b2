// What the console says about the audit trail, in English.
import type { Sentences } from './sentences.ts'
import type { zhAudit } from './zh-CN-audit.ts'

export const enAudit: Sentences<typeof zhAudit> = {
  'console.audit': 'Audit',
  'audit.time': 'Time',
  'audit.request': 'Request',
}
