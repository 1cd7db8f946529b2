// What the console says about the audit trail, in Chinese.

export const zhAudit = {
  'console.audit': '审计',
  'audit.time': '时间',
  'audit.request': '编号',
} as const
